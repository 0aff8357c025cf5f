//! Ports that clients add and remove.

use crate::common::{Device, refused};
use millrace_chassis::Listener;
use millrace_dataplane::{PortCounters, PortId, Request};
use millrace_drivers::{FarEnd, MemoryPort, Next, QueuePair};
use millrace_quiet::quiet_port;
use millrace_thrift::PortMaker;
use millrace_thrift_api::{CallError, Client, InvalidDevMgrOperation, PortCode};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What was told to the maker, in order.
pub(crate) type Told = Arc<Mutex<Vec<String>>>;

/// `quiet` is a port on which nothing arrives; `wire` is the end of a wire.
#[derive(Debug)]
struct Maker {
    told: Told,
    wires: Mutex<Vec<Wire>>,
}

/// Frames that come in, and where those go that leave.
#[derive(Debug)]
pub(crate) struct Wire(pub(crate) Receiver<Vec<u8>>, pub(crate) Sender<Vec<u8>>, pub(crate) Vec<u8>);

impl FarEnd for Wire {
    fn next(&mut self) -> Next<'_> {
        let Ok(frame) = self.0.try_recv() else { return Next::None };
        self.2 = frame;
        Next::Frame(&self.2)
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        self.1.send(frame.to_vec()).is_ok()
    }
}

impl Maker {
    fn tell(&self, told: String) {
        self.told.lock().unwrap().push(told);
    }
}

impl PortMaker for Maker {
    fn open(
        &self,
        number: PortId,
        interface: &str,
        capture: &str,
    ) -> Result<Vec<Box<dyn QueuePair>>, String> {
        self.tell(format!("open {number} {interface} {capture}"));
        match interface {
            "quiet" => Ok(vec![quiet_port()]),
            "wire" => Ok(vec![Box::new(MemoryPort::new(self.wires.lock().unwrap().pop().unwrap()))]),
            _ => Err(format!("there is no {interface}")),
        }
    }

    fn added(&self, number: PortId, interface: &str) {
        self.tell(format!("added {number} {interface}"));
    }

    fn removed(&self, number: PortId) {
        self.tell(format!("removed {number}"));
    }

    fn refused(&self, number: PortId) {
        self.tell(format!("refused {number}"));
    }
}

pub(crate) fn start(wires: Vec<Wire>) -> (Device, Told) {
    let told = Told::default();
    let maker = Maker { told: Arc::clone(&told), wires: Mutex::new(wires) };
    (Device::with(Some(Box::new(maker))), told)
}

pub(crate) fn add(
    client: &mut Client,
    interface: &str,
    port: i32,
    capture: &str,
) -> Result<(), CallError<InvalidDevMgrOperation>> {
    client.bm_dev_mgr_add_port(interface.into(), port, capture.into())
}

fn shown(client: &mut Client) -> Vec<(i32, String, bool)> {
    let ports = client.bm_dev_mgr_show_ports().unwrap();
    ports.into_iter().map(|port| (port.port_num, port.iface_name, port.is_up)).collect()
}

fn is_refused(answer: Result<(), CallError<InvalidDevMgrOperation>>, reason: &str) {
    let exception = refused(answer);
    assert_eq!((exception.code, exception.reason.as_deref()), (PortCode::Error, Some(reason)));
}

#[test]
fn ports_come_and_go() {
    let (device, told) = start(Vec::new());
    let mut client = device.client();
    device.server.feed().port_failed(2, "broken");
    add(&mut client, "quiet", 0, "").unwrap();
    client.bm_dev_mgr_remove_port(2).unwrap();
    add(&mut client, "quiet", 511, "files").unwrap();
    // The port that had the number before was broken.
    add(&mut client, "quiet", 2, "").unwrap();
    let port = |number, name: &str, is_up| (number, name.to_owned(), is_up);
    let all =
        [port(0, "quiet", true), port(1, "mrt1", true), port(2, "quiet", true), port(511, "quiet", true)];
    assert_eq!(shown(&mut client), all);
    device.server.feed().link(0, false);
    assert_eq!(shown(&mut client)[0], port(0, "quiet", false));
    let report = device.control.report(Duration::from_secs(10)).unwrap();
    assert_eq!(report.ports.iter().map(|port| port.port).collect::<Vec<_>>(), [0, 1, 2, 511]);
    let events = [
        "open 0 quiet ",
        "added 0 quiet",
        "removed 2",
        "open 511 quiet files",
        "added 511 quiet",
        "open 2 quiet ",
        "added 2 quiet",
    ];
    assert_eq!(*told.lock().unwrap(), events);
}

#[test]
fn refused_ports_change_nothing() {
    let (device, told) = start(Vec::new());
    let mut client = device.client();
    let before = shown(&mut client);
    is_refused(add(&mut client, "quiet", 1, ""), "there is a port 1 already");
    is_refused(add(&mut client, "nothing", 3, ""), "there is no nothing");
    is_refused(add(&mut client, "quiet", 65536, ""), "`65536` is not a port number (0 to 65535)");
    is_refused(add(&mut client, "quiet", -1, ""), "`-1` is not a port number (0 to 65535)");
    is_refused(client.bm_dev_mgr_remove_port(3), "there is no port 3");
    is_refused(client.bm_dev_mgr_remove_port(i32::MIN), "there is no port -2147483648");
    // The switch has a port that the server was not told of, as the one of the CPU.
    device.control.add_port(7, vec![quiet_port()]).unwrap();
    is_refused(add(&mut client, "quiet", 7, ""), "there is a port 7 already");
    is_refused(client.bm_dev_mgr_remove_port(7), "there is no port 7");
    assert_eq!(shown(&mut client), before);
    assert_eq!(*told.lock().unwrap(), ["open 3 nothing ", "open 7 quiet ", "refused 7"]);

    let fixed = Device::start();
    let reason = "the ports of this switch are those that it started with";
    is_refused(add(&mut fixed.client(), "quiet", 3, ""), reason);
    is_refused(fixed.client().bm_dev_mgr_remove_port(1), reason);
}

/// A frame comes in by a port that was added; after its removal the far end is on its own.
#[test]
fn frames_pass_a_port_that_was_added() {
    let (sends, incoming) = channel();
    let (outgoing, receives) = channel();
    let (device, _) = start(vec![Wire(incoming, outgoing, Vec::new())]);
    let mut client = device.client();
    add(&mut client, "wire", 9, "").unwrap();
    sends.send(vec![0; 60]).unwrap();
    let received = |port: &(PortId, PortCounters)| port.0 == 9 && port.1.rx_packets > 0;
    while !device.control.ask(Request::Ports).unwrap().iter().any(received) {
        std::thread::yield_now();
    }
    client.bm_dev_mgr_remove_port(9).unwrap();
    assert_eq!(sends.send(vec![0; 60]).unwrap_err().0.len(), 60);
    while receives.try_recv().is_ok() {}
    assert_eq!(receives.try_recv(), Err(TryRecvError::Disconnected));
}
