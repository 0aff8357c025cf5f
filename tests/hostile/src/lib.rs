//! Programs made to cost a compiler much time or memory.
//!
//! Each [`Family`] makes a program of a size. Whatever a family makes of at most a megabyte is accepted or refused within
//! [`TIME`] and [`MEMORY`]; `millrace-hostile run` measures it. Whatever is made of it is hardware, or refused as hardware, within
//! [`HARDWARE_TIME`] and [`HARDWARE_MEMORY`]: `run --hardware`. And it has machine code and bounds, or is refused, within
//! [`CODE_TIME`] and [`CODE_MEMORY`]: `run --code`.

mod code;
mod deep;
mod doubling;
mod hardware;
mod many;
mod old;
pub mod program;
mod text;

pub use program::Program;

/// Seconds of a processor's time that any source file of [`BYTES`] may cost.
pub const TIME: f64 = 2.0;
/// Bytes of memory that it may cost.
pub const MEMORY: u64 = 512 << 20;
/// Seconds of a processor's time that hardware of any program may cost, with its report and its text.
pub const HARDWARE_TIME: f64 = 5.0;
/// Bytes of memory that it may cost.
pub const HARDWARE_MEMORY: u64 = 1 << 30;
/// Seconds of a processor's time that machine code of any program may cost, with its bounds.
pub const CODE_TIME: f64 = 5.0;
/// Bytes of memory that it may cost.
pub const CODE_MEMORY: u64 = 1 << 30;
/// The size of a source file.
pub const BYTES: usize = 1_000_000;

/// What the number means from which a family makes a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// About so many bytes of text.
    Bytes,
    /// So many declarations, each of which uses the one before twice.
    Doublings,
}

/// Programs of one kind, in all sizes.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// What its sizes are.
    pub size: Size,
    /// Makes the program of a size.
    pub make: fn(usize) -> Program,
}

/// Families whose hardware is much.
pub fn of_hardware() -> impl Iterator<Item = &'static Family> {
    hardware::FAMILIES.iter()
}

/// Families whose machine code is much.
pub fn of_code() -> impl Iterator<Item = &'static Family> {
    code::FAMILIES.iter()
}

/// All families of programs that cost much before they are hardware.
pub fn families() -> impl Iterator<Item = &'static Family> {
    [doubling::FAMILIES, deep::FAMILIES, many::FAMILIES, text::FAMILIES, old::FAMILIES].into_iter().flatten()
}
