//! What a plan says about a packet when it ends.

/// What has become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Verdict {
    /// It is ready to be sent to the port `out`.
    Forward = 0,
    /// The program drops it in ingress.
    IngressDrop = 1,
    /// The program drops it in egress.
    EgressDrop = 2,
    /// The parser rejected it, and the architecture drops what is rejected; `out` is the error.
    ParserError = 3,
    /// An assertion did not hold.
    Assert = 4,
    /// A body took more steps than [`millrace_pipeline::limits::MAX_STEPS`].
    StepLimit = 5,
    /// The bodies are done, or the switch has to act before the next one: the packet's context holds its storage.
    Stopped = 6,
    /// A clone is wanted before the deparser of egress; the context holds the packet's storage.
    CloneBeforeDeparser = 7,
    /// Egress is done and wants the packet cloned, cut or sent back; `out` is the port that it was for, and the context
    /// holds its storage.
    StoppedAfterEgress = 8,
    /// A plugin, or its policy, wants it dropped.
    Plugin = 9,
    /// It is ready to be sent to each port of the set `out`: bit N stands for port N.
    ForwardEach = 10,
}

impl Verdict {
    /// The verdict that a number stands for.
    pub fn from_number(number: u32) -> Option<Verdict> {
        const ALL: [Verdict; 11] = [
            Verdict::Forward,
            Verdict::IngressDrop,
            Verdict::EgressDrop,
            Verdict::ParserError,
            Verdict::Assert,
            Verdict::StepLimit,
            Verdict::Stopped,
            Verdict::CloneBeforeDeparser,
            Verdict::StoppedAfterEgress,
            Verdict::Plugin,
            Verdict::ForwardEach,
        ];
        ALL.get(number as usize).copied()
    }

    /// Its word in texts.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Forward => "forward",
            Verdict::IngressDrop => "ingress_drop",
            Verdict::EgressDrop => "egress_drop",
            Verdict::ParserError => "parser_error",
            Verdict::Assert => "assert",
            Verdict::StepLimit => "step_limit",
            Verdict::Stopped => "stopped",
            Verdict::CloneBeforeDeparser => "clone_before_deparser",
            Verdict::StoppedAfterEgress => "stopped_after_egress",
            Verdict::Plugin => "plugin",
            Verdict::ForwardEach => "forward_each",
        }
    }
}
