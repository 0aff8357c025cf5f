//! From a program to hardware.

mod convert;
mod emit;
mod evaluate;
mod graph;
mod hardware;
pub mod limits;
mod refusal;
mod report;
mod running;
mod schedule;
mod simulate;
mod stage;
mod units;

pub use hardware::{Hardware, Options, Part};
pub use refusal::{Construct, Refusal};
pub use report::{AccessReport, Report, StageReport};
pub use running::{Frame, Running, Said};
pub use stage::{Input, LookupAnswer, Output, Unit};
pub use units::Objects;
