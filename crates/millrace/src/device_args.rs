//! Options that say what a hardware device is like.

use clap::{Args, Command, FromArgMatches, ValueEnum};
use millrace_rtl::DeviceOptions;
use millrace_rtl::device::Link;
use millrace_rtl::map::Bus;

/// A whole device around the stages of a program.
#[derive(Debug, Args)]
pub(crate) struct DeviceArgs {
    /// Ports of the device; 4 if not given
    #[arg(long, value_name = "N")]
    ports: Option<u32>,
    /// The numbers by which the program knows the ports, the first port first, as 0:1:2:510; from 0 on if not given
    #[arg(long, value_name = "N:N...", value_delimiter = ':', value_parser = port_number)]
    numbers: Vec<u32>,
    /// What its ports are connected to; streams if not given
    #[arg(long, value_enum)]
    link: Option<LinkKind>,
    /// Bits of a beat of its streams: 64 (if not given), 128, 256 or 512
    #[arg(long, value_name = "BITS")]
    width: Option<u32>,
    /// Frames that each port holds of those that came in; 16 if not given
    #[arg(long, value_name = "N")]
    slots: Option<u32>,
    /// Bytes of the longest frame; 2048 if not given
    #[arg(long, value_name = "BYTES")]
    longest: Option<u32>,
    /// Queues of each port; 4 if not given
    #[arg(long, value_name = "N")]
    queues: Option<u32>,
    /// Frames of each queue; 32 if not given, or as many as all ports hold if these are fewer
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// The bus of its registers; AXI4-Lite if not given
    #[arg(long, value_enum)]
    bus: Option<BusKind>,
}

/// What a port is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LinkKind {
    /// AXI4-Streams
    Stream,
    /// MACs of 10 Gbit/s on XGMII
    Xgmii,
    /// MACs of 1 Gbit/s on GMII
    Gmii,
}

/// A bus of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BusKind {
    /// AXI4-Lite
    #[value(name = "axi4-lite")]
    Axi4Lite,
    /// Avalon-MM
    AvalonMm,
}

fn port_number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is no number of a port: 0 to {} is expected", u32::MAX))
}

impl BusKind {
    pub(crate) fn bus(self) -> Bus {
        match self {
            BusKind::Axi4Lite => Bus::Axi4Lite,
            BusKind::AvalonMm => Bus::AvalonMm,
        }
    }
}

impl DeviceArgs {
    /// From words as `ports=4,width=128`, each an option with its value.
    pub(crate) fn of_words(words: &str) -> Result<DeviceArgs, String> {
        let words = words.split(',').filter(|word| !word.is_empty()).map(|word| format!("--{}", word.trim()));
        let command = DeviceArgs::augment_args(Command::new("device").no_binary_name(true));
        let command = command.disable_help_flag(true);
        let parsed =
            command.try_get_matches_from(words).and_then(|found| DeviceArgs::from_arg_matches(&found));
        // Its first line, without `error: `.
        parsed.map_err(|error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.trim_start_matches("error: ").replace("--", "")
        })
    }

    /// How many ports, if that or their numbers were given.
    pub(crate) fn ports(&self) -> Option<u32> {
        let numbers = u32::try_from(self.numbers.len()).ok().filter(|numbers| *numbers > 0);
        self.ports.or(numbers)
    }

    pub(crate) fn options(&self) -> DeviceOptions {
        let usual = DeviceOptions::default();
        let link = match self.link {
            None => usual.link,
            Some(LinkKind::Stream) => Link::Stream,
            Some(LinkKind::Xgmii) => Link::Xgmii,
            Some(LinkKind::Gmii) => Link::Gmii,
        };
        let bus = self.bus.map_or(usual.bus, BusKind::bus);
        let (ports, slots) = (self.ports().unwrap_or(usual.ports), self.slots.unwrap_or(usual.slots));
        // A frame waits in a queue and in a slot of the port where it came in.
        let held = ports.saturating_mul(slots).clamp(2, usual.depth).next_power_of_two();
        DeviceOptions {
            ports,
            numbers: self.numbers.clone(),
            width: self.width.unwrap_or(usual.width),
            link,
            slots,
            frame: self.longest.unwrap_or(usual.frame),
            queues: self.queues.unwrap_or(usual.queues),
            depth: self.depth.unwrap_or(held),
            bus,
            user: usual.user,
        }
    }

    /// One of them that was given, if any was.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let all = [
            (self.ports.is_some(), "--ports"),
            (!self.numbers.is_empty(), "--numbers"),
            (self.link.is_some(), "--link"),
            (self.width.is_some(), "--width"),
            (self.slots.is_some(), "--slots"),
            (self.longest.is_some(), "--longest"),
            (self.queues.is_some(), "--queues"),
            (self.depth.is_some(), "--depth"),
            (self.bus.is_some(), "--bus"),
        ];
        all.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }
}
