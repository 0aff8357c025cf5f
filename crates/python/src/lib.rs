//! Millrace as a Python package: compile a P4 program, add entries, send bytes on a port, look at what leaves. In process,
//! with no interfaces and no root.
//!
//! It promises:
//! - **Errors are Python exceptions** (`millrace.errors`), with the name or the line that is wrong.
//! - **A switch may be used by several threads**: each call sees it as another call left it. Long work (compiling, loading
//!   entries, many packets) lets other Python threads run.
//! - **No code of Python runs while a switch is locked** (`shared::Shared`): what comes from Python is read before, what
//!   goes there is made after.
//!
//! Plain data is made of the classes of `millrace/records.py`; live objects are the classes here. `_millrace.pyi` types them.

mod arrays;
mod calls;
mod errors;
mod matches;
mod meters;
mod packets;
mod profile;
mod program;
mod records;
mod replication;
mod shared;
mod switch;
mod table;
mod value_set;
mod values;

/// The compiled part of the package.
#[pyo3::pymodule]
mod _millrace {
    #[pymodule_export]
    use super::arrays::{Counter, Register};
    #[pymodule_export]
    use super::meters::Meter;
    #[pymodule_export]
    use super::packets::Packet;
    #[pymodule_export]
    use super::profile::Profile;
    #[pymodule_export]
    use super::program::check;
    #[pymodule_export]
    use super::switch::Switch;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::value_set::ValueSet;
}
