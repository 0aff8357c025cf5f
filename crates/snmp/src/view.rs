//! The objects of one moment, in the order of their names.
//!
//! A view is made once for a snapshot, and answers any number of requests. Its objects are **columns**: what SMIv2 calls a column
//! of a table, or a scalar, which is a column with the one row `0`. The columns are sorted by name, and so are the rows of each table,
//! so the objects lie in the order of their whole names: no column's name begins with that of another, as the parts of a MIB are
//! numbered. A request is answered by two binary searches, one over the columns and one over the rows of one of them; the object after
//! one is the next cell. Absent cells (a port that knows no speed) are not there at all, so nothing is ever skipped but columns of 64
//! bits for clients of version 1, whole columns at a time.

use crate::value::Value;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// A value, or what the agent itself knows when it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// The value.
    Value(Value),
    /// `sysUpTime`: how long the agent has run.
    UpTime,
    /// A counter of the agent, by its number in the group `snmp`.
    OfAgent(u32),
}

impl From<Value> for Cell {
    fn from(value: Value) -> Cell {
        Cell::Value(value)
    }
}

/// The objects of one moment. See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct View {
    columns: Vec<Column>,
    rows: Vec<Rows>,
    cells: Vec<(u32, Cell)>,
}

#[derive(Clone, Debug)]
struct Column {
    name: Arc<[u32]>,
    /// The place of its table's rows.
    rows: usize,
    cells: Range<usize>,
    /// Its values have 64 bits.
    is_wide: bool,
}

/// The indexes of the rows of a table, sorted: one after the other, with the place where each ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    parts: Vec<u32>,
    ends: Vec<u32>,
}

impl Rows {
    /// Rows with these indexes, in their order; those that do not follow the one before are left out.
    ///
    /// A table's rows come from a map with the same order, so that none is.
    pub fn new<'i>(indexes: impl IntoIterator<Item = &'i [u32]>) -> Rows {
        let mut rows = Rows::default();
        for index in indexes {
            if rows.is_empty() || rows.index(rows.len() - 1) < index {
                rows.parts.extend_from_slice(index);
                rows.ends.push(u32::try_from(rows.parts.len()).unwrap_or(u32::MAX));
            }
        }
        rows
    }

    /// The one row of a scalar.
    fn scalar() -> Rows {
        Rows::new([&[0][..]])
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn index(&self, row: usize) -> &[u32] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.parts[start as usize..self.ends[row] as usize]
    }
}

/// An object of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'v> {
    column: &'v [u32],
    index: &'v [u32],
    /// What it holds.
    pub cell: &'v Cell,
}

impl Found<'_> {
    /// Its whole name.
    pub fn name(&self) -> Vec<u32> {
        [self.column, self.index].concat()
    }
}

/// Why there is no such object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// There is no column of the name.
    Object,
    /// The column has no such row, or the row no value in it.
    Instance,
}

/// What a client can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// No counters of 64 bits (version 1; RFC 3584, 4.2.2.1).
    Narrow,
    /// All.
    Wide,
}

impl View {
    /// The object of a name.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn get(&self, name: &[u32], width: Width) -> Result<Found<'_>, Missing> {
        let column = self.column_of(name).ok_or(Missing::Object)?;
        if column.is_wide && width == Width::Narrow {
            return Err(Missing::Object);
        }
        let index = &name[column.name.len()..];
        let rows = &self.rows[column.rows];
        let cells = &self.cells[column.cells.clone()];
        let found = cells.binary_search_by(|(row, _)| rows.index(*row as usize).cmp(index));
        found.map(|at| self.found(column, column.cells.start + at)).map_err(|_| Missing::Instance)
    }

    /// The object that follows a name, whether the name is an object's or not; none after the last.
    pub fn after(&self, name: &[u32], width: Width) -> Option<Found<'_>> {
        // The first column with names that follow: the one that the name lies in, or the next.
        let mut at = self.columns.partition_point(|column| ends_before(&column.name, name));
        loop {
            let column = self.columns.get(at)?;
            if !(column.is_wide && width == Width::Narrow) {
                let rows = &self.rows[column.rows];
                let cells = &self.cells[column.cells.clone()];
                let first = match name.strip_prefix(&*column.name) {
                    Some(index) => cells.partition_point(|(row, _)| rows.index(*row as usize) <= index),
                    None => 0,
                };
                if first < cells.len() {
                    return Some(self.found(column, column.cells.start + first));
                }
            }
            at += 1;
        }
    }

    /// How many objects it has.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The column whose name a name begins with.
    fn column_of(&self, name: &[u32]) -> Option<&Column> {
        let at = self.columns.partition_point(|column| *column.name <= *name);
        self.columns[..at].last().filter(|column| name.starts_with(&column.name))
    }

    fn found<'v>(&'v self, column: &'v Column, at: usize) -> Found<'v> {
        let (row, cell) = &self.cells[at];
        Found { column: &column.name, index: self.rows[column.rows].index(*row as usize), cell }
    }
}

/// Whether all names of a column are before a name.
fn ends_before(column: &[u32], name: &[u32]) -> bool {
    !name.starts_with(column) && column.cmp(name) == Ordering::Less
}

/// A column: its name, which rows it has cells of, and the cells by the number of their row.
type Added = (Arc<[u32]>, usize, Vec<(u32, Cell)>);

/// Makes a view: columns in any order.
#[derive(Debug, Default)]
pub struct Builder {
    columns: Vec<Added>,
    rows: Vec<Rows>,
}

impl Builder {
    /// Adds a scalar; none: there is no such object now.
    pub fn scalar(&mut self, object: &[u32], cell: Option<impl Into<Cell>>) {
        let cells = cell.into_iter().map(|cell| (0, cell.into())).collect();
        self.rows.push(Rows::scalar());
        self.columns.push((object.into(), self.rows.len() - 1, cells));
    }

    /// Adds a table: the name of its entry, the indexes of its rows, and the numbers of its columns with what each has in each row.
    pub fn table<'c>(
        &mut self,
        entry: &[u32],
        rows: Rows,
        columns: impl IntoIterator<Item = (u32, &'c dyn Fn(usize) -> Option<Cell>)>,
    ) {
        let count = rows.len();
        self.rows.push(rows);
        for (number, cell) in columns {
            let name: Arc<[u32]> = entry.iter().copied().chain([number]).collect();
            let cells = (0..count).filter_map(|row| Some((u32::try_from(row).ok()?, cell(row)?)));
            self.columns.push((name, self.rows.len() - 1, cells.collect()));
        }
    }

    /// The view.
    pub fn view(self) -> View {
        let Builder { mut columns, rows } = self;
        columns.sort_by(|one, other| one.0.cmp(&other.0));
        let mut view = View { rows, ..View::default() };
        for (name, rows, cells) in columns {
            let start = view.cells.len();
            let is_wide = matches!(cells.first(), Some((_, Cell::Value(value))) if value.is_wide());
            view.cells.extend(cells);
            view.columns.push(Column { name, rows, cells: start..view.cells.len(), is_wide });
        }
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: i32) -> Cell {
        Value::Integer(number).into()
    }

    /// A scalar 1.3.1, a table 1.3.2.1 with rows 5 and 7.1 and columns 1, 2 (of 64 bits) and 3 (only in row 7.1), and a scalar 1.3.10
    /// that there is not now.
    fn view() -> View {
        let mut builder = Builder::default();
        builder.scalar(&[1, 3, 10], None::<Cell>);
        let rows = Rows::new([&[5][..], &[7, 1]]);
        type Cells<'a> = (u32, &'a dyn Fn(usize) -> Option<Cell>);
        let columns: [Cells; 3] = [
            (3, &|row| (row == 1).then(|| number(31))),
            (1, &|row| Some(number(10 + row as i32))),
            (2, &|row| Some(Value::Counter64(20 + row as u64).into())),
        ];
        builder.table(&[1, 3, 2, 1], rows, columns);
        builder.scalar(&[1, 3, 1], Some(number(1)));
        builder.view()
    }

    /// The names of all objects after one.
    fn walk(view: &View, from: &[u32], width: Width) -> Vec<Vec<u32>> {
        let next = |name: &Vec<u32>| view.after(name, width).map(|found| found.name());
        std::iter::successors(next(&from.to_vec()), next).collect()
    }

    #[test]
    fn objects_are_walked_in_the_order_of_their_names() {
        let all = [
            &[1, 3, 1, 0][..],
            &[1, 3, 2, 1, 1, 5],
            &[1, 3, 2, 1, 1, 7, 1],
            &[1, 3, 2, 1, 2, 5],
            &[1, 3, 2, 1, 2, 7, 1],
            &[1, 3, 2, 1, 3, 7, 1],
        ];
        let view = view();
        assert_eq!(walk(&view, &[0, 0], Width::Wide), all);
        assert_eq!(view.len(), all.len());
        assert!(all.is_sorted());
        // From anywhere: the first that follows.
        for (from, first) in [
            (&[1, 3][..], 0),
            (&[1, 3, 1], 0),
            (&[1, 3, 1, 0], 1),
            (&[1, 3, 1, 0, 9], 1),
            (&[1, 3, 2], 1),
            (&[1, 3, 2, 1, 1, 5], 2),
            (&[1, 3, 2, 1, 1, 6], 2),
            (&[1, 3, 2, 1, 1, 7], 2),
            (&[1, 3, 2, 1, 1, 7, 1], 3),
            (&[1, 3, 2, 1, 1, 4_294_967_295], 3),
            (&[1, 3, 2, 1, 3, 5], 5),
            (&[1, 3, 2, 1, 3, 7, 1], 6),
            (&[1, 3, 10], 6),
            (&[2, 40], 6),
        ] {
            assert_eq!(walk(&view, from, Width::Wide), all[first..], "{from:?}");
        }
    }

    #[test]
    fn version_1_does_not_see_counters_of_64_bits() {
        let view = view();
        let narrow = walk(&view, &[1, 3, 2, 1, 1, 7, 1], Width::Narrow);
        assert_eq!(narrow, [[1, 3, 2, 1, 3, 7, 1]]);
        assert_eq!(view.get(&[1, 3, 2, 1, 2, 5], Width::Narrow), Err(Missing::Object));
        assert!(view.get(&[1, 3, 2, 1, 2, 5], Width::Wide).is_ok());
    }

    #[test]
    fn what_is_missing_is_an_object_or_an_instance() {
        let view = view();
        let get = |name: &[u32]| view.get(name, Width::Wide).map(|found| found.cell.clone());
        assert_eq!(get(&[1, 3, 1, 0]), Ok(number(1)));
        assert_eq!(get(&[1, 3, 2, 1, 3, 7, 1]), Ok(number(31)));
        for object in [&[1, 3][..], &[1, 3, 2, 1], &[1, 3, 2, 1, 4, 5], &[1, 4, 1], &[0, 0]] {
            assert_eq!(get(object), Err(Missing::Object), "{object:?}");
        }
        for instance in
            [&[1, 3, 1][..], &[1, 3, 1, 1], &[1, 3, 10, 0], &[1, 3, 2, 1, 3, 5], &[1, 3, 2, 1, 1, 7]]
        {
            assert_eq!(get(instance), Err(Missing::Instance), "{instance:?}");
        }
    }

    #[test]
    fn rows_that_are_out_of_order_are_left_out() {
        let rows = Rows::new([&[5][..], &[5], &[4, 9], &[5, 0], &[6]]);
        assert_eq!(
            (0..rows.len()).map(|row| rows.index(row).to_vec()).collect::<Vec<_>>(),
            [vec![5], vec![5, 0], vec![6]]
        );
        assert_eq!(View::default().after(&[0, 0], Width::Wide), None);
    }
}
