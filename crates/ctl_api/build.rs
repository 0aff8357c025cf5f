//! Makes the messages and the service from the interface definitions, without an installed `protoc`.

use prost::Message;
use std::io::Error;
use std::path::PathBuf;

fn main() -> Result<(), Error> {
    println!("cargo:rerun-if-changed=proto");
    let definitions = protox::compile(["millrace/ctl/v1/ctl.proto"], ["proto"]).map_err(Error::other)?;
    // For server reflection.
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").ok_or(Error::other("no OUT_DIR"))?);
    std::fs::write(folder.join("definitions.bin"), definitions.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(definitions)
}
