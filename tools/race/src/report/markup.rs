//! HTML and SVG: text is escaped wherever it comes from.

use std::fmt::Write as _;

use bolide_semantics::in_markup;

/// An SVG picture that is being drawn.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
}

impl Svg {
    /// An empty picture; `title` is what it shows, for those who can't see it.
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let title = in_markup(title);
        Self {
            text: format!(
                "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\">\n"
            ),
        }
    }

    /// An empty picture that is a file of its own, with its style and ground.
    pub(super) fn file(width: f64, height: f64, title: &str, style: &str) -> Self {
        let label = in_markup(title);
        Self {
            text: format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
                 width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{label}\">\n\
                 <style>\n{style}svg {{ background: var(--page); }}\n</style>\n"
            ),
        }
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = writeln!(
            self.text,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// A rectangle with a hint that shows when it is pointed at.
    pub(super) fn bar(&mut self, class: &str, at: (f64, f64), size: (f64, f64), hint: &str) {
        let _ = writeln!(
            self.text,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
             rx=\"2\"><title>{}</title></rect>",
            at.0,
            at.1,
            size.0.max(0.0),
            size.1,
            in_markup(hint)
        );
    }

    /// A rectangle of a colour that is so strong, from 0 to 1.
    pub(super) fn shade(
        &mut self,
        class: &str,
        at: (f64, f64),
        size: (f64, f64),
        strength: f64,
        hint: &str,
    ) {
        let _ = writeln!(
            self.text,
            "<rect class=\"{class}\" fill-opacity=\"{strength:.2}\" x=\"{:.1}\" y=\"{:.1}\" \
             width=\"{:.1}\" height=\"{:.1}\" rx=\"3\"><title>{}</title></rect>",
            at.0,
            at.1,
            size.0,
            size.1,
            in_markup(hint)
        );
    }

    pub(super) fn dot(&mut self, class: &str, at: (f64, f64), radius: f64, hint: &str) {
        let _ = writeln!(
            self.text,
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\"><title>{}\
             </title></circle>",
            at.0,
            at.1,
            in_markup(hint)
        );
    }

    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        let _ = writeln!(self.text, "<polyline class=\"{class}\" points=\"{points}\"/>");
    }

    /// Text that begins, is centred or ends (`start`, `middle`, `end`) at a point.
    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: &str, text: &str) {
        let _ = writeln!(
            self.text,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            at.0,
            at.1,
            in_markup(text)
        );
    }

    pub(super) fn finish(self) -> String {
        self.text + "</svg>\n"
    }
}

/// A plot with its caption.
pub(super) fn figure(svg: &str, caption: &str) -> String {
    format!("<figure>{svg}<figcaption>{}</figcaption></figure>\n", in_markup(caption))
}

/// A table with one line of heads; cells are escaped, the first column stands to the left.
pub(super) fn table(heads: &[String], rows: &[Vec<String>]) -> String {
    let mut text = String::from("<div class=\"wide\"><table><thead><tr>");
    for head in heads {
        let _ = write!(text, "<th>{}</th>", in_markup(head));
    }
    text.push_str("</tr></thead><tbody>\n");
    for row in rows {
        text.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let tag = if column == 0 { "th" } else { "td" };
            let _ = write!(text, "<{tag}>{}</{tag}>", in_markup(cell));
        }
        text.push_str("</tr>\n");
    }
    text + "</tbody></table></div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_place() {
        let evil = "<script>\"a\" & 'b'</script>";
        let safe = "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;";
        assert_eq!(in_markup(evil), safe);
        let mut svg = Svg::new(1.0, 1.0, evil);
        svg.text("a", (0.0, 0.0), "start", evil);
        svg.bar("a", (0.0, 0.0), (1.0, 1.0), evil);
        svg.dot("a", (0.0, 0.0), 1.0, evil);
        let page = svg.finish() + &table(&[evil.to_owned()], &[vec![evil.to_owned()]]);
        assert!(!(page.clone() + &figure("", evil)).contains("<script"), "{page}");
        assert_eq!(page.matches(safe).count(), 6);
    }
}
