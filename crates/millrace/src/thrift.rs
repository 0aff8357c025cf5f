//! The Thrift server of `millrace run`.

use crate::added_ports::AddedPorts;
use crate::cli::ThriftArgs;
use crate::findings::Failure;
use crate::{grpc, nanomsg};
use millrace_chassis::{Modes, Programs};
use millrace_dataplane::PortId;
use millrace_drivers::PortSpec;
use millrace_listen::{Address, Admission, NOTIFICATIONS, THRIFT};
use millrace_pipeline::Program;
use millrace_thrift::{DeviceConfig, Guard, PortMaker, PortName, Publisher, Right, Server, serve};
use std::net::IpAddr;
use std::sync::Arc;
use tracing::debug;

/// Serves a switch.
pub(crate) fn start(
    args: &ThriftArgs,
    given: &Address,
    device_id: u64,
    ports: &[PortSpec],
    maker: Option<AddedPorts>,
    programs: Programs,
    made_from: Option<(Arc<Program>, String)>,
) -> Result<Server, Failure> {
    let address = grpc::address(given, &THRIFT)?;
    let bound = millrace_listen::bind(&THRIFT, address, Admission::Anybody, args.thrift_allow_remote);
    let listener = bound.map_err(|error| Failure::Failed(error.to_string()))?;
    let name = |spec: &PortSpec| PortName {
        number: PortId::from(spec.port),
        interface: spec.interface.args.clone(),
    };
    let (ports, maker) =
        (ports.iter().map(name).collect(), maker.map(|maker| Box::new(maker) as Box<dyn PortMaker>));
    let notifications = match (&args.notifications, &args.try_notifications) {
        (Some(address), _) => Some(publisher(address, args.thrift_allow_remote)?),
        (None, Some(address)) => match publisher(address, args.thrift_allow_remote) {
            Ok(publisher) => Some(publisher),
            Err(failure) => {
                failure.show();
                None
            }
        },
        (None, None) => None,
    };
    let guard = programs.modes().map(|modes| Arc::new(ByMode(modes.clone())) as Arc<dyn Guard>);
    let device = DeviceConfig { programs, device_id, ports, maker, made_from, notifications, guard };
    let server =
        serve(listener, device).map_err(|error| Failure::failed("cannot start the Thrift server", error))?;
    grpc::warn_of_exposure(&THRIFT, server.address(), Admission::Anybody);
    Ok(server)
}

/// Clients write when the mode of the switch lets them.
#[derive(Debug)]
struct ByMode(Modes);

impl Guard for ByMode {
    fn may(&self, right: Right) -> Result<(), String> {
        match right {
            Right::Write => self.0.check_write(),
            // Of programs the mode is asked where they are made.
            Right::Read | Right::Swap | Right::Capture | Right::LifeCycle => Ok(()),
        }
    }

    fn record(&self, _: Option<IpAddr>, call: &str, result: Result<(), &str>) {
        if let Err(reason) = result {
            debug!(call, reason, "refused");
        }
    }
}

/// Listens for subscribers.
fn publisher(address: &str, allow_remote: bool) -> Result<Publisher, Failure> {
    let listener = nanomsg::listener(&NOTIFICATIONS, address, allow_remote)?;
    Publisher::over(listener).map_err(|error| Failure::failed(format!("cannot notify at {address}"), error))
}
