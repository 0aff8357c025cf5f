//! What a lane is asked to do, between two rounds.

use crate::lane::Lane;
use crate::member::Member;
use crate::physical::Physical;
use crate::quota::TimeShare;
use crate::routes::{Classify, Routes};
use crate::wire::Wire;
use crate::{MemberId, PhysicalReport, devices};
use millrace_dataplane::{PortId, Ringer, Summary};
use millrace_drivers::QueuePair;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

/// Most commands that wait for a lane; whoever sends one more waits.
const MAX_COMMANDS: usize = 256;

/// The commands of a lane.
pub(crate) enum Command {
    AddMember(MemberId, Box<Member>),
    /// The switch goes; what waits for it is lost, and counted.
    RemoveMember(MemberId, Reply<Box<Member>>),
    SetShare(MemberId, TimeShare),
    /// The switch has a port more.
    AddWire(MemberId, Arc<Wire>, Reply<()>),
    /// The switch has a port less; what waits for it is lost, and counted.
    RemoveWire(MemberId, PortId, Reply<()>),
    AddPhysical(u16, Box<dyn QueuePair>),
    RemovePhysical(u16, Reply<Box<dyn QueuePair>>),
    SetRoutes(Arc<Routes>, Reply<()>),
    SetClassify(Option<Box<dyn Classify>>, Reply<()>),
    /// What the ports of the machine have counted, and those that broke.
    Statistics(Reply<PhysicalReport>),
    Stop,
}

/// Where an answer goes.
pub(crate) type Reply<T> = SyncSender<T>;

/// The commands that wait for a lane.
pub(crate) struct Commands(Receiver<Command>);

/// Sends commands to a lane.
#[derive(Clone)]
pub(crate) struct Sender {
    to: SyncSender<Command>,
    ringer: Ringer,
}

/// Both ends.
pub(crate) fn commands(ringer: Ringer) -> (Sender, Commands) {
    let (to, from) = sync_channel(MAX_COMMANDS);
    (Sender { to, ringer }, Commands(from))
}

/// The lane has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended;

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the device has ended")
    }
}

impl std::error::Error for Ended {}

impl Sender {
    pub(crate) fn send(&self, command: Command) -> Result<(), Ended> {
        self.to.send(command).map_err(|_| Ended)?;
        self.ringer.ring();
        Ok(())
    }

    /// Sends a command and waits for its answer.
    pub(crate) fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, Ended> {
        let (to, answer) = sync_channel(1);
        self.send(command(to))?;
        answer.recv().map_err(|_| Ended)
    }
}

impl Commands {
    pub(crate) fn next(&self) -> Option<Command> {
        match self.0.try_recv() {
            Ok(command) => Some(command),
            Err(TryRecvError::Empty) => None,
            // Nobody can ask for anything any more.
            Err(TryRecvError::Disconnected) => Some(Command::Stop),
        }
    }
}

impl Command {
    pub(crate) fn carry_out(self, lane: &mut Lane) {
        match self {
            Command::AddMember(id, member) => {
                let at = usize::from(id);
                if lane.members.len() <= at {
                    lane.members.resize_with(at + 1, || None);
                }
                lane.members[at] = Some(member);
                lane.fair.enter(id);
                lane.set_quanta();
                lane.activate(id);
            }
            Command::RemoveMember(id, to) => {
                if let Some(member) = lane.members.get_mut(usize::from(id)).and_then(Option::take) {
                    member.wires().for_each(|wire| wire.close());
                    lane.forget(id);
                    lane.set_quanta();
                    // It is taken apart elsewhere, which may take long.
                    let _ = to.send(member);
                }
            }
            Command::AddWire(id, wire, to) => {
                if let Some(Some(member)) = lane.members.get_mut(usize::from(id)) {
                    member.add_wire(wire);
                }
                let _ = to.send(());
            }
            Command::RemoveWire(id, port, to) => {
                if let Some(Some(member)) = lane.members.get_mut(usize::from(id)) {
                    member.remove_wire(port);
                }
                let _ = to.send(());
            }
            Command::SetShare(id, share) => {
                if let Some(Some(member)) = lane.members.get_mut(usize::from(id)) {
                    member.set_share(share);
                    lane.set_quanta();
                }
            }
            Command::AddPhysical(number, pair) => lane.physicals.push(Physical::new(number, pair)),
            Command::RemovePhysical(number, to) => {
                if let Some(at) = lane.physicals.iter().position(|known| known.number == number) {
                    let pair = lane.physicals.remove(at).end(lane.supplies.pool());
                    pair.into_iter().for_each(|pair| _ = to.send(pair));
                }
            }
            Command::SetRoutes(routes, to) => {
                lane.set_routes(routes);
                let _ = to.send(());
            }
            Command::SetClassify(classify, to) => {
                lane.set_classify(classify);
                let _ = to.send(());
            }
            Command::Statistics(to) => {
                let statistics = |physical: &Physical| {
                    Some((physical.number, devices::with(physical.place, |device| device.statistics())?))
                };
                let ports = lane.physicals.iter().filter_map(statistics).collect();
                let _ = to.send(PhysicalReport { ports, failures: lane.failures.clone() });
            }
            Command::Stop => {}
        }
    }
}

/// How a switch ended that a lane has given back.
pub(crate) fn end(member: Member) -> Summary {
    member.worker.end()
}
