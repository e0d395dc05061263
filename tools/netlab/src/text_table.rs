//! Tables for the terminal.

/// Rows in columns: the first to the left, the others to the right unless they hold words.
pub(crate) fn aligned(rows: &[Vec<String>], words: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            if column > 0 {
                line += "  ";
            }
            let to_the_left = column == 0 || words.contains(&column);
            line += &if to_the_left { format!("{cell}{pad}") } else { format!("{pad}{cell}") };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_to_the_right_and_words_to_the_left() {
        let rows = [["a", "1", "x"], ["bcd", "100", "yz"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(aligned(&rows, &[2]), "a      1  x\nbcd  100  yz\n");
    }
}
