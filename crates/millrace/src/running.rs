//! A switch that runs, as its Thrift server tells of it: the program and all that was written. Nothing is changed there.

use crate::findings::Failure;
use crate::grpc;
use millrace_describe::image;
use millrace_listen::{Address, THRIFT};
use millrace_pipeline::Program;
use millrace_thrift_api::Client;
use std::net::SocketAddr;
use std::sync::Arc;

/// A connection to it.
pub(crate) struct Running {
    address: SocketAddr,
    client: Client,
}

impl Running {
    pub(crate) fn connect(given: &Address) -> Result<Running, Failure> {
        let address = grpc::address(given, &THRIFT)?;
        let client = Client::connect(address).map_err(|error| {
            Failure::failed(format!("no switch has its Thrift server at {address}"), error)
        })?;
        Ok(Running { address, client })
    }

    /// How findings call it.
    pub(crate) fn name(&self) -> String {
        format!("the switch at {}", self.address)
    }

    /// The program that it runs.
    pub(crate) fn program(&mut self) -> Result<Arc<Program>, Failure> {
        let config = self.client.bm_get_config().map_err(|error| Failure::failed(self.name(), error))?;
        image::read_program(config.as_bytes()).map_err(|error| Failure::failed(self.name(), error))
    }

    /// What the control plane has made of it, as commands that make it again.
    pub(crate) fn state(&mut self) -> Result<String, Failure> {
        self.client.bm_serialize_state().map_err(|error| Failure::failed(self.name(), error))
    }
}
