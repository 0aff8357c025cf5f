//! The service, generated from the interface definitions in `proto/`.

#![allow(missing_docs, unreachable_pub, clippy::all, rustdoc::all)]

tonic::include_proto!("millrace.ctl.v1");
