//! Makes the client and the server of the service from the interface definitions, without an installed `protoc`. Its messages are those of `millrace-messages`.

use std::io::Error;

const PROTO: &str = "../messages/proto";

fn main() -> Result<(), Error> {
    println!("cargo:rerun-if-changed={PROTO}");
    let definitions = protox::compile(["p4/v1/p4runtime.proto"], [PROTO]).map_err(Error::other)?;
    tonic_prost_build::configure()
        .extern_path(".p4", "::millrace_messages::p4")
        .extern_path(".google.rpc", "::millrace_messages::google::rpc")
        .compile_fds(definitions)
}
