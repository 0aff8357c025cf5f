//! Programs of every architecture of a switch in one device, each with the frames of its own STF test: what leaves is what the test says. The
//! ports of all of them are at one port of the machine, each with a VLAN.

mod lab;

use lab::{Folder, Lab, PATIENCE};
use millrace_compile::{Options, Source, Standard, check};
use millrace_ctl_api::{Answer, Request};
use millrace_describe::image::Image;
use millrace_describe::p4info::describe;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A program of the project with its test.
struct Case {
    name: &'static str,
    program: &'static str,
    standard: Standard,
    test: &'static str,
}

const CASES: [Case; 5] = [
    case("v1model", "programs/firewall.p4", "programs/firewall.stf"),
    case("psa", "tests/programs/psa_paths.p4", "tests/programs/psa_paths.stf"),
    case("pna", "tests/programs/pna_nic.p4", "tests/programs/pna_nic.stf"),
    case("sume", "tests/programs/sume_switch.p4", "tests/programs/sume_switch.stf"),
    Case { standard: Standard::P4_14, ..case("p4-14", "programs/nat_14.p4", "programs/nat.stf") },
];

const fn case(name: &'static str, program: &'static str, test: &'static str) -> Case {
    Case { name, program, standard: Standard::P4_16, test }
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(name: &str) -> String {
    std::fs::read_to_string(project().join(name)).unwrap()
}

/// A packet of a test: its port and what it is, and what leaves by each port.
struct Step {
    packet: (u16, Vec<u8>),
    expected: Vec<(u16, Vec<u8>)>,
}

/// The packets of an STF test in their order.
fn steps(test: &str) -> Vec<Step> {
    let mut steps = Vec::<Step>::new();
    for line in test.lines() {
        let Some((word, rest)) = line.split_once(' ').filter(|(word, _)| ["packet", "expect"].contains(word))
        else {
            continue;
        };
        let (port, hex) = rest.split_once(' ').unwrap();
        let digits: Vec<char> = hex.trim_end_matches('$').chars().filter(|c| !c.is_whitespace()).collect();
        let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).unwrap();
        let frame = (port.parse().unwrap(), digits.chunks(2).map(byte).collect());
        match word {
            "packet" => steps.push(Step { packet: frame, expected: Vec::new() }),
            _ => steps.last_mut().unwrap().expected.push(frame),
        }
    }
    steps
}

/// The entries of an STF test as runtime commands: `add TABLE KEY:VALUE ... ACTION(PARAM:VALUE, ...) = NAME`, and commands as they are.
fn entries(test: &str) -> String {
    let value = |word: &str| word.rsplit(':').next().unwrap().to_owned();
    let command = |line: &str| {
        let Some(entry) = line.strip_prefix("add ") else {
            let is_command =
                ["table_add ", "mc_", "mirroring_add"].iter().any(|start| line.starts_with(start));
            return is_command.then(|| line.to_owned());
        };
        let (before, args) = entry.split_once('(').unwrap();
        let args: Vec<String> = args.split_once(')').unwrap().0.split(", ").map(value).collect();
        let mut words = before.split(' ');
        let (table, action) = (words.next().unwrap(), words.next_back().unwrap());
        let keys: Vec<String> = words.map(value).collect();
        Some(format!("table_add {table} {action} {} => {}", keys.join(" "), args.join(" ")))
    };
    test.lines().filter_map(command).map(|line| line + "\n").collect()
}

fn tagged(vlan: u16, frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0], &vlan.to_be_bytes(), &frame[12..]].concat()
}

/// The section of a switch, whose ports have VLANs from the first on.
fn section(case: &Case, source: &str, ports: &[u16], vlan: u16) -> String {
    let port = |(number, vlan): (&u16, u16)| {
        format!(
            "[[switch.port]]\nnumber = {number}\nphysical = \"p0\"\nmatch = {{ vlan = {vlan} }}\ntag = \"strip\"\n"
        )
    };
    let (name, ports) = (case.name, ports.iter().zip(vlan..).map(port).collect::<String>());
    format!("[[switch]]\nname = \"{name}\"\nentries = [\"{name}.txt\"]\n{source}\n{ports}")
}

/// What `millrace compile` makes of a program.
fn image(case: &Case) -> String {
    let path = project().join(case.program);
    let checked = check(Source::Path(&path), case.standard, &Options::default());
    assert!(!checked.has_errors(), "{:?}", checked.findings);
    Image::new(checked.lower().unwrap(), describe(&checked.typed)).to_string()
}

/// A device with all programs; `source` says where each is from.
fn device(folder: Folder, source: impl Fn(&Case) -> String, all: &[Vec<u16>]) -> Lab {
    let (mut text, mut vlan) = (String::new(), FIRST);
    for (case, ports) in CASES.iter().zip(all) {
        folder.write(&format!("{}.txt", case.name), &entries(&read(case.test)));
        text += &section(case, &source(case), ports, vlan);
        vlan += ports.len() as u16;
    }
    Lab::within(folder, &lab::file("", &text))
}

/// The first VLAN.
const FIRST: u16 = 100;

/// The ports of each test.
fn ports(tests: &[Vec<Step>]) -> Vec<Vec<u16>> {
    let of = |steps: &Vec<Step>| {
        let frames = steps.iter().flat_map(|step| step.expected.iter().chain([&step.packet]));
        let mut ports: Vec<u16> = frames.map(|(port, _)| *port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    };
    tests.iter().map(of).collect()
}

/// What is in the snapshot of a switch as its program.
fn program_of(lab: &Lab, name: &str) -> String {
    let Answer::Text(text) = lab.ask(&Request::Snapshot { switch: name.into() }) else { panic!() };
    let snapshot: serde_json::Value = serde_json::from_str(&text).unwrap();
    snapshot["program"].as_str().unwrap().to_owned()
}

/// Sends the packets of all tests, the first of each, then the second of each, and compares what leaves.
fn forward(lab: &Lab, tests: &[Vec<Step>], all: &[Vec<u16>]) {
    let mut vlans = BTreeMap::new();
    for (at, ports) in all.iter().enumerate() {
        let next = FIRST + vlans.len() as u16;
        vlans.extend(ports.iter().zip(next..).map(|(port, vlan)| ((at, *port), vlan)));
    }
    let most = tests.iter().map(Vec::len).max().unwrap();
    let mut sent = vec![0; tests.len()];
    for number in 0..most {
        let now = tests.iter().enumerate().filter_map(|(at, steps)| Some((at, steps.get(number)?)));
        // What has no room for a tag cannot come here.
        let now: Vec<(usize, &Step)> = now.filter(|(_, step)| step.packet.1.len() >= 14).collect();
        let mut wanted = BTreeMap::<u16, Vec<Vec<u8>>>::new();
        for (at, step) in &now {
            sent[*at] += 1;
            for (port, frame) in &step.expected {
                let vlan = vlans[&(*at, *port)];
                wanted.entry(vlan).or_default().push(tagged(vlan, frame));
            }
        }
        lab.cables[0].send(now.iter().map(|(at, step)| tagged(vlans[&(*at, step.packet.0)], &step.packet.1)));
        let begun = Instant::now();
        let has_all = |at: usize| {
            let counts = lab.counts(CASES[at].name);
            counts.ports.iter().map(|port| port.rx_packets).sum::<u64>() == sent[at]
        };
        while !now.iter().all(|(at, _)| has_all(*at)) {
            assert!(begun.elapsed() < PATIENCE, "{:?}", lab.stats());
        }
        let mut left = BTreeMap::<u16, Vec<Vec<u8>>>::new();
        for frame in lab.cables[0].receive(wanted.values().map(Vec::len).sum()) {
            left.entry(u16::from_be_bytes([frame[14], frame[15]])).or_default().push(frame);
        }
        assert_eq!(left, wanted, "packet {number} of each test; VLANs {vlans:?}");
    }
    let losses: Vec<_> = lab.stats().switches.into_iter().flat_map(|switch| switch.losses).collect();
    assert_eq!((losses, lab.stats().unclassified), (Vec::new(), Some(0)));
}

#[test]
fn programs_of_all_architectures_run_in_one_device() {
    let tests = CASES.map(|case| steps(&read(case.test)));
    let all = ports(&tests);
    let program = |case: &Case| {
        let std = if case.standard == Standard::P4_14 { "p4-14" } else { "p4-16" };
        format!("program = \"{}\"\nstd = \"{std}\"", project().join(case.program).display())
    };
    let lab = device(Folder::new(), program, &all);
    forward(&lab, &tests, &all);
    // The image that a device makes of a program is that of `millrace compile`, to the byte ...
    let images = CASES.each_ref().map(image);
    let folder = Folder::new();
    for (case, image) in CASES.iter().zip(&images) {
        assert!(program_of(&lab, case.name) == *image, "{}", case.name);
        folder.write(&format!("{}.mimg", case.name), image);
    }
    // ... which runs in a device as it is.
    let lab = device(folder, |case| format!("image = \"{}.mimg\"", case.name), &all);
    forward(&lab, &tests, &all);
    for (case, image) in CASES.iter().zip(&images) {
        assert!(program_of(&lab, case.name) == *image, "{}", case.name);
    }
}
