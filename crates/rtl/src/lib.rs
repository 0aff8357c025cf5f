//! From a program to hardware.

mod convert;
mod emit;
mod evaluate;
mod graph;
mod hardware;
pub mod limits;
mod refusal;
mod schedule;
mod simulate;
mod stage;
mod units;

pub use hardware::{Frame, Hardware, Part, Said};
pub use refusal::{Construct, Refusal};
pub use stage::{Input, LookupAnswer, Output, Unit};
pub use units::Objects;
