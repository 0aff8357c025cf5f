//! A queue pair with chains: what it receives and what it sends passes their steps.

use crate::flows::Account;
use crate::headers::Headers;
use crate::selector::{Decided, Seen, Selector, bits};
use crate::status::StepCounts;
use crate::succession::{Change, Handover, Next};
use millrace_drivers::{
    Alarm, Around, PortError, QueuePair, Received, TimeSource, Transmitted, wall_clock_ns,
};
use millrace_frames::{Batch, Packet, PacketPool};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

/// How often flows that have ended are looked for while no packets come.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// A step, ready to run.
pub(crate) struct Step {
    pub(crate) selector: Option<Selector>,
    pub(crate) account: Option<Account>,
    pub(crate) counts: Arc<StepCounts>,
}

/// The steps of one direction.
pub(crate) struct Steps {
    steps: Vec<Step>,
    /// Of the packets of a batch, kept for its memory.
    headers: Vec<Headers>,
    look_at_ns: u64,
}

impl Steps {
    pub(crate) fn new(steps: Vec<Step>) -> Steps {
        Steps { steps, headers: Vec::with_capacity(64), look_at_ns: 0 }
    }

    pub(crate) fn has_account(&self) -> bool {
        self.steps.iter().any(|step| step.account.is_some())
    }

    /// The packets that pass all steps, as bits. There are at most 64, as in a batch. `now_ns` is the time of all, where that
    /// is not theirs.
    pub(crate) fn run(&mut self, packets: &[Packet], now_ns: Option<u64>) -> u64 {
        let all = (!0u64).checked_shr(64u32.saturating_sub(packets.len() as u32)).unwrap_or(0);
        let mut seen = Seen::new(packets, &mut self.headers);
        let mut set = all;
        for Step { selector, account, counts } in &mut self.steps {
            if set == 0 {
                break;
            }
            let decided = match selector {
                Some(selector) => selector.decide(&mut seen, set, account.is_some()),
                None => Decided { pass: set, account: set },
            };
            if let Some(account) = account.as_mut().filter(|_| decided.account != 0) {
                let headers = seen.headers();
                account.count(bits(decided.account).map(|at| {
                    let packet = &packets[at];
                    (&headers[at], packet.len(), now_ns.unwrap_or(packet.timestamp_ns))
                }));
            }
            counts.add(set, decided);
            set = decided.pass;
        }
        let time_ns = now_ns.or(packets.first().map(|packet| packet.timestamp_ns)).unwrap_or(0);
        self.look(time_ns);
        set
    }

    /// Tells flows that have ended, once a second.
    fn look(&mut self, now_ns: u64) {
        if now_ns >= self.look_at_ns {
            self.look_at_ns = now_ns.saturating_add(LOOK.as_nanos() as u64);
            self.steps
                .iter_mut()
                .filter_map(|step| step.account.as_mut())
                .for_each(|account| account.expire(now_ns));
        }
    }
}

/// A queue pair whose packets pass chains.
#[repr(align(128))]
pub(crate) struct ChainedPort {
    port: Box<dyn QueuePair>,
    input: Option<Steps>,
    output: Option<Steps>,
    is_simulated: bool,
    /// Wakes the worker for flows that end while no packets come.
    alarm: Option<Alarm>,
    look_at_ns: u64,
    /// Where the chains of the next program are.
    handover: Option<Arc<Handover>>,
}

impl ChainedPort {
    pub(crate) fn new(
        port: Box<dyn QueuePair>,
        input: Option<Steps>,
        output: Option<Steps>,
        handover: Option<Arc<Handover>>,
    ) -> ChainedPort {
        let is_simulated = port.time_source() == TimeSource::Simulated;
        let has_account = input.iter().chain(&output).any(Steps::has_account);
        // Without an alarm flows are told with the next packet.
        let alarm = if has_account && !is_simulated { Alarm::every(LOOK).ok() } else { None };
        ChainedPort { port, input, output, is_simulated, alarm, look_at_ns: 0, handover }
    }

    /// Takes the chains of a program that has taken over.
    #[inline]
    fn keep_up(&mut self) {
        if let Some(handover) = &self.handover
            && let Some(next) = handover.take()
        {
            let exchange = |now: &mut Option<Steps>, change| match change {
                Change::Stays => Change::Stays,
                Change::Becomes(steps) => Change::Becomes(std::mem::replace(now, steps)),
            };
            let input = exchange(&mut self.input, next.input);
            let output = exchange(&mut self.output, next.output);
            // An alarm goes on to ring where nobody needs it any more.
            let alarm = match &self.alarm {
                Some(_) => next.alarm,
                None => std::mem::replace(&mut self.alarm, next.alarm),
            };
            handover.retire(Next { input, output, alarm });
        }
    }

    /// Looks for flows that have ended while no packets come.
    fn idle(&mut self) {
        let Some(alarm) = &self.alarm else { return };
        let now_ns = wall_clock_ns();
        if now_ns >= self.look_at_ns {
            self.look_at_ns = now_ns.saturating_add(LOOK.as_nanos() as u64 / 2);
            alarm.has_rung();
            self.input.iter_mut().chain(&mut self.output).for_each(|steps| steps.look(now_ns));
        }
    }
}

/// Gives those packets from a place on back to the pool whose bits are not set.
fn keep(batch: &mut Batch, from: usize, set: u64, pool: &mut PacketPool) {
    let mut at = 0;
    batch.recycle_if(pool, |_| {
        let is_dropped = at >= from && set >> (at - from) & 1 == 0;
        at += 1;
        is_dropped
    });
}

impl Around for ChainedPort {
    type Inner = dyn QueuePair;

    fn inner(&self) -> &Self::Inner {
        &*self.port
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut *self.port
    }

    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        self.keep_up();
        let before = batch.len();
        let received = self.port.receive(batch, pool);
        let count = batch.len() - before;
        if count == 0 {
            self.idle();
        } else if let Some(input) = &mut self.input {
            let set = input.run(&batch.packets()[before..], None);
            if set.count_ones() as usize != count {
                keep(batch, before, set, pool);
            }
        }
        received
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        self.keep_up();
        if let Some(output) = &mut self.output
            && !batch.is_empty()
        {
            let now_ns = (!self.is_simulated).then(wall_clock_ns);
            let set = output.run(batch.packets(), now_ns);
            if set.count_ones() as usize != batch.len() {
                keep(batch, 0, set, pool);
            }
            if batch.is_empty() {
                return Ok(Transmitted::default());
            }
        }
        self.port.transmit(batch, pool)
    }

    fn poll_fd(&self) -> Option<RawFd> {
        let descriptor = self.port.poll_fd()?;
        Some(self.alarm.as_ref().map_or(descriptor, |alarm| alarm.with(descriptor)))
    }
}
