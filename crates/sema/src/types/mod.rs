//! Types: what is written, what is inferred, what fits where.

mod default;
mod infer;
mod nesting;
mod resolve;
mod show;
mod size;

pub(crate) use infer::Inference;
pub(crate) use nesting::Container;
pub(crate) use size::SizeError;
