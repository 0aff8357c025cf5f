//! Why packets are dropped.

use millrace_midend::Verdict;
use millrace_pipeline::Program;
use millrace_traffic::Discard;

/// Why a packet, or a copy of one, went nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropReason {
    /// Its parser rejected it, with this error code of the program.
    ParserError(u16),
    /// The program said so in ingress.
    IngressDrop,
    /// The program said so in egress.
    EgressDrop,
    /// It was sent to a multicast group that does not exist.
    NoMulticastGroup,
    /// It was sent to a multicast group without copies.
    EmptyMulticastGroup,
    /// It was cloned to a session that does not exist. (The packet itself goes on.)
    NoCloneSession,
    /// It was sent to a port that does not exist.
    UnknownPort,
    /// It came from a port that was switched off, or was sent to one.
    PortDisabled,
    /// The mode of the switch lets it not pass.
    Mode,
    /// Its queue was full.
    QueueFull,
    /// The buffer of its port had no room for its queue.
    BufferFull,
    /// Its queue was getting full, and its flow heeds no marks.
    EarlyDrop,
    /// It had waited in its queue for longer than it may.
    TooOld,
    /// Its queue was taken away while it waited.
    NoQueue,
    /// It was to wait for a time, and as many packets do as may.
    TimedFull,
    /// It was to wait for a time that is further ahead than it may be.
    TimedTooFar,
    /// It was to be cloned, and the quota of clones was used up.
    CloneQuota,
    /// It was to start again, and the quota of recirculations was used up.
    RecirculationQuota,
    /// It was a copy for multicast, and the quota of copies was used up.
    CopyQuota,
    /// The switch holds as many packets as its quota says.
    PacketBuffers,
    /// As many packets wait in the queues of the switch as its quota says.
    QueuePlaces,
    /// It came by more often than it may.
    RecirculationLimit,
    /// It would have more copies than it may.
    CopyLimit,
    /// One of its bodies took too many steps.
    StepLimit,
    /// It and its copies took too many steps together.
    JourneyLimit,
    /// The packets of its batch have as many copies and passes as they may.
    BatchLimit,
    /// The packets that wait in the switch take as much memory as they may.
    PacketMemory,
    /// An assertion of the program did not hold.
    Assert,
    /// A plugin wanted it, or its policy while it does not answer.
    Plugin,
    /// It became longer than a frame can be.
    Oversize,
    /// The link of its port was down.
    LinkDown,
    /// The port did not take it.
    TxRefused,
    /// The hardware device did not take it, or could not be reached.
    Device,
}

/// Why a packet went nowhere, and where the program asked for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) reason: DropReason,
    /// As in [`crate::Dropped::site`].
    pub(crate) site: Option<u16>,
}

impl From<DropReason> for Loss {
    fn from(reason: DropReason) -> Loss {
        Loss { reason, site: None }
    }
}

impl From<Discard> for DropReason {
    fn from(why: Discard) -> DropReason {
        match why {
            Discard::QueueFull => DropReason::QueueFull,
            Discard::BufferFull => DropReason::BufferFull,
            Discard::Early => DropReason::EarlyDrop,
            Discard::TooOld => DropReason::TooOld,
            Discard::NoQueue => DropReason::NoQueue,
            Discard::TooLong => DropReason::Oversize,
        }
    }
}

impl Loss {
    /// The program or its parser wants it.
    pub(crate) fn at(reason: DropReason, site: u16) -> Loss {
        Loss { reason, site: Some(site) }
    }
}

impl DropReason {
    /// All reasons but the errors of parsers, which are the program's.
    pub const ALL: [DropReason; 32] = [
        DropReason::IngressDrop,
        DropReason::EgressDrop,
        DropReason::NoMulticastGroup,
        DropReason::EmptyMulticastGroup,
        DropReason::NoCloneSession,
        DropReason::UnknownPort,
        DropReason::PortDisabled,
        DropReason::Mode,
        DropReason::QueueFull,
        DropReason::BufferFull,
        DropReason::EarlyDrop,
        DropReason::TooOld,
        DropReason::NoQueue,
        DropReason::TimedFull,
        DropReason::TimedTooFar,
        DropReason::CloneQuota,
        DropReason::RecirculationQuota,
        DropReason::CopyQuota,
        DropReason::PacketBuffers,
        DropReason::QueuePlaces,
        DropReason::RecirculationLimit,
        DropReason::CopyLimit,
        DropReason::StepLimit,
        DropReason::JourneyLimit,
        DropReason::BatchLimit,
        DropReason::PacketMemory,
        DropReason::Assert,
        DropReason::Plugin,
        DropReason::Oversize,
        DropReason::LinkDown,
        DropReason::TxRefused,
        DropReason::Device,
    ];

    /// The name in counters, traces and messages: `parser_error:PacketTooShort`, `ingress_drop`.
    pub fn label(self, program: &Program) -> String {
        match self {
            DropReason::ParserError(code) => match program.errors.get(usize::from(code)) {
                Some(name) => format!("parser_error:{name}"),
                None => format!("parser_error:{code}"),
            },
            DropReason::IngressDrop => "ingress_drop".to_owned(),
            DropReason::EgressDrop => "egress_drop".to_owned(),
            DropReason::NoMulticastGroup => "no_multicast_group".to_owned(),
            DropReason::EmptyMulticastGroup => "empty_multicast_group".to_owned(),
            DropReason::NoCloneSession => "no_clone_session".to_owned(),
            DropReason::UnknownPort => "unknown_port".to_owned(),
            DropReason::PortDisabled => "port_disabled".to_owned(),
            DropReason::Mode => "mode".to_owned(),
            DropReason::QueueFull => "queue_full".to_owned(),
            DropReason::BufferFull => "buffer_full".to_owned(),
            DropReason::EarlyDrop => "early_drop".to_owned(),
            DropReason::TooOld => "too_old".to_owned(),
            DropReason::NoQueue => "no_queue".to_owned(),
            DropReason::TimedFull => "timed_full".to_owned(),
            DropReason::TimedTooFar => "timed_too_far".to_owned(),
            DropReason::CloneQuota => "clone_quota".to_owned(),
            DropReason::RecirculationQuota => "recirculation_quota".to_owned(),
            DropReason::CopyQuota => "copy_quota".to_owned(),
            DropReason::PacketBuffers => "packet_buffers".to_owned(),
            DropReason::QueuePlaces => "queue_places".to_owned(),
            DropReason::RecirculationLimit => "recirculation_limit".to_owned(),
            DropReason::CopyLimit => "copy_limit".to_owned(),
            DropReason::StepLimit => "step_limit".to_owned(),
            DropReason::JourneyLimit => "journey_limit".to_owned(),
            DropReason::BatchLimit => "batch_limit".to_owned(),
            DropReason::PacketMemory => "packet_memory".to_owned(),
            DropReason::Assert => "assert".to_owned(),
            DropReason::Plugin => "plugin".to_owned(),
            DropReason::Oversize => "oversize".to_owned(),
            DropReason::LinkDown => "link_down".to_owned(),
            DropReason::TxRefused => "tx_refused".to_owned(),
            DropReason::Device => "device".to_owned(),
        }
    }
}

/// The drop that a verdict is, with the place that asked for it.
pub(crate) fn loss(verdict: Verdict, number: u32, site: u16) -> Option<Loss> {
    match verdict {
        Verdict::IngressDrop => Some(Loss::at(DropReason::IngressDrop, site)),
        Verdict::EgressDrop => Some(Loss::at(DropReason::EgressDrop, site)),
        Verdict::ParserError => {
            let error = u16::try_from(number).unwrap_or(u16::MAX);
            Some(Loss::at(DropReason::ParserError(error), site))
        }
        Verdict::Assert => Some(DropReason::Assert.into()),
        Verdict::Plugin => Some(DropReason::Plugin.into()),
        Verdict::StepLimit => Some(DropReason::StepLimit.into()),
        Verdict::Forward
        | Verdict::ForwardEach
        | Verdict::Stopped
        | Verdict::CloneBeforeDeparser
        | Verdict::StoppedAfterEgress => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parser_errors_are_named_by_the_program() {
        let program =
            Program { errors: vec!["NoError".into(), "PacketTooShort".into()], ..Program::default() };
        assert_eq!(DropReason::ParserError(1).label(&program), "parser_error:PacketTooShort");
        assert_eq!(DropReason::ParserError(9).label(&program), "parser_error:9");
        assert_eq!(DropReason::QueueFull.label(&program), "queue_full");
    }
}
