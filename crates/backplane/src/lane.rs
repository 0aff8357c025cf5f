//! A thread of the device: ports of the machine, and the switches that it runs.
//!
//! ```text
//!  round:  requests -> frames of ports to the inboxes of switches -> each switch in its turn -> exits to ports
//!                                                                   ^--- again, while packets wait for switches ---'
//! ```
//!
//! **Turns.** Switches that have packets are served by deficit round robin in time used: in each round of turns a switch gets its
//! quantum, in proportion to its share ([`TimeShare`]), and runs until that is used up or nothing waits for it. What it uses too much,
//! as a batch is not interrupted, it has less of later. *Theorem* (Shreedhar, Varghese 1995, with time for bytes): a switch that always
//! has packets uses at least its share of the time of any long interval, less one quantum and one step, however many others there are
//! and whatever they do. Answers to requests count as its time too.
//!
//! **Standings.** That theorem is about switches that always have packets here. While a switch takes a step of milliseconds, as a batch may, the
//! inbox of another is filled and overflows; after it that other has its inbox emptied in microseconds, and then nothing until the lane
//! receives again. Rounds of turns would then pay the debt of the first in no time. So a switch that is ahead of others in what it has used of
//! its share has no turn while these have packets ([`crate::fair`]). The lane's own work counts there, too: who frames are received for and sent for
//! pays for that, also for frames that it has no room for. It does not count as used, nor for what a switch gets at most.
//!
//! Where the system lets another thread run, that is nobody's time here: long stretches are counted by the processor time of the lane
//! ([`Processor`]).
//!
//! **Bursts.** Frames of many switches come interleaved. A switch that was run for each of them would be as slow as its first packet
//! always is. So a lane takes frames from its ports until there are about [`BURST`] for each switch that has any, or none is left, and
//! runs the switches then. At low load nothing waits for that: the ports have no more frames. None are collected that would have no room:
//! no more for a port of a switch than may wait for a port of any switch here, also one that gets them from another switch. That is looked at
//! between two batches of a port of the machine, so a batch may be too many. Nobody waits for a switch that is slow.

use crate::agenda::Agenda;
use crate::commands::{Command, Commands};
use crate::exit::Exit;
use crate::fair::Fair;
use crate::member::Member;
use crate::own::LaneKey;
use crate::physical::Physical;
use crate::quota::{TimeShare, WHOLE};
use crate::rate::Rate;
use crate::routes::{Classify, Routes, SLOW, Spread};
use crate::time::{Processor, now_ns};
use crate::wire::Wire;
use crate::{MemberId, PortFailure, devices};
use millrace_dataplane::{Doorbell, Progress, Supplies};
use millrace_drivers::{PortError, wait_readable};
use millrace_frames::{Batch, MAX_BATCH, PacketPool, ask_for};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

/// Frames that a lane collects for each switch that has any, before it runs them; a batch of those that are longer than so many bytes.
const BURST: usize = 2 * MAX_BATCH;
const LONG: usize = 512;
/// Frames and bytes that a lane collects where a few switches have any: a round costs as much as many frames, and so many are still in the cache.
const FEW: usize = 16 * MAX_BATCH;
const FEW_BYTES: usize = 96 << 10;
/// Frames that a lane collects at most, with those that wait for its switches: what is switched soon after it came is still in the cache, but a turn of
/// a switch that is not in the cache costs as much as many frames, so 256 switches are to have more than a few frames each.
const MAX_COLLECTED: usize = 3 << 12;
/// The same, where that would be more than a quarter of the packets.
const LEAST_COLLECTED: usize = 1 << 12;
/// How long a round of turns is at least, in nanoseconds, and the least quantum: about what a batch takes.
const ROUND_NS: i64 = 500_000;
const LEAST_QUANTUM_NS: i64 = 5_000;
/// How long a lane goes on with rounds of turns while packets wait for switches, in nanoseconds, before it takes more from its ports:
/// longer than it takes to receive what it collects, as it would be busy with frames that have no room otherwise.
const TURNS_NS: u64 = 1_000_000;
/// How far a switch may be ahead of others, in rounds of turns: in each, all who have packets for it advance by one.
const LEAD_ROUNDS: u64 = 2;
/// Requests of a switch that are answered at a time.
const ANSWERS: usize = 16;
/// Of each second so many nanoseconds are for answers, also of switches that are ahead of others, and so many at once: who changes a switch should
/// not wait until all others have had their turns, nor should the switch, and no change should take longer than a batch may.
const ANSWERS_NS: u64 = 10_000_000;
const ANSWERS_BURST_NS: u64 = 500_000;
/// How long one turn of each goes on while requests wait, in nanoseconds.
const LOOK_NS: u64 = 250_000;
/// Steps of a switch between two looks at the clock.
const STEPS: usize = 4;
/// How long a lane sleeps when it cannot wait for its descriptors, or when all that have packets have used their time.
const SHORT: Duration = Duration::from_micros(200);

/// See the module's documentation.
pub(crate) struct Lane {
    doorbell: Doorbell,
    commands: Commands,
    key: Arc<LaneKey>,
    asleep: Arc<AtomicBool>,
    /// Switches that packets have come for, and exits that packets wait in.
    pub(crate) members_told: Arc<Agenda<MemberId>>,
    pub(crate) exits_told: Arc<Agenda<Arc<Exit>>>,
    pub(crate) members: Vec<Option<Box<Member>>>,
    pub(crate) physicals: Vec<Physical>,
    /// What its switches have for their steps: packets, and room for a batch.
    pub(crate) supplies: Supplies,
    spread: Spread,
    /// Switches that have packets, in the order of their turns.
    active: VecDeque<MemberId>,
    timers: BinaryHeap<Reverse<(u64, MemberId)>>,
    /// Switches with requests that wait.
    called: Vec<MemberId>,
    /// What the thread has had of its processor.
    processor: Processor,
    /// Who is ahead of others.
    pub(crate) fair: Fair,
    /// What is left of the time for answers of switches that are ahead of others.
    answers: Rate,
    /// What the lane has done until then somebody was charged for.
    charged_until_ns: u64,
    /// Until when the only switch of the lane has run, if the lane has not slept since: a look at the clock costs as much as a frame, and all
    /// that the lane has done since was for that switch.
    ran_until_ns: Option<u64>,
    /// What was on the agendas, to use its memory again.
    told: (Vec<MemberId>, Vec<Arc<Exit>>),
    /// How many frames ports took of which switches, to charge these.
    sent: Vec<(MemberId, usize)>,
    received: Batch,
    pub(crate) failures: Vec<PortFailure>,
    is_stopped: bool,
}

impl Lane {
    pub(crate) fn new(doorbell: Doorbell, commands: Commands, pool: PacketPool, routes: Arc<Routes>) -> Lane {
        let (key, asleep) = (LaneKey::new(), Arc::<AtomicBool>::default());
        Lane {
            members_told: Arc::new(Agenda::new(Arc::clone(&key), Arc::clone(&asleep), doorbell.ringer())),
            exits_told: Arc::new(Agenda::new(Arc::clone(&key), Arc::clone(&asleep), doorbell.ringer())),
            key,
            asleep,
            doorbell,
            commands,
            members: Vec::new(),
            physicals: Vec::new(),
            supplies: Supplies::new(pool),
            spread: Spread::new(routes, None),
            active: VecDeque::new(),
            timers: BinaryHeap::new(),
            called: Vec::new(),
            processor: Processor::default(),
            fair: Fair::default(),
            answers: Rate::new(ANSWERS_NS, ANSWERS_BURST_NS, now_ns()),
            charged_until_ns: 0,
            ran_until_ns: None,
            told: Default::default(),
            sent: Vec::new(),
            received: Batch::new(),
            failures: Vec::new(),
            is_stopped: false,
        }
    }

    /// Runs until it is told to end.
    pub(crate) fn run(mut self) {
        self.key.enter();
        while !self.is_stopped {
            if !self.round() {
                self.rest();
            }
        }
        // An exit on the agenda holds the agenda.
        self.exits_told.take(&mut self.told.1);
        devices::remove_all();
    }

    /// One round; whether there was anything to do.
    fn round(&mut self) -> bool {
        let mut busy = self.answer_all();
        busy |= self.receive();
        self.wake_fed();
        busy |= self.wake_late();
        self.take_told();
        if self.active.is_empty() {
            return busy | self.send();
        }
        let is_alone = self.members.len() == 1;
        let begun = self.ran_until_ns.take().filter(|_| is_alone).unwrap_or_else(now_ns);
        self.fair.release(begun);
        let (mut now, others_ns) = (begun, self.processor.others_ns());
        loop {
            let any = self.run_members(&mut now);
            let sent = self.send();
            // The switches whose frames were sent have been charged for sending: the switch with the next turn is not.
            now = now.max(self.charged_until_ns);
            // Who waits for another's next packets waits for less time than a sleep takes.
            busy |= any != Some(false) || sent;
            let took = now.saturating_sub(begun + (self.processor.others_ns() - others_ns));
            if any != Some(true) || self.active.is_empty() || took >= TURNS_NS {
                self.ran_until_ns = Some(now);
                return busy;
            }
            // A request ends no turns: frames wait for switches, and more would have no room.
            if self.doorbell.rings() && self.answer_all() {
                now = now_ns();
            }
        }
    }

    /// Carries out commands if the doorbell has rung, and answers requests of switches; whether there were any.
    fn answer_all(&mut self) -> bool {
        let busy = self.doorbell.has_rung() && self.answer();
        busy | (!self.called.is_empty() && self.answer_called())
    }

    /// Does what was asked of the lane, and notes of which switches something was asked.
    fn answer(&mut self) -> bool {
        self.ran_until_ns = None;
        let mut is_changed = false;
        while !self.is_stopped
            && let Some(command) = self.commands.next()
        {
            is_changed = true;
            match command {
                Command::Stop => self.is_stopped = true,
                other => other.carry_out(self),
            }
        }
        if is_changed {
            // Not for each request of a switch: there may be thousands of ports.
            let wires = self.members.iter().flatten().flat_map(|member| member.wires());
            self.spread.set_places(wires.map(|wire| wire.places()).min().unwrap_or_default());
            self.find_sources();
        }
        for (at, member) in self.members.iter_mut().enumerate() {
            let Some(member) = member else { continue };
            if member.worker.was_called() && !member.is_called {
                member.is_called = true;
                if !member.is_active {
                    self.fair.join(at as MemberId);
                }
                self.called.push(at as MemberId);
            }
        }
        true
    }

    /// Finds out which ports of the machine feed a port of a switch themselves: those that are one's as a whole, where a switch that may use all of the
    /// time has the lane alone ([`devices`]).
    fn find_sources(&mut self) {
        let mut present =
            (0..).zip(&mut self.members).filter_map(|(id, member)| Some((id, member.as_mut()?)));
        let only = match (present.next(), present.next()) {
            (Some((id, member)), None) if member.share().largest >= WHOLE && member.has_bits() => {
                Some((id, member))
            }
            _ => None,
        };
        let Some((id, member)) = only else {
            self.physicals.iter_mut().for_each(|physical| physical.feed(None));
            self.members.iter_mut().flatten().for_each(|member| member.is_fed = false);
            return;
        };
        for physical in &mut self.physicals {
            let wire = self.spread.whole(physical.number).filter(|wire| wire.member_here() == Some(id));
            let is_its_own = |wire: &&Arc<Wire>| member.wires().any(|own| Arc::ptr_eq(own, wire));
            physical.feed(wire.filter(is_its_own));
        }
        member.is_fed = self.physicals.iter().any(|physical| physical.feeds.is_some());
    }

    /// Does what was asked of switches, as far as they have time; whether anything was done.
    fn answer_called(&mut self) -> bool {
        self.ran_until_ns = None;
        let mut any = false;
        let limit = self.fair.limit(self.active.iter().chain(&self.called).copied());
        for _ in 0..self.called.len() {
            let now = now_ns();
            let id = self.called.remove(0);
            let Some(Some(member)) = self.members.get_mut(usize::from(id)) else { continue };
            let is_free = self.answers.has_any(now);
            if !self.fair.allows(id, limit) && !is_free {
                self.called.push(id);
                continue;
            }
            any = true;
            self.processor.begin(now);
            let more = member.worker.answer(ANSWERS, &mut self.supplies);
            let then = now_ns();
            let cost = self.processor.charge(then.saturating_sub(now), then);
            self.answers.owe(cost, then);
            // The switch does not pay with its turns for what there is time for: it would forward nothing for many rounds after a swap.
            match is_free {
                true => member.count_time(cost, then),
                false => {
                    member.use_time(cost, then);
                    self.fair.charge(id, cost);
                }
            }
            self.charged_until_ns = then;
            member.is_called = more;
            if more {
                self.called.push(id);
            }
            // An answer may have packets go on, and the end of a pause does.
            self.activate(id);
        }
        any
    }

    /// Takes frames from the ports and gives them to the inboxes of their switches.
    fn receive(&mut self) -> bool {
        let Lane { physicals, supplies, spread, received, failures, members, active, fair, .. } = self;
        let pool = supplies.pool();
        // Of packets that wait for a slow switch no more count: nobody waits for it.
        let waiting = |id: &MemberId| member(members, *id).map_or(0, |member| member.waiting().min(SLOW));
        let waiting: usize = active.iter().map(waiting).sum();
        let most = MAX_COLLECTED.min((pool.limit() / 4).max(LEAST_COLLECTED));
        // What is collected is left to nobody: no more than half of what there is, as switches may have as much wait as is left (`Counts::cut`).
        let most = most.min(pool.available_of(2 * most) / 2);
        let most = most.saturating_sub(waiting).max(MAX_BATCH);
        // Nobody is to be told from others where there is one switch.
        let begun = if members.len() > 1 { now_ns() } else { 0 };
        let mut any = false;
        loop {
            let mut more = false;
            for physical in physicals.iter().filter(|physical| physical.feeds.is_none()) {
                let received_more = devices::with(physical.place, |device| {
                    let more = device.receive(received, pool);
                    device.take_failure().iter().for_each(|error| note(failures, physical.number, error));
                    more
                });
                let may_be_more = received_more.unwrap_or(false);
                // A port that gives nothing waits for packets of the pool: asking again at once would free none.
                more |= may_be_more && !received.is_empty();
                if !received.is_empty() {
                    any = true;
                    spread.give(physical.number, received, pool);
                }
            }
            let touched = spread.touched();
            let collected = spread.collected();
            let few = collected < FEW && spread.bytes() < FEW_BYTES;
            let burst = if spread.bytes() > LONG * collected { MAX_BATCH } else { BURST };
            let enough = collected >= most || collected >= burst * touched && !few;
            if !more || enough || spread.is_full() {
                break;
            }
        }
        for wire in physicals.iter().filter_map(|physical| physical.feeds.as_ref()) {
            wire.look_at_source();
        }
        if !any || begun == 0 {
            spread.hand_over(pool, |_, _| {});
            return any;
        }
        let (collected, now) = (spread.collected() as u64, now_ns());
        let took = now.saturating_sub(begun);
        spread.hand_over(pool, |wire, packets| {
            let member = wire.member_here().into_iter();
            member.for_each(|id| fair.charge(id, took * packets as u64 / collected.max(1)));
        });
        self.charged_until_ns = now;
        any
    }

    /// The switch that takes frames from devices itself looks for some.
    fn wake_fed(&mut self) {
        let fed = self.physicals.iter().find_map(|physical| physical.feeds.as_ref()?.member_here());
        if let Some(id) = fed
            && let Some(member) = member(&self.members, id)
            && !member.is_paused
        {
            self.activate(id);
        }
    }

    /// Has switches go on whose packets have waited for their time.
    fn wake_late(&mut self) -> bool {
        if self.timers.is_empty() {
            return false;
        }
        let now = now_ns();
        let mut any = false;
        while let Some(Reverse((due, id))) = self.timers.peek().copied()
            && due <= now
        {
            self.timers.pop();
            if let Some(Some(member)) = self.members.get_mut(usize::from(id))
                && member.due_ns == Some(due)
            {
                member.due_ns = None;
                any = true;
                self.activate(id);
            }
        }
        any
    }

    /// Notes who was told of packets.
    fn take_told(&mut self) {
        let mut told = std::mem::take(&mut self.told.0);
        self.members_told.take(&mut told);
        told.drain(..).for_each(|id| self.activate(id));
        self.told.0 = told;
    }

    /// A switch may have something to do.
    pub(crate) fn activate(&mut self, id: MemberId) {
        if let Some(Some(member)) = self.members.get_mut(usize::from(id))
            && !member.is_active
        {
            member.is_active = true;
            self.active.push_back(id);
            self.fair.join(id);
        }
    }

    /// A switch has gone: who gets its number has no turn that was for it.
    pub(crate) fn forget(&mut self, id: MemberId) {
        self.fair.leave(id);
        self.active.retain(|active| *active != id);
        self.called.retain(|called| *called != id);
        self.timers.retain(|Reverse((_, timed))| *timed != id);
    }

    /// Runs each switch that has something to do and is not ahead of others for its turn. Whether any ran; none: those that have something to
    /// do may not now.
    fn run_members(&mut self, now: &mut u64) -> Option<bool> {
        let (mut any, mut is_ahead) = (false, false);
        let limit = self.fair.limit(self.active.iter().copied());
        let begun = *now;
        for _ in 0..self.active.len() {
            // Many turns take long: who asks for something waits for some of them only, and the others' come next.
            if now.saturating_sub(begun) >= LOOK_NS && self.doorbell.rings() {
                break;
            }
            let Some(id) = self.active.pop_front() else { break };
            let Some(Some(waiting)) = self.members.get_mut(usize::from(id)) else { continue };
            let may_run = waiting.may_run(*now);
            self.fair.rest(id, !may_run);
            let allowed = self.fair.allows(id, limit);
            if !may_run || !allowed {
                is_ahead |= !allowed;
                self.active.push_back(id);
                continue;
            }
            // The memory of the next ones is on its way while this one runs: first their own, then what that points to.
            let at = |at: usize| self.active.get(at).and_then(|next| member(&self.members, *next));
            at(1).into_iter().for_each(ask_for);
            at(0).into_iter().for_each(Member::ask_ahead);
            let Some(Some(member)) = self.members.get_mut(usize::from(id)) else { continue };
            member.signals.are_taken();
            member.let_time_pass(*now);
            let turn = run_turn(member, &mut self.supplies, &mut self.processor, *now);
            // One that looks for packets itself mostly finds none.
            any |= turn.has_worked || !member.is_fed;
            let cost = turn.used;
            *now = turn.ended;
            self.charged_until_ns = *now;
            self.fair.charge(id, cost);
            if member.has_work() && !member.is_paused {
                self.active.push_back(id);
                continue;
            }
            member.is_active = false;
            // Time that it does not use is not saved for later.
            member.deficit_ns = member.deficit_ns.min(0);
            if member.share().guaranteed > 0 {
                self.fair.hold(id, *now);
            }
            if let Some(due) = member.next_ns(*now)
                && member.due_ns.is_none_or(|known| due < known)
            {
                member.due_ns = Some(due);
                self.timers.push(Reverse((due, id)));
            }
        }
        if any || !is_ahead {
            return Some(any);
        }
        *now = now_ns();
        self.fair.idled(limit, now.saturating_sub(self.charged_until_ns));
        self.charged_until_ns = *now;
        None
    }

    /// Serves the exits that have packets.
    fn send(&mut self) -> bool {
        let Lane {
            exits_told,
            told: (_, told),
            physicals,
            supplies,
            failures,
            members,
            fair,
            sent,
            processor,
            ..
        } = self;
        let pool = supplies.pool();
        exits_told.take(told);
        for exit in told.drain(..) {
            match physicals.iter_mut().find(|physical| physical.number == exit.physical) {
                Some(physical) => physical.serve(exit),
                None => exit.give_up(),
            }
        }
        let mut any = false;
        let has_work = |physical: &Physical| {
            physical.has_waiting()
                || devices::with(physical.place, |device| device.is_to_flush()).unwrap_or(false)
        };
        let begun = if members.len() > 1 && physicals.iter().any(has_work) { now_ns() } else { 0 };
        processor.begin(begun);
        for physical in physicals.iter_mut() {
            devices::with(physical.place, |device| {
                device.complete(pool);
                device.take_sent(sent);
                if physical.has_waiting() {
                    any |= physical.send(device, sent, pool);
                }
                device.flush();
                device.take_failure().iter().for_each(|error| note(failures, physical.number, error));
            });
        }
        if !sent.is_empty() && begun > 0 {
            let (now, frames) = (now_ns(), sent.iter().map(|(_, frames)| *frames as u64).sum::<u64>());
            let took = processor.charge(now.saturating_sub(begun), now);
            sent.drain(..).for_each(|(id, packets)| fair.charge(id, took * packets as u64 / frames.max(1)));
            self.charged_until_ns = now;
        }
        sent.clear();
        any
    }

    /// Sleeps until there is something to do.
    fn rest(&mut self) {
        self.ran_until_ns = None;
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !self.members_told.has_any() && !self.exits_told.has_any() {
            self.wait();
        }
        self.asleep.store(false, Ordering::Relaxed);
    }

    fn wait(&self) {
        let mut descriptors: Vec<RawFd> = vec![self.doorbell.poll_fd()];
        for physical in &self.physicals {
            match devices::with(physical.place, |device| device.waits_by()).flatten() {
                Some(Some(fd)) => descriptors.push(fd),
                // A port without a descriptor never makes its lane wait.
                Some(None) => return,
                None => {}
            }
        }
        let due =
            self.timers.peek().map(|Reverse((due, _))| Duration::from_nanos(due.saturating_sub(now_ns())));
        // Switches that have used their time go on soon, and so does a device that took no more.
        let waits = !self.active.is_empty()
            || !self.called.is_empty()
            || self.physicals.iter().any(Physical::has_waiting);
        let soon = waits.then_some(SHORT);
        if wait_readable(&descriptors, due.into_iter().chain(soon).min()).is_err() {
            std::thread::sleep(SHORT);
        }
        self.doorbell.look();
    }

    /// From now on this says which switch a frame belongs to, or nobody does.
    pub(crate) fn set_classify(&mut self, classify: Option<Box<dyn Classify>>) {
        self.spread.classify = classify;
    }

    /// From now on frames of ports go there.
    pub(crate) fn set_routes(&mut self, routes: Arc<Routes>) {
        self.spread.hand_over(self.supplies.pool(), |_, _| {});
        let classify = self.spread.classify.take();
        self.spread = Spread::new(routes, classify);
    }

    /// Sets how long the turns of all are, after one has come, has gone or has another share.
    ///
    /// What the guaranteed shares leave is for those without, in equal parts. A round is so long that the least quantum is
    /// [`LEAST_QUANTUM_NS`], so quanta are in proportion to the shares.
    pub(crate) fn set_quanta(&mut self) {
        let shares = || self.members.iter().flatten().map(|member| member.share());
        let guaranteed: i64 = shares().map(|share| i64::from(share.guaranteed)).sum();
        let without = shares().filter(|share| share.guaranteed == 0).count() as i64;
        let whole = i64::from(WHOLE);
        // Those without a guarantee have a hundredth of the time, if guarantees are all of it.
        let each = if without > 0 { (whole - guaranteed).max(whole / 100) / without } else { whole };
        let share_of = |share: TimeShare| match share.guaranteed {
            0 => each.max(1),
            guaranteed => i64::from(guaranteed),
        };
        let least = shares().map(share_of).min().unwrap_or(whole).max(1);
        let round_ns = ROUND_NS.max(LEAST_QUANTUM_NS * whole / least);
        for (id, member) in (0..).zip(&mut self.members) {
            let Some(member) = member else { continue };
            let share = share_of(member.share());
            member.quantum_ns = (share * round_ns / whole).max(1);
            self.fair.set_part(id, share.unsigned_abs());
        }
        self.fair.set_lead(LEAD_ROUNDS * round_ns.unsigned_abs());
    }
}

/// The switch of that number.
#[inline]
fn member(members: &[Option<Box<Member>>], id: MemberId) -> Option<&Member> {
    members.get(usize::from(id)).and_then(Option::as_deref)
}

/// A port of the machine broke, which is told once.
fn note(failures: &mut Vec<PortFailure>, port: u16, error: &PortError) {
    if failures.iter().all(|known| known.port != port) {
        failures.push(PortFailure { port, error: error.to_string() });
    }
}

/// How a turn of a switch ended.
struct TurnOf {
    /// The time then.
    ended: u64,
    /// The time that it has used.
    used: u64,
    /// Whether there was anything to do.
    has_worked: bool,
}

/// Runs a switch until its time is used up or nothing waits for it.
fn run_turn(member: &mut Member, supplies: &mut Supplies, processor: &mut Processor, begun: u64) -> TurnOf {
    let (mut now, mut used, mut has_worked) = (begun, 0, false);
    member.is_paused = false;
    member.deficit_ns = (member.deficit_ns + member.quantum_ns).min(member.quantum_ns);
    while member.deficit_ns > 0 {
        let mut goes_on = true;
        processor.begin(now);
        for _ in 0..STEPS {
            goes_on = match member.step(supplies) {
                Progress::Busy => {
                    has_worked = true;
                    member.has_work()
                }
                Progress::Idle => false,
                Progress::Paused => {
                    member.is_paused = true;
                    false
                }
            };
            if !goes_on {
                break;
            }
        }
        let then = now;
        now = now_ns();
        let cost = processor.charge(now.saturating_sub(then), now);
        member.use_time(cost, now);
        used += cost;
        if !goes_on || member.is_fed {
            break;
        }
    }
    TurnOf { ended: now, used, has_worked }
}
