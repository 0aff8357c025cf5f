//! The messages and the service, generated from the interface definitions in `proto/` (gNMI 0.10). The service
//! reads and writes messages by `tonic_prost`; values may hold any message (`prost_types::Any`).

#![allow(missing_docs, unreachable_pub, clippy::all, rustdoc::all)]

/// `gnmi`.
pub mod gnmi {
    tonic::include_proto!("gnmi");
}

/// `gnmi_ext`.
pub mod gnmi_ext {
    tonic::include_proto!("gnmi_ext");
}

pub use gnmi::*;
