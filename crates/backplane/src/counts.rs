//! What becomes of packets between a port of the machine and a switch, counted for each switch.

use millrace_frames::{Batch, MAX_BATCH, PacketPool};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Why a packet of a switch went nowhere outside of it. What the switch itself drops has reasons of its own
/// ([`millrace_dataplane::DropReason`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// The switch takes no packets now: it was told not to.
    Stopped,
    /// The switch had as many packets in this second as it may.
    PacketQuota,
    /// The switch had as many bits in this second as it may.
    BitQuota,
    /// As many packets wait for the switch as may: it has too little of its worker, or its port is told more than it takes.
    InboxFull,
    /// The packet had taken as many links inside the device as it may: switches send it in a circle.
    Hops,
    /// The link loses packets, as it is set to.
    LinkLoss,
    /// As many packets wait for a port of the machine as may of this switch.
    ExitFull,
    /// The frame cannot have the tag that it should have outside.
    Tag,
    /// No packet was free for one more copy.
    NoPacket,
    /// The link of the port of the machine takes no frames of this length.
    Length,
    /// The link of the port of the machine was down.
    LinkDown,
    /// The port that it waited for went or broke: a port of the machine, or one of the switch.
    PortGone,
}

impl Loss {
    /// All of them, with their names.
    pub const ALL: [(Loss, &str); 12] = [
        (Loss::Stopped, "stopped"),
        (Loss::PacketQuota, "packet_quota"),
        (Loss::BitQuota, "bit_quota"),
        (Loss::InboxFull, "inbox_full"),
        (Loss::Hops, "hop_limit"),
        (Loss::LinkLoss, "link_loss"),
        (Loss::ExitFull, "exit_full"),
        (Loss::Tag, "tag"),
        (Loss::NoPacket, "no_packet"),
        (Loss::Length, "length"),
        (Loss::LinkDown, "link_down"),
        (Loss::PortGone, "port_gone"),
    ];
}

/// The counts of a switch, read by any thread.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Counts {
    /// Nanoseconds of its worker that it has used.
    used_ns: AtomicU64,
    /// Packets in its inboxes and exits that its lane has put there and takes from there; it alone changes this.
    held: AtomicUsize,
    /// The others in its inboxes and exits.
    held_elsewhere: AtomicUsize,
    losses: [AtomicU64; Loss::ALL.len()],
}

/// Who puts packets into an inbox or takes them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hand {
    /// The lane of the inbox, what it has put in itself.
    Lane,
    /// Any thread.
    Any,
}

impl Counts {
    #[inline]
    pub(crate) fn lose(&self, reason: Loss, packets: usize) {
        if packets > 0 {
            self.losses[reason as usize].fetch_add(packets as u64, Ordering::Relaxed);
        }
    }

    /// So many packets more wait for the switch, or in its exits.
    #[inline]
    pub(crate) fn hold(&self, packets: usize, hand: Hand) {
        match hand {
            Hand::Lane => {
                self.held.store(self.held.load(Ordering::Relaxed).wrapping_add(packets), Ordering::Relaxed)
            }
            Hand::Any => _ = self.held_elsewhere.fetch_add(packets, Ordering::Relaxed),
        }
    }

    /// So many packets fewer wait.
    #[inline]
    pub(crate) fn let_go(&self, packets: usize, hand: Hand) {
        self.hold(packets.wrapping_neg(), hand);
    }

    /// Packets that wait for the switch or in its exits.
    #[inline]
    fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed).wrapping_add(self.held_elsewhere.load(Ordering::Relaxed))
    }

    /// Gives those packets of a batch back, the last ones, that are more than the switch may have wait; how many.
    ///
    /// It may have as many wait as packets are left, and a batch. So one that keeps all it can get has half of them, two have a third each and leave
    /// one, and whoever needs only some always finds some (Choudhury, Hahne 1998: dynamic queue length thresholds).
    #[inline]
    pub(crate) fn cut(&self, batch: &mut Batch, pool: &mut PacketPool) -> usize {
        let (held, before) = (self.held(), batch.len());
        let room = pool.available_of(held + before).max(MAX_BATCH).saturating_sub(held);
        while batch.len() > room {
            batch.give_last_back(pool);
        }
        before - batch.len()
    }

    pub(crate) fn set_used_ns(&self, used_ns: u64) {
        self.used_ns.store(used_ns, Ordering::Relaxed);
    }

    /// Packets lost for a reason.
    pub fn lost(&self, reason: Loss) -> u64 {
        self.losses[reason as usize].load(Ordering::Relaxed)
    }

    /// The reasons that have lost something, with their names and how many.
    pub fn losses(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let each = Loss::ALL.iter().map(|(reason, name)| (*name, self.lost(*reason)));
        each.filter(|(_, count)| *count > 0)
    }

    /// Nanoseconds of a worker that the switch has used.
    pub fn used_ns(&self) -> u64 {
        self.used_ns.load(Ordering::Relaxed)
    }
}
