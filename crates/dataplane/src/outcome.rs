//! What came of packets.

use crate::{DropReason, PortId};
use millrace_frames::Service;
use millrace_pipeline::Program;
use millrace_state::DigestMessage;

/// What came of the packets of one call, in the order in which it happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The packets that left.
    pub sent: Vec<Sent>,
    /// The packets and copies that did not.
    pub drops: Vec<Dropped>,
    /// Messages to the control plane.
    pub digests: Vec<DigestMessage>,
    /// Lines that the program wrote to its log.
    pub log: Vec<String>,
}

/// A packet that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The port it left by.
    pub port: PortId,
    /// How its port is to serve it.
    pub service: Service,
    /// How many links between switches of one device the packet had taken that it comes from.
    pub hops: u8,
    /// The whole frame.
    pub bytes: Vec<u8>,
    /// When it left, in nanoseconds of the switch's clock.
    pub time_ns: u64,
}

/// A packet or copy that did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Why.
    pub reason: DropReason,
    /// The port that the packet came in on.
    pub ingress_port: PortId,
    /// The port that it was for, when that was known.
    pub egress_port: Option<PortId>,
    /// Where the program asked for it: an index in [`millrace_pipeline::Program::drop_sites`], or past its end. None
    /// when it was not the program or its parser.
    pub site: Option<u16>,
}

impl Dropped {
    /// Why, and where the program asked for it: `ingress_drop: mark_to_drop in c.drop (router.p4:61), of table c.routes`.
    pub fn describe(&self, program: &Program) -> String {
        let label = self.reason.label(program);
        let site = self.site.and_then(|site| program.drop_sites.get(usize::from(site)));
        match site.filter(|site| site.is_known()) {
            Some(site) => format!("{label}: {site}"),
            None => label,
        }
    }
}

impl Outcome {
    /// Adds what happened later.
    pub(crate) fn append(&mut self, mut later: Outcome) {
        self.sent.append(&mut later.sent);
        self.drops.append(&mut later.drops);
        self.digests.append(&mut later.digests);
        self.log.append(&mut later.log);
    }

    /// The bytes of the packets that left.
    pub(crate) fn bytes(&self) -> usize {
        self.sent.iter().map(|sent| sent.bytes.len()).sum()
    }

    /// Nothing happened yet.
    pub(crate) fn clear(&mut self) {
        self.sent.clear();
        self.drops.clear();
        self.digests.clear();
        self.log.clear();
    }

    /// Whether nothing happened.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        let Outcome { sent, drops, digests, log } = self;
        sent.is_empty() && drops.is_empty() && digests.is_empty() && log.is_empty()
    }

    /// The bytes that left, with their ports.
    pub fn outputs(&self) -> impl Iterator<Item = (PortId, &[u8])> {
        self.sent.iter().map(|sent| (sent.port, sent.bytes.as_slice()))
    }
}
