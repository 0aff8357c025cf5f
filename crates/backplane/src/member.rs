//! A switch on a lane: its worker, its ports, and how much of the lane's time it has used.

use crate::MemberId;
use crate::agenda::Agenda;
use crate::counts::Counts;
use crate::quota::{Admission, TimeShare, Traffic, WHOLE};
use crate::rate::Rate;
use crate::signals::Signals;
use crate::wire::{Wire, WirePort};
use millrace_dataplane::{PortId, Progress, Ringer, RunError, Supplies, Switch, Worker};
use millrace_drivers::{Captures, QueuePair};
use millrace_frames::{ask_for, ask_for_start};
use std::sync::Arc;

/// A switch with a limit of its time may use so much more at once.
const LARGEST_BURST_NS: u64 = 2_000_000;

/// See the module's documentation.
pub(crate) struct Member {
    pub(crate) worker: Worker,
    wires: Vec<Place>,
    pub(crate) signals: Arc<Signals>,
    /// The bits of its wires among the signals; none: some wire has no bit.
    bits: Option<u64>,
    pub(crate) counts: Arc<Counts>,
    share: TimeShare,
    /// Nanoseconds of a round of the lane that it gets.
    pub(super) quantum_ns: i64,
    /// What it may use now; negative: what it has used too much.
    pub(super) deficit_ns: i64,
    used_ns: u64,
    largest: Option<Rate>,
    /// Whether requests wait for it that have rung.
    pub(super) is_called: bool,
    /// Whether it is among those that the lane serves.
    pub(super) is_active: bool,
    /// It takes no packets now.
    pub(super) is_paused: bool,
    /// It takes frames from devices itself, so its turns are short: what it sends is to leave.
    pub(super) is_fed: bool,
    /// When packets that wait in it may go on, as the lane's timers have it.
    pub(super) due_ns: Option<u64>,
}

/// A wire, and what the lane looks at before it looks there.
struct Place {
    bit: u64,
    port: PortId,
    wire: Arc<Wire>,
}

/// A port as the worker of its switch has it; it can be captured if there is somebody who does that.
pub(crate) fn pair(wire: &Arc<Wire>, captures: Option<&Captures>) -> Box<dyn QueuePair> {
    let port = WirePort::new(Arc::clone(wire));
    match captures {
        Some(captures) => captures.watch_inner(wire.port(), port),
        None => Box::new(port),
    }
}

impl Member {
    /// A switch with ports of these numbers, each of which holds so many packets that come for it.
    pub(crate) fn new(
        (id, switch): (MemberId, Switch),
        (ports, captures): (&[PortId], Option<&Captures>),
        places: usize,
        (share, traffic): (TimeShare, Traffic),
        agenda: &Arc<Agenda<MemberId>>,
        ringer: &Ringer,
    ) -> Result<Member, RunError> {
        let counts = Arc::<Counts>::default();
        let signals = Arc::new(Signals::new(Arc::clone(agenda), Admission::new(traffic)));
        let wire = |port: &PortId| {
            Arc::new(Wire::new((id, *port), places, Arc::clone(&counts), Arc::clone(&signals)))
        };
        let wires: Vec<Arc<Wire>> = ports.iter().map(wire).collect();
        let pairs = wires.iter().map(|wire| (wire.port(), pair(wire, captures)));
        let worker = Worker::driven(switch, pairs.collect(), ringer)?;
        let mut member = Member {
            worker,
            wires: Vec::new(),
            signals,
            bits: Some(0),
            counts,
            share,
            quantum_ns: 0,
            deficit_ns: 0,
            used_ns: 0,
            largest: None,
            is_called: false,
            is_active: false,
            is_paused: false,
            is_fed: false,
            due_ns: None,
        };
        wires.into_iter().for_each(|wire| member.add_wire(wire));
        member.set_share(share);
        Ok(member)
    }

    /// Its wires.
    pub(crate) fn wires(&self) -> impl Iterator<Item = &Arc<Wire>> {
        self.wires.iter().map(|place| &place.wire)
    }

    /// It has one wire more.
    pub(crate) fn add_wire(&mut self, wire: Arc<Wire>) {
        self.wires.push(Place { bit: wire.bit(), port: wire.port(), wire });
        self.note_bits();
    }

    /// A port has no wire any more: nothing comes there, and what waits is gone.
    pub(crate) fn remove_wire(&mut self, port: PortId) {
        self.wires.extract_if(.., |place| place.port == port).for_each(|place| place.wire.close());
        self.note_bits();
    }

    fn note_bits(&mut self) {
        let bits = self.wires.iter().map(|place| Some(place.bit).filter(|bit| *bit != 0));
        self.bits = bits.reduce(|all, bit| Some(all? | bit?)).unwrap_or(Some(0));
    }

    /// The bits of the wires that the lane is to look at, where all have one.
    #[inline]
    fn told(&self) -> u64 {
        // A bit may be that of a wire that has gone.
        self.signals.told() & self.bits.unwrap_or(0)
    }

    pub(crate) fn share(&self) -> TimeShare {
        self.share
    }

    /// Another share of the time from now on.
    pub(crate) fn set_share(&mut self, share: TimeShare) {
        self.share = share;
        let now_ns = crate::time::now_ns();
        // Millionths of a second are a thousand nanoseconds each.
        let largest = Some(share.largest).filter(|largest| *largest < WHOLE);
        self.largest = largest.map(|largest| Rate::new(u64::from(largest) * 1_000, LARGEST_BURST_NS, now_ns));
    }

    /// Whether packets wait for nothing but its next step.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        let any = match self.bits {
            Some(_) => self.told() != 0,
            None => self.wires().any(|wire| wire.waiting() > 0),
        };
        any || self.worker.is_behind()
    }

    /// Whether each of its ports has a bit by which the lane knows that it is to look there.
    pub(crate) fn has_bits(&self) -> bool {
        self.bits.is_some()
    }

    /// Has the processor bring what else a turn of it uses: it is in the cache itself, and its turn is next.
    #[inline]
    pub(crate) fn ask_ahead(&self) {
        ask_for_start(&*self.signals);
        self.wires.first().into_iter().for_each(ask_for);
        self.worker.ask_ahead();
    }

    /// Packets that wait for it.
    pub(crate) fn waiting(&self) -> usize {
        self.wires().map(|wire| wire.waiting()).sum()
    }

    /// Whether it may use time now, of which it may use no more than it is set to.
    #[inline]
    pub(crate) fn may_run(&mut self, now_ns: u64) -> bool {
        self.largest.as_mut().is_none_or(|largest| largest.has_any(now_ns))
    }

    /// It has used so much time, which its turns are shorter by.
    #[inline]
    pub(crate) fn use_time(&mut self, ns: u64, now_ns: u64) {
        self.deficit_ns -= i64::try_from(ns).unwrap_or(i64::MAX);
        self.count_time(ns, now_ns);
    }

    /// It has used so much time that its turns are not shorter by.
    #[inline]
    pub(crate) fn count_time(&mut self, ns: u64, now_ns: u64) {
        self.used_ns += ns;
        self.counts.set_used_ns(self.used_ns);
        if let Some(largest) = &mut self.largest {
            largest.owe(ns, now_ns);
        }
    }

    /// Lets packets on links go on whose time has come.
    pub(crate) fn let_time_pass(&self, now_ns: u64) {
        if self.signals.has_late() {
            self.wires().for_each(|wire| wire.let_time_pass(now_ns));
        }
    }

    /// When the next packet may go on that waits for its time, on a link or in the switch.
    pub(crate) fn next_ns(&self, now_ns: u64) -> Option<u64> {
        let on_links = self.wires().filter(|_| self.signals.has_late()).filter_map(|wire| wire.due_ns());
        let inside = self.worker.until_due();
        let inside = inside.map(|until| now_ns + u64::try_from(until.as_nanos()).unwrap_or(u64::MAX / 2));
        on_links.chain(inside).min()
    }

    #[inline]
    pub(crate) fn step(&mut self, supplies: &mut Supplies) -> Progress {
        let (told, by_bits) = (self.told(), self.bits.is_some());
        let Member { worker, wires, .. } = self;
        let is_told = |place: &&Place| if by_bits { place.bit & told != 0 } else { place.wire.has_news() };
        worker.step_from(wires.iter().filter(is_told).map(|place| place.port), supplies)
    }
}
