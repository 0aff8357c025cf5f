//! `--engine device`: a whole hardware device in place of an engine and the traffic manager.

use crate::cli::{Engine, RunArgs};
use crate::device_args::DeviceArgs;
use crate::findings::Failure;
use crate::grpc;
use crate::stories::Stories;
use clap::Args;
use millrace_dataplane::{Attachment, QueueConfig};
use millrace_link::Place;
use millrace_listen::{Address, LINK};
use millrace_rtl::DeviceOptions;
use millrace_rtl::device::MAX_PORTS;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The device of `--engine device`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Hardware device")]
pub(crate) struct HardwareArgs {
    /// What the device is like, in the words of `millrace rtl --device`, as ports=4,width=128; it has the ports that are needed
    #[arg(long, value_name = "WORDS")]
    device: Option<String>,
    /// Where it is: the address of `millrace link serve`, or a device of UIO as /dev/uio0 or /dev/uio0,MAP; if not given, it is simulated
    #[arg(long, value_name = "ADDR|PATH")]
    device_at: Option<String>,
}

impl HardwareArgs {
    /// The device, with these ports and those before them if nothing else was given; if they are too many, with these alone.
    fn attachment(&self, needed: &BTreeSet<u32>) -> Result<Attachment, Failure> {
        let words = self.device.as_deref().unwrap_or_default();
        let args =
            DeviceArgs::of_words(words).map_err(|error| Failure::Usage(format!("--device: {error}")))?;
        let mut options = args.options();
        if args.ports().is_none() {
            options.ports = needed.last().map_or(1, |last| last.saturating_add(1));
            if options.ports > MAX_PORTS {
                options.ports = u32::try_from(needed.len()).unwrap_or(u32::MAX);
                options.numbers = needed.iter().copied().collect();
            }
        }
        options.check().map_err(|error| Failure::Usage(format!("--device: {error}")))?;
        Ok(Attachment { place: self.place()?, options })
    }

    fn place(&self) -> Result<Place, Failure> {
        let Some(given) = &self.device_at else { return Ok(Place::Simulated) };
        if given.starts_with(['/', '.']) {
            let (path, map) = given.rsplit_once(',').unwrap_or((given, "0"));
            let map = map
                .parse()
                .map_err(|_| Failure::Usage(format!("--device-at: `{map}` is no number of a map")))?;
            return Ok(Place::Mapped(PathBuf::from(path), map));
        }
        let address: Address =
            given.parse().map_err(|error| Failure::Usage(format!("--device-at: {error}")))?;
        grpc::address(&address, &LINK).map(Place::Served)
    }

    /// For a test of these ports: a device that is simulated in this process.
    pub(crate) fn for_test(
        &self,
        engine: Engine,
        ports: impl Iterator<Item = u32>,
    ) -> Result<Option<Attachment>, Failure> {
        if engine != Engine::Device {
            return self.none();
        }
        if self.device_at.is_some() {
            return Err(Failure::Usage("`stf` simulates its device: --device-at is for `run`".into()));
        }
        let usual = 0..DeviceOptions::default().ports;
        self.attachment(&usual.chain(ports).collect()).map(Some)
    }

    /// None, where none is to be.
    fn none(&self) -> Result<Option<Attachment>, Failure> {
        let given = [(self.device.is_some(), "--device"), (self.device_at.is_some(), "--device-at")];
        match given.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => Err(Failure::Usage(format!("{option} is for --engine device"))),
            None => Ok(None),
        }
    }
}

/// Why a device of which only registers are reached has no ports here.
pub(crate) const FRAMES_GO_ELSEWHERE: &str =
    "frames go by the ports of the device itself, as only its registers are mapped";

/// The device that a switch is to use, if one; what a device cannot do is refused.
pub(crate) fn of_run(args: &RunArgs) -> Result<Option<Attachment>, Failure> {
    if args.running.engine != Engine::Device {
        return args.hardware.none();
    }
    let of_cpu = args.grpc.cpu_port;
    let numbers: BTreeSet<u32> = args.ports.iter().map(|spec| u32::from(spec.port)).chain(of_cpu).collect();
    let attachment = args.hardware.attachment(&numbers)?;
    let refuse = |what: &str, why: &str| Err(Failure::Failed(format!("{what}: {why}")));
    let options = &attachment.options;
    if let Some(port) = numbers.iter().find(|number| options.port(**number).is_none()) {
        let known: Vec<String> = (0..options.ports).map(|port| options.number(port).to_string()).collect();
        let known = known.join(", ");
        let why = format!(
            "the device has the ports {known} (`--device ports=N` or `numbers=N:N...`, at most {MAX_PORTS})"
        );
        return refuse(&format!("port {port}"), &why);
    }
    if !attachment.place.has_frames() && (!numbers.is_empty() || args.packet_in.packet_in.is_some()) {
        return refuse("-i and --cpu-port", FRAMES_GO_ELSEWHERE);
    }
    let usual = QueueConfig::default();
    let queues = &args.queues;
    let of_switch = [
        (args.workers.count() > 1, "--cores: a hardware device has one worker"),
        (!args.plugins.plugin.is_empty(), "--plugin: hardware calls no plugins"),
        (args.packet_in.packet_in.is_some(), "--packet-in: a hardware device has no ports of a peer"),
        (Stories::are_wanted(&args.log), "--log-level: hardware tells no stories of packets"),
        (queues.tc.is_some(), "--tc: ports of a hardware device are served as its registers say"),
        (
            queues.priorities != usual.priorities,
            "--priorities: the device has queues of its own (`--device queues=N`)",
        ),
        (
            queues.queue_depth != usual.depth,
            "--queue-depth: the device has queues of its own (`--device depth=N`)",
        ),
        (queues.wait_for_links, "--wait-for-links: packets wait in the device"),
    ];
    match of_switch.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, why)) => Err(Failure::Failed(why.to_owned())),
        None => Ok(Some(attachment)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(device: &str, at: Option<&str>) -> HardwareArgs {
        HardwareArgs { device: Some(device.to_owned()), device_at: at.map(str::to_owned) }
    }

    /// The ports up to one.
    fn needed(last: u32) -> BTreeSet<u32> {
        (0..=last).collect()
    }

    #[test]
    fn ports_have_the_numbers_that_are_needed() {
        let made = |words: &str, needed: &[u32]| {
            args(words, None).attachment(&needed.iter().copied().collect()).map(|made| made.options)
        };
        assert_eq!(made("", &[1, 3]).unwrap().ports, 4);
        let numbered = made("width=128", &[1, 3, 510]).unwrap();
        assert_eq!((numbered.ports, numbered.numbers.as_slice()), (3, &[1, 3, 510][..]));
        assert_eq!((numbered.number(2), numbered.port(510), numbered.port(2)), (510, Some(2), None));
        assert_eq!(made("numbers=7:9", &[9]).unwrap().numbers, [7, 9]);
        let many: Vec<u32> = (0..20).collect();
        for (words, needed) in [("numbers=7:7", &[7][..]), ("numbers=7:9,ports=3", &[7]), ("", &many)] {
            assert!(matches!(made(words, needed), Err(Failure::Usage(_))), "{words}");
        }
    }

    #[test]
    fn words_are_those_of_options() {
        let made =
            args("width=128, depth=64,bus=avalon-mm", Some("/dev/uio3,1")).attachment(&needed(2)).unwrap();
        assert_eq!((made.options.ports, made.options.width, made.options.depth), (3, 128, 64));
        assert_eq!(made.options.bus, millrace_rtl::map::Bus::AvalonMm);
        assert_eq!(made.place, Place::Mapped("/dev/uio3".into(), 1));
        assert_eq!(args("ports=9", None).attachment(&needed(2)).unwrap().options.ports, 9);
        assert_eq!(args("", Some("9561")).place().unwrap(), Place::Served(([127, 0, 0, 1], 9561).into()));
    }

    #[test]
    fn other_words_are_refused() {
        for (words, says) in
            [("speed=4", "speed"), ("ports=x", "ports"), ("ports=17", "16"), ("width=65", "65")]
        {
            let Err(Failure::Usage(error)) = args(words, None).attachment(&needed(3)) else {
                panic!("{words}")
            };
            assert!(error.starts_with("--device: ") && error.contains(says), "{error}");
        }
        assert!(args("", Some("/dev/uio0,x")).place().is_err());
    }
}
