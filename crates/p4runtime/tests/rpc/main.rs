//! The server as controllers meet it: over gRPC, with a switch behind it that forwards.

mod arbitration;
mod common;
mod pipeline;
