//! What the control side asks of a switch. A request is a value with a place for its answer, so it can wait for the worker of
//! a running switch, which answers between two of its rounds ([`crate::Control`]); a switch that does not run yet answers at
//! once ([`Switch::answer`]). Packets wait while a request is answered: it does what the data path owns, and nothing else. Tables
//! are read and written by any thread, through the handle in [`Moment`].

mod groups;
mod pause;
mod reply;
mod several;

pub use groups::{GroupWrite, NodeWrite};
pub use pause::Pause;
pub use reply::{Answer, Reply, RequestError, answer};
pub(crate) use several::serve_all;

use crate::replication::{NodeHandle, Replica, Replication, ReplicationError, Session};
use crate::switch::{Switch, SwitchError};
use crate::{DeviceMoment, PortCounters, PortId, QueueError, Quotas, attached};
use millrace_engine::Statistics;
use millrace_pipeline::{Bits, CrcParameters, EntryMatch, HashId, MeterId, Program, RegisterId, ValueSetId};
use millrace_state::{
    BuildError, ColorCounts, Held, MeterConfig, ObjectWrite, State, TablesHandle, WriteError,
};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// What may be asked of a switch.
#[derive(Debug)]
pub enum Request {
    /// What runs at this moment.
    Look(Reply<Moment>),
    /// What was counted of each port that the switch knows, by number.
    Ports(Reply<Vec<(PortId, PortCounters)>>),
    /// Switches a port off or on ([`Switch::enable_port`]).
    EnablePort(PortId, bool, Reply<bool>),
    /// Reads or writes objects of a program, if that one still runs.
    Objects(Arc<Program>, ObjectRequest),
    /// Copies all multicast groups and clone sessions. Packets wait for that: whoever does not need them of one moment asks for
    /// [`Request::Groups`] and [`Request::Sessions`].
    Replication(Reply<Replication>),
    /// The first multicast groups from this number on, with all copies that each makes; none: there are no more.
    Groups(u32, Reply<Vec<(u32, Vec<Replica>)>>),
    /// The first clone sessions from this number on; none: there are no more.
    Sessions(u32, Reply<Vec<(u32, Session)>>),
    /// A multicast group, with all copies that it makes.
    Group(u32, Reply<Option<Vec<Replica>>>),
    /// A clone session.
    Session(u32, Reply<Option<Session>>),
    /// Writes to multicast groups and clone sessions, in order; each is done or refused alone, and gives what takes it back.
    Replicate(Vec<GroupWrite>, Reply<Vec<Result<GroupWrite, ReplicationError>>>),
    /// A write to multicast nodes; a new one gives its handle.
    Node(NodeWrite, Reply<Result<Option<NodeHandle>, ReplicationError>>),
    /// Sets other quotas ([`Switch::set_quotas`]).
    SetQuotas(Quotas, Reply<()>),
    /// The quotas, and what is held of entries and memory.
    Quotas(Reply<(Quotas, Held)>),
    /// Sets up queues.
    Queues(QueueWrite, Reply<Result<(), QueueError>>),
    /// Goes on with another program and its objects ([`Switch::take_over`]); gives what ran until now.
    TakeOver(Box<Switch>, Reply<Result<Box<Switch>, SwitchError>>),
    /// No packet comes in until the answer is dropped; requests are answered meanwhile.
    Pause(Reply<Pause>),
}

/// Reads and writes of objects that a worker keeps. Whoever asks for many cells asks for a part at a time, as packets wait.
#[derive(Debug)]
pub enum ObjectRequest {
    /// Cells of registers: for each register its cells, in order.
    Registers(Vec<RegisterId>, Range<u64>, Reply<Answered<Vec<Vec<Bits>>>>),
    /// Cells of a meter.
    Meters(MeterId, Range<u64>, Reply<Answered<Vec<MeterCell>>>),
    /// The members of a value set, in the order in which they were added.
    Values(ValueSetId, Reply<Answered<Vec<Vec<EntryMatch>>>>),
    /// The CRC that a hash computes.
    Hash(HashId, Reply<Answered<CrcParameters>>),
    /// Lists of writes, in order; each list is done or refused as a whole, and gives what takes it back, to be done in its
    /// order.
    Write(Vec<Vec<ObjectWrite>>, Reply<Answered<Vec<Written>>>),
    /// Empties all objects, tables too.
    Reset(Reply<Answered<()>>),
}

/// A meter's cell: its configuration, if it has one, and what it has coloured.
pub type MeterCell = (Option<MeterConfig>, ColorCounts);

/// What takes a list of writes back, or why none of them was done.
pub type Written = Result<Vec<ObjectWrite>, WriteError>;

/// An answer about objects.
pub type Answered<T> = Result<T, ObjectError>;

/// Why objects were not read or written.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectError {
    /// Another program has taken over from the one whose objects were meant.
    Replaced,
    /// The object refused.
    Refused(WriteError),
    /// The objects cannot be made again.
    State(BuildError),
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectError::Replaced => f.write_str("another program has taken over"),
            ObjectError::Refused(error) => error.fmt(f),
            ObjectError::State(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ObjectError {}

impl From<WriteError> for ObjectError {
    fn from(error: WriteError) -> ObjectError {
        ObjectError::Refused(error)
    }
}

/// What queues are to be like: of one class of one port, of one port, or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueWrite {
    /// The port.
    pub port: Option<PortId>,
    /// The class of service.
    pub priority: Option<u8>,
    /// What is set.
    pub setting: QueueSetting,
}

/// A setting of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueSetting {
    /// How many packets they hold.
    Depth(u32),
    /// How many packets a second leave them; 0: no limit.
    Rate(u64),
}

/// A switch at one moment.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The program that runs.
    pub program: Arc<Program>,
    /// Its tables, which any thread reads and writes.
    pub tables: TablesHandle,
    /// The time of the switch in nanoseconds.
    pub now_ns: u64,
    /// The port with the largest number.
    pub largest_port: Option<PortId>,
    /// How many members each value set has, in the order of their ids.
    pub values: Vec<u64>,
    /// Why the interpreter runs the program although compiled code was asked for ([`Switch::without_code`]).
    pub without_code: Option<String>,
    /// The hardware device, if one is in place of engines and traffic manager.
    pub device: Option<DeviceMoment>,
    /// What compiling it took so far, and gave ([`Switch::compile_statistics`]).
    pub compiled: Statistics,
}

impl Moment {
    /// Until when it is known which entries were hit.
    pub fn hits_until_ns(&self) -> u64 {
        self.device.as_ref().map_or(self.now_ns, |device| device.hits_until_ns)
    }

    pub(crate) fn of(switch: &Switch) -> Moment {
        let state = switch.state();
        Moment {
            program: Arc::clone(switch.program()),
            tables: state.handle(),
            now_ns: switch.now_ns(),
            largest_port: switch.counters().ports().map(|(port, _)| port).max(),
            values: switch.program().value_sets.keys().map(|set| state.values(set).count() as u64).collect(),
            without_code: switch.without_code().map(str::to_owned),
            device: attached::moment(switch),
            compiled: switch.compile_statistics(),
        }
    }
}

/// As much of a list as packets wait for at a time: each item counts as one, and so many more.
const PART: usize = 1024;

/// The beginning of a list, until it counts for [`PART`].
fn part<T>(list: impl Iterator<Item = T>, more: impl Fn(&T) -> usize) -> Vec<T> {
    let mut counted = 0;
    let mut part = Vec::new();
    for item in list {
        counted += 1 + more(&item);
        part.push(item);
        if counted >= PART {
            break;
        }
    }
    part
}

/// Does what a request asks of a switch, and answers it.
pub(crate) fn serve(switch: &mut Switch, request: Request) {
    match request {
        Request::Look(to) => to.give(Moment::of(switch)),
        Request::Ports(to) => to.give(switch.counters().ports().collect()),
        Request::EnablePort(port, is_enabled, to) => to.give(switch.enable_port(port, is_enabled)),
        Request::Objects(program, request) => {
            let is_current = Arc::ptr_eq(switch.program(), &program);
            answer_of_objects(is_current.then_some(switch), request);
        }
        Request::Replication(to) => to.give(switch.replication().clone()),
        Request::Groups(first, to) => {
            let groups = switch.replication();
            let with_copies = |(id, _)| Some((id, groups.copies(id)?));
            to.give(part(groups.groups_from(first).filter_map(with_copies), |(_, copies)| copies.len()));
        }
        Request::Sessions(first, to) => {
            let sessions = switch.replication().sessions_from(first);
            let sessions = sessions.map(|(id, session)| (id, session.clone()));
            to.give(part(sessions, |(_, session)| session.copies.len()));
        }
        Request::Group(id, to) => to.give(switch.replication().copies(id)),
        Request::Session(id, to) => to.give(switch.replication().session(id).cloned()),
        Request::Replicate(writes, to) => {
            let mut done = |write| attached::write_groups(switch, |groups| groups.write(write));
            to.give(writes.into_iter().map(&mut done).collect());
        }
        Request::Node(write, to) => {
            to.give(attached::write_groups(switch, |groups| groups.write_node(write)))
        }
        Request::SetQuotas(quotas, to) => {
            switch.set_quotas(quotas);
            to.give(());
        }
        Request::Quotas(to) => to.give((switch.quotas(), switch.state().account().held())),
        Request::Queues(write, to) => to.give(switch.write_queues(write)),
        Request::TakeOver(next, to) => to.give(match switch.check_room_for(&next) {
            Ok(()) => Ok(Box::new(switch.take_over(*next))),
            Err(error) => Err(error),
        }),
        // Nothing comes in where no worker is.
        Request::Pause(to) => to.give(Pause::of_none()),
    }
}

/// Answers a request about objects of the program that runs; without a switch that is another one by now.
fn answer_of_objects(switch: Option<&mut Switch>, request: ObjectRequest) {
    let switch = switch.ok_or(ObjectError::Replaced);
    match request {
        ObjectRequest::Registers(registers, cells, to) => to.give(switch.and_then(|switch| {
            let read = |register: &RegisterId| {
                let value = |cell| switch.state().register_value(*register, cell);
                cells.clone().map(value).collect::<Result<Vec<_>, _>>()
            };
            Ok(registers.iter().map(read).collect::<Result<_, _>>()?)
        })),
        ObjectRequest::Meters(meter, cells, to) => to.give(switch.and_then(|switch| {
            let state = switch.state();
            let read = |cell| Ok((state.meter_config(meter, cell)?, state.meter_counts(meter, cell)?));
            Ok(cells.map(read).collect::<Result<_, WriteError>>()?)
        })),
        ObjectRequest::Values(set, to) => to.give(switch.map(|switch| switch.state().values(set).collect())),
        ObjectRequest::Hash(hash, to) => {
            to.give(switch.map(|switch| switch.state().own_hash(hash).parameters()));
        }
        ObjectRequest::Write(lists, to) => to.give(switch.map(|switch| {
            let state = switch.state_mut();
            lists.iter().map(|list| write_all(state, list)).collect()
        })),
        ObjectRequest::Reset(to) => to.give(switch.and_then(|switch| {
            let handle = switch.state().handle();
            let mut tables = handle.lock();
            switch.state_mut().reset(&mut tables).map_err(ObjectError::State)
        })),
    }
}

/// Does all writes of a list, or none.
fn write_all(state: &mut State, list: &[ObjectWrite]) -> Written {
    let mut back: Vec<Vec<ObjectWrite>> = Vec::with_capacity(list.len());
    for write in list {
        let done = state.inverse(write).and_then(|inverse| {
            back.push(inverse);
            state.write(write)
        });
        if let Err(error) = done {
            // What was there before is accepted again.
            back.iter().rev().flatten().for_each(|write| drop(state.write(write)));
            return Err(error);
        }
    }
    Ok(back.into_iter().rev().flatten().collect())
}
