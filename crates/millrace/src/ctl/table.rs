//! Rows under a head, aligned.

use millrace_printable::printable_line;

/// On which side the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Of texts.
    Left,
    /// Of numbers.
    Right,
}

/// The lines of a table, each after `indent`. What a device says stays in its cell: it cannot begin a line.
pub(super) fn table<const N: usize>(
    indent: &str,
    columns: [(&str, Side); N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let heads = columns.map(|(head, _)| head.to_owned());
    let rows: Vec<[String; N]> = std::iter::once(heads)
        .chain(rows)
        .map(|row| row.map(|cell| printable_line(&cell).into_owned()))
        .collect();
    let width = |cell: &str| cell.chars().count();
    let widths: [usize; N] =
        std::array::from_fn(|at| rows.iter().map(|row| width(&row[at])).max().unwrap_or(0));
    let mut text = String::new();
    for row in &rows {
        let mut line = indent.to_owned();
        for (at, (cell, (_, side))) in row.iter().zip(columns).enumerate() {
            let blanks = " ".repeat(widths[at] - width(cell));
            line.push_str(if at > 0 { "  " } else { "" });
            match side {
                Side::Left => line.extend([cell.as_str(), &blanks]),
                Side::Right => line.extend([blanks.as_str(), cell]),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Side::{Left, Right};
    use super::*;

    #[test]
    fn cells_are_aligned_and_stay_in_their_line() {
        let columns = [("name", Left), ("count", Right), ("note", Left)];
        let rows = [["größe", "7", ""], ["a\nb  9", "123456", "x"]].map(|row| row.map(str::to_owned));
        let wanted = "  name          count  note\n  größe             7\n  a\\u000ab  9  123456  x\n";
        assert_eq!(table("  ", columns, rows), wanted);
        assert_eq!(table("", columns, []), "name  count  note\n");
    }
}
