//! A switch on a lane: its worker, its ports, and how much of the lane's time it has used.

use crate::MemberId;
use crate::agenda::Note;
use crate::counts::Counts;
use crate::quota::{Admission, TimeShare, Traffic, WHOLE};
use crate::rate::Rate;
use crate::wire::{Wire, WirePort};
use millrace_dataplane::{PortId, Progress, Ringer, RunError, Switch, Worker};
use millrace_drivers::{Captures, QueuePair};
use millrace_frames::PacketPool;
use std::sync::Arc;

/// A switch with a limit of its time may use so much more at once.
const LARGEST_BURST_NS: u64 = 2_000_000;

/// See the module's documentation.
pub(crate) struct Member {
    pub(crate) worker: Worker,
    pub(crate) wires: Vec<Arc<Wire>>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) note: Arc<Note<MemberId>>,
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
    /// When packets that wait in it may go on, as the lane's timers have it.
    pub(super) due_ns: Option<u64>,
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
        note: Note<MemberId>,
        ringer: &Ringer,
    ) -> Result<Member, RunError> {
        let (counts, note) = (Arc::<Counts>::default(), Arc::new(note));
        let admission = Arc::new(Admission::new(traffic));
        let wire = |port: &PortId| {
            let (admission, counts, note) = (Arc::clone(&admission), Arc::clone(&counts), Arc::clone(&note));
            Arc::new(Wire::new((id, *port), places, admission, counts, note))
        };
        let wires: Vec<Arc<Wire>> = ports.iter().map(wire).collect();
        let pairs = wires.iter().map(|wire| (wire.port(), pair(wire, captures)));
        let worker = Worker::driven(switch, pairs.collect(), ringer)?;
        let mut member = Member {
            worker,
            wires,
            admission,
            counts,
            note,
            share,
            quantum_ns: 0,
            deficit_ns: 0,
            used_ns: 0,
            largest: None,
            is_called: false,
            is_active: false,
            is_paused: false,
            due_ns: None,
        };
        member.set_share(share);
        Ok(member)
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
        self.worker.is_behind() || self.wires.iter().any(|wire| wire.waiting() > 0)
    }

    /// Packets that wait for it.
    pub(crate) fn waiting(&self) -> usize {
        self.wires.iter().map(|wire| wire.waiting()).sum()
    }

    /// Whether it may use time now, of which it may use no more than it is set to.
    #[inline]
    pub(crate) fn may_run(&mut self, now_ns: u64) -> bool {
        self.largest.as_mut().is_none_or(|largest| largest.has_any(now_ns))
    }

    /// It has used so much time.
    #[inline]
    pub(crate) fn use_time(&mut self, ns: u64, now_ns: u64) {
        self.deficit_ns -= i64::try_from(ns).unwrap_or(i64::MAX);
        self.used_ns += ns;
        self.counts.set_used_ns(self.used_ns);
        if let Some(largest) = &mut self.largest {
            largest.owe(ns, now_ns);
        }
    }

    /// Lets packets on links go on whose time has come.
    pub(crate) fn let_time_pass(&self, now_ns: u64) {
        self.wires.iter().for_each(|wire| wire.let_time_pass(now_ns));
    }

    /// When the next packet may go on that waits for its time, on a link or in the switch.
    pub(crate) fn next_ns(&self, now_ns: u64) -> Option<u64> {
        let on_links = self.wires.iter().filter_map(|wire| wire.due_ns());
        let inside = self.worker.until_due();
        let inside = inside.map(|until| now_ns + u64::try_from(until.as_nanos()).unwrap_or(u64::MAX / 2));
        on_links.chain(inside).min()
    }

    #[inline]
    pub(crate) fn step(&mut self, pool: &mut PacketPool) -> Progress {
        let Member { worker, wires, .. } = self;
        worker.step_from(wires.iter().filter(|wire| wire.has_news()).map(|wire| wire.port()), pool)
    }
}
