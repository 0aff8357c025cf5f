//! What the log tells of packets, in the words of Millrace or of bmv2.

use crate::cli::{LogArgs, LogFormat};
use millrace_control::commands::{Importance, number_trace, packet_log};
use millrace_dataplane::{Step, Trace};
use tracing::{Level, debug, enabled, error, info, trace};

/// Tells of one packet after the other.
pub(crate) struct Stories {
    in_words_of_bmv2: bool,
    /// Bytes of a packet that are shown.
    dumped: usize,
    packets: u64,
    /// Lines of the program that the last story told already.
    said: usize,
}

impl Stories {
    pub(crate) fn new(args: &LogArgs) -> Stories {
        let in_words_of_bmv2 = args.log_format == Some(LogFormat::Bmv2);
        Stories { in_words_of_bmv2, dumped: args.log_packet_bytes, packets: 0, said: 0 }
    }

    /// Whether the log wants to know what happens to packets.
    pub(crate) fn are_wanted(args: &LogArgs) -> bool {
        let in_words_of_bmv2 = args.log_format == Some(LogFormat::Bmv2);
        let in_part = enabled!(Level::DEBUG) || (args.log_packet_bytes > 0 && enabled!(Level::INFO));
        enabled!(Level::TRACE) || (in_words_of_bmv2 && in_part)
    }

    /// What happened to a packet.
    pub(crate) fn tell(&mut self, mut story: Trace) {
        number_trace(&mut story);
        if !self.in_words_of_bmv2 {
            story.to_string().lines().for_each(|line| trace!("{line}"));
            return;
        }
        let steps = story.journeys.iter().flat_map(|journey| &journey.steps);
        self.said = steps.filter(|step| matches!(step, Step::Log { .. })).count();
        for (importance, line) in packet_log(&story, self.packets, self.dumped) {
            match importance {
                Importance::Trace => trace!("{line}"),
                Importance::Debug => debug!("{line}"),
                Importance::Info => info!("{line}"),
                Importance::Error => error!("{line}"),
            }
        }
        self.packets += 1;
    }

    /// A line of the program, which comes after the story of its packet.
    pub(crate) fn says(&mut self, line: &str) {
        if let Some(left) = self.said.checked_sub(1) {
            self.said = left;
        } else if self.in_words_of_bmv2 {
            info!("{line}");
        } else {
            info!(line, "the program says");
        }
    }
}
