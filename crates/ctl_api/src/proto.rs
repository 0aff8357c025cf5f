//! The service, generated from the interface definitions in `proto/`; it reads and writes messages by `tonic_prost`.

#![allow(missing_docs, unreachable_pub, clippy::all, rustdoc::all)]

tonic::include_proto!("millrace.ctl.v1");
