//! The messages and the service, generated from the interface definitions in `proto/` (P4Runtime 1.5.0). The service
//! reads and writes messages by `tonic_prost`.

#![allow(missing_docs, unreachable_pub, clippy::all, rustdoc::all)]

/// Packages of Google's.
pub mod google {
    /// `google.rpc`.
    pub mod rpc {
        tonic::include_proto!("google.rpc");
    }
}

/// Packages of P4.
pub mod p4 {
    /// `p4.v1`: P4Runtime.
    pub mod v1 {
        tonic::include_proto!("p4.v1");
    }
    /// `p4.config`.
    pub mod config {
        /// `p4.config.v1`: P4Info.
        pub mod v1 {
            tonic::include_proto!("p4.config.v1");
        }
    }
}

pub use p4::config::v1 as config;
pub use p4::v1;
