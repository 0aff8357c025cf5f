//! The server as controllers meet it: over gRPC, with a switch behind it that forwards.

mod arbitration;
mod batches;
mod cells;
mod common;
mod connections;
mod entries;
mod messages;
mod pipeline;
mod profiles;
mod programs;
mod replication;
mod tls;
