//! The server as controllers meet it: over gRPC, with a switch that forwards.

mod arbitration;
mod batches;
mod cells;
mod common;
mod connections;
mod devices;
mod discovery;
mod entries;
mod gnmi;
mod hardware;
mod hostile;
mod messages;
mod pipeline;
mod profiles;
mod programs;
mod quotas;
mod replication;
mod roles;
mod symmetry;
mod tenants;
mod tls;
