//! The messages of P4Runtime 1.5.0, and the service with its client and its server, which reads and writes them by `tonic_prost`.

#![allow(missing_docs, unreachable_pub, clippy::all, rustdoc::all)]

pub use millrace_messages::{google, stratum};

/// Packages of P4.
pub mod p4 {
    pub use millrace_messages::p4::config;
    /// `p4.v1`: P4Runtime.
    pub mod v1 {
        pub use millrace_messages::v1::*;
        tonic::include_proto!("p4.v1");
    }
}

pub use p4::config::v1 as config;
pub use p4::v1;
