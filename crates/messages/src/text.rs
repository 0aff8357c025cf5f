//! Protobuf's text form.

mod lexer;
mod read;
mod write;

pub use read::{MAX_DEPTH, read};
pub use write::{Style, write};
