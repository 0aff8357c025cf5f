//! Tables for people.

use std::fmt::Write;

/// Rows under their columns; the first columns are to the left, the others to the right.
pub(super) fn table<const N: usize>(columns: [&str; N], left: usize, rows: &[[String; N]]) -> String {
    let chars = |text: &str| text.chars().count();
    let width =
        |at: usize| rows.iter().map(|row| chars(&row[at])).chain([chars(columns[at])]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    let mut line = |cells: [&str; N]| {
        let mut line = String::new();
        for (at, cell) in cells.iter().enumerate() {
            let space = " ".repeat(widths[at] - chars(cell));
            let gap = if at == 0 { "" } else { "  " };
            // Writing to a string cannot fail.
            let _ = match at < left {
                true => write!(line, "{gap}{cell}{space}"),
                false => write!(line, "{gap}{space}{cell}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    };
    line(columns);
    rows.iter().for_each(|row| line(std::array::from_fn(|at| row[at].as_str())));
    text
}

/// Nanoseconds as microseconds.
pub(super) fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// The mean of some times in nanoseconds, rounded up.
pub(super) fn mean(times: impl Iterator<Item = u64>) -> Option<u64> {
    let (sum, count) = times.fold((0u128, 0u128), |(sum, count), time| (sum + u128::from(time), count + 1));
    (count > 0).then(|| u64::try_from(sum.div_ceil(count)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows = [["a".into(), "1.000".into()], ["longer".into(), "10.000".into()]];
        assert_eq!(table(["name", "delay"], 1, &rows), "name     delay\na        1.000\nlonger  10.000\n");
        assert_eq!((us(16_720), mean([1, 2].into_iter())), ("16.720".into(), Some(2)));
    }
}
