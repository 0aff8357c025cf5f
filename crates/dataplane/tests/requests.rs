//! What is asked of a running switch, and of one that does not run.

mod wire;

use millrace_dataplane::{
    Answer, Control, EngineKind, ObjectError, ObjectRequest, PortId, Reply, Request, Switch, SwitchConfig,
    Worker, answer,
};
use millrace_pipeline::{Bits, RegisterId, text};
use millrace_state::{ObjectWrite, WriteError};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);
/// Longer than a worker takes for many rounds.
const A_WHILE: Duration = Duration::from_millis(50);

/// Counts the packets that come in, in the first cell of a register, and sends them back with the count.
const PROGRAM: &str = r#"
program counting
errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
ingress (parse, count)
egress (send, deparse)
intrinsic ingress_port = i_in
intrinsic egress_spec = i_spec
intrinsic parser_error = i_perr
header h: h_t {
    number: bit<8>
}
metadata i_in: bit<32>
metadata i_spec: bit<32>
metadata i_perr: bit<16>
register "seen": bit<8> size 4
body parser parse { block0 state start: extract h end }
body control count {
block0:
    register_read h.number, seen, 32w0
    h.number = add(h.number, 8w1)
    register_write seen, 32w0, h.number
    i_spec = i_in
    end
}
body control send { block0: end }
body deparser deparse { block0: emit h end }
"#;

fn switch() -> Switch {
    let program = text::parse(PROGRAM).unwrap_or_else(|error| panic!("{error}"));
    Switch::new(Arc::new(program), SwitchConfig { engine: EngineKind::Fastest, ..SwitchConfig::default() })
        .unwrap()
}

/// A running switch with one port.
struct Running {
    control: Control,
    sends: Sender<Vec<u8>>,
    receives: Receiver<Vec<u8>>,
    worker: JoinHandle<millrace_dataplane::Summary>,
}

impl Running {
    fn start() -> Running {
        let (port, sends, receives) = wire::port();
        let worker = Worker::new(switch(), vec![(1 as PortId, port)]).unwrap();
        let control = worker.control();
        Running { control, sends, receives, worker: std::thread::spawn(move || worker.run()) }
    }

    /// Sends a packet and gives the number that it comes back with.
    fn count(&self) -> u8 {
        self.sends.send(vec![0]).unwrap();
        self.receives.recv_timeout(PATIENCE).unwrap()[0]
    }

    fn stop(self) {
        self.control.stop();
        self.worker.join().unwrap();
    }
}

/// The register, of whatever program has one.
fn seen() -> RegisterId {
    switch().program().registers.keys().next().unwrap()
}

fn set(cells: std::ops::Range<u64>, value: u128) -> ObjectWrite {
    ObjectWrite::Register { register: seen(), cells, value: Bits::new(8, value) }
}

fn cells(control: &Control) -> Vec<u128> {
    let program = control.ask(Request::Look).unwrap().program;
    let read = |to| Request::Objects(program, ObjectRequest::Registers(vec![seen()], 0..4, to));
    let values = control.ask(read).unwrap().unwrap();
    values.iter().flatten().map(|value| value.to_u64().unwrap().into()).collect()
}

#[test]
fn a_paused_worker_takes_no_packet_and_answers() {
    let running = Running::start();
    assert_eq!(running.count(), 1);
    let program = running.control.ask(Request::Look).unwrap().program;
    // Two at once, as of two controllers: it goes on after the last.
    let one = running.control.ask(Request::Pause).unwrap();
    let two = running.control.ask(Request::Pause).unwrap();
    running.sends.send(vec![0]).unwrap();
    drop(one);
    assert_eq!(running.receives.recv_timeout(A_WHILE), Err(RecvTimeoutError::Timeout));
    let write = |to| Request::Objects(program, ObjectRequest::Write(vec![vec![set(0..1, 40)]], to));
    let back = running.control.ask(write).unwrap().unwrap();
    assert_eq!(back, [Ok(vec![set(0..1, 1)])]);
    drop(two);
    assert_eq!(running.receives.recv_timeout(PATIENCE).unwrap(), [41]);
    running.stop();
}

#[test]
fn a_pause_that_nobody_waits_for_is_none() {
    let running = Running::start();
    let (to, gone): (Reply<_>, Answer<_>) = answer();
    drop(gone);
    running.control.post(Request::Pause(to)).unwrap();
    assert_eq!(running.count(), 1);
    // An answer that was given and never looked at.
    let (to, unread) = answer();
    running.control.post(Request::Pause(to)).unwrap();
    running.control.ask(Request::Look).unwrap();
    drop(unread);
    assert_eq!(running.count(), 2);
    running.stop();
}

#[test]
fn a_paused_worker_ends_when_it_is_asked_to() {
    let running = Running::start();
    let control = running.control.clone();
    let pause = running.control.ask(Request::Pause).unwrap();
    running.stop();
    assert!(control.ask(Request::Look).is_err());
    drop(pause);
}

#[test]
fn a_list_of_writes_is_done_as_a_whole_or_not_at_all() {
    let running = Running::start();
    let program = running.control.ask(Request::Look).unwrap().program;
    let lists = vec![
        vec![set(0..2, 5), set(1..3, 6)],
        // There is no cell 4.
        vec![set(0..1, 9), set(3..5, 9)],
        vec![set(3..4, 7)],
    ];
    let write = |lists| {
        let program = Arc::clone(&program);
        running.control.ask(|to| Request::Objects(program, ObjectRequest::Write(lists, to))).unwrap().unwrap()
    };
    let done = write(lists);
    assert_eq!(cells(&running.control), [5, 6, 6, 7]);
    assert_eq!(done[1], Err(WriteError::Index { index: 4, size: 4 }));
    // The first list, last write first: what was there, in runs.
    assert_eq!(done[0], Ok(vec![set(1..2, 5), set(2..3, 0), set(0..2, 0)]));
    let back: Vec<Vec<ObjectWrite>> = done.into_iter().rev().filter_map(Result::ok).collect();
    write(back);
    assert_eq!(cells(&running.control), [0, 0, 0, 0]);
    running.stop();
}

#[test]
fn objects_of_a_program_that_has_gone_are_not_written() {
    let running = Running::start();
    let before = running.control.ask(Request::Look).unwrap().program;
    let old = running.control.ask(|to| Request::TakeOver(Box::new(switch()), to)).unwrap().unwrap();
    assert!(Arc::ptr_eq(old.program(), &before));
    let write = |to| Request::Objects(before, ObjectRequest::Write(vec![vec![set(0..1, 5)]], to));
    assert_eq!(running.control.ask(write).unwrap(), Err(ObjectError::Replaced));
    assert_eq!(cells(&running.control), [0, 0, 0, 0]);
    running.stop();
}

#[test]
fn a_switch_that_does_not_run_answers_at_once() {
    let mut switch = switch();
    let program = Arc::clone(switch.program());
    let (to, answered) = answer();
    switch.answer(Request::Objects(program, ObjectRequest::Write(vec![vec![set(2..4, 3)]], to)));
    assert_eq!(answered.wait().unwrap().unwrap(), [Ok(vec![set(2..4, 0)])]);
    assert_eq!(switch.state().register_read(seen(), 3), Bits::new(8, 3));
    let (to, paused) = answer();
    switch.answer(Request::Pause(to));
    drop(paused.wait().unwrap());
}
