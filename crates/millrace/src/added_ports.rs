//! Ports that clients of Thrift add to a running switch.

use crate::captures::stopped;
use crate::cores::WorkerArgs;
use crate::output::tell_line;
use millrace_dataplane::PortId;
use millrace_drivers::{Captures, Driver, InterfaceSpec, Links, PortError, PortSpec, QueuePair, SpecError};
use millrace_p4runtime::Feed;
use millrace_thrift::PortMaker;
use std::sync::Arc;
use tracing::info;

/// Opens interfaces, and has all that knows the ports of the switch follow.
#[derive(Debug)]
pub(crate) struct AddedPorts {
    pub(crate) captures: Arc<Captures>,
    /// Whether all ports are captured from the start.
    pub(crate) captures_all: bool,
    pub(crate) links: Links,
    pub(crate) p4runtime: Option<Feed>,
    /// How many queue pairs ports have.
    pub(crate) workers: WorkerArgs,
}

/// A Linux interface, as `-i` of simple_switch has it, or with its driver, as in `tap:mr0`. Nothing else: clients are not to name files.
fn interface(name: &str) -> Result<InterfaceSpec, SpecError> {
    match name.parse::<InterfaceSpec>() {
        Ok(spec) if spec.link().is_some() => Ok(spec),
        Err(error @ SpecError::Twice(..)) => Err(error),
        _ => Ok(InterfaceSpec { driver: Driver::Packet, args: name.to_owned() }),
    }
}

impl AddedPorts {
    fn open_captured(
        &self,
        number: PortId,
        name: &str,
        capture: &str,
    ) -> Result<Vec<Box<dyn QueuePair>>, String> {
        let interface = interface(name).map_err(|error| error.to_string())?;
        if interface.driver == Driver::Xdp {
            // It would have to keep CAP_BPF and CAP_IPC_LOCK (privileges.rs) for whoever reaches Thrift.
            return Err(
                "`xdp` ports are there from the start: the switch has given up what it takes to make one"
                    .into(),
            );
        }
        if let Some(user) = self.links.user_of(&interface) {
            return Err(format!("{name} is port {user} already"));
        }
        let failed = |error: PortError| error.to_string();
        let device = millrace_drivers::device_among(&interface, self.links.len() + 1).map_err(failed)?;
        let queues = self.workers.queue_pairs(device.max_queues());
        let pairs = device.open(queues).map_err(failed)?;
        let pairs = self.captures.watch(number, &interface, pairs);
        let capture = (!capture.is_empty()).then_some(capture);
        if capture.is_some() || self.captures_all {
            let started = self.captures.start(number, capture).map_err(|error| {
                self.stop_capture(number);
                error.to_string()
            })?;
            info!(port = number, file = %started.incoming.display(), "capture on");
        }
        Ok(pairs)
    }

    fn stop_capture(&self, number: PortId) {
        if let Some(ended) = self.captures.forget(number).transpose() {
            stopped(number, ended);
        }
    }
}

impl PortMaker for AddedPorts {
    fn open(&self, number: PortId, name: &str, capture: &str) -> Result<Vec<Box<dyn QueuePair>>, String> {
        // Tools of bmv2 do not show why.
        self.open_captured(number, name, capture).inspect_err(|reason| {
            tell_line(format_args!("port {number}@{name} is not added: {reason}"));
        })
    }

    fn added(&self, number: PortId, name: &str) {
        // It was opened by that name.
        if let Ok(interface) = interface(name) {
            info!(port = format_args!("{number}@{interface}").to_string(), "port up");
            if let Ok(port) = u16::try_from(number) {
                self.links.add(&PortSpec { port, interface });
            }
        }
        self.p4runtime.iter().for_each(|feed| feed.port_added(number));
    }

    fn removed(&self, number: PortId) {
        info!(port = number, "port removed");
        if let Ok(port) = u16::try_from(number) {
            self.links.remove(port);
        }
        self.p4runtime.iter().for_each(|feed| feed.port_removed(number));
        self.stop_capture(number);
    }

    fn refused(&self, number: PortId) {
        self.stop_capture(number);
    }
}

#[cfg(test)]
mod tests {
    use super::interface;

    #[test]
    fn clients_name_interfaces_and_no_files() {
        let named = |name| interface(name).unwrap().to_string();
        assert_eq!(named("eth0"), "packet:eth0");
        assert_eq!(named("eth0:1"), "packet:eth0:1");
        assert_eq!(named("xdp:eth0,mode=copy"), "xdp:eth0,mode=copy");
        assert_eq!(named("tap:mr0"), "tap:mr0");
        for file in ["pcap:in.pcap", "null:in.pcap", "stream:in.pcap", "dpdk:net_pcap0,rx_pcap=in.pcap"] {
            assert_eq!(named(file), format!("packet:{file}"), "there is no interface of this name");
        }
        let error = interface("tap:mr0,promisc=off,promisc=on").unwrap_err().to_string();
        assert_eq!(error, "tap: `promisc=` is given twice: a port has it once");
    }
}
