//! The structures, as prost generates them.

#![allow(missing_docs, unreachable_pub, clippy::all, rustdoc::all)]

/// Packages of Google's.
pub mod google {
    /// `google.rpc`.
    pub mod rpc {
        include!(concat!(env!("OUT_DIR"), "/google.rpc.rs"));
    }
}

/// Packages of P4.
pub mod p4 {
    /// `p4.v1`: P4Runtime.
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/p4.v1.rs"));
    }
    /// `p4.config`.
    pub mod config {
        /// `p4.config.v1`: P4Info.
        pub mod v1 {
            include!(concat!(env!("OUT_DIR"), "/p4.config.v1.rs"));
        }
    }
}

/// `stratum`: what roles may do.
pub mod stratum {
    include!(concat!(env!("OUT_DIR"), "/stratum.rs"));
}
