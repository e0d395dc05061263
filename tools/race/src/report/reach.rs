//! Intervals on a horizontal scale.

use super::markup::Svg;
use super::scale::Scale;
use crate::statistics::Interval;

/// The size of a mark at the end of an interval, in pixels.
const MARK: f64 = 4.0;

/// Draws an interval at a height: an end that is shown has a stroke, one that is beyond the scale an arrowhead.
pub(super) fn reach(svg: &mut Svg, class: &str, scale: &Scale, interval: &Interval, y: f64) {
    let ends = [(interval.low, 1.0), (interval.high, -1.0)].map(|(end, inwards)| {
        let (x, is_shown) = scale.within(end);
        if is_shown {
            svg.line(class, (x, y - MARK), (x, y + MARK));
        } else {
            let back = x + inwards * MARK;
            svg.line(class, (back, y - MARK), (x, y));
            svg.line(class, (back, y + MARK), (x, y));
        }
        x
    });
    svg.line(class, (ends[0], y), (ends[1], y));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(low: f64, high: f64) -> usize {
        let mut svg = Svg::new(100.0, 10.0, "");
        let scale = Scale::linear(1.0, 2.0, 0.0, 100.0);
        reach(&mut svg, "a", &scale, &Interval { low, mid: 1.5, high }, 5.0);
        svg.finish().matches("<line").count()
    }

    #[test]
    fn what_is_beyond_the_scale_has_an_arrowhead() {
        assert_eq!(lines(1.2, 1.8), 3);
        assert_eq!(lines(1.2, 5.0), 4);
        assert_eq!(lines(0.2, 5.0), 5);
    }
}
