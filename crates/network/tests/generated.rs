//! Random networks: what is generated is right, a simulation never is above a bound, and formats keep what they can say.

use millrace_network::bounds::bounds;
use millrace_network::export::{entries, wopanets};
use millrace_network::generate::{Size, generate};
use millrace_network::import::{Format, Source, import};
use millrace_network::simulate::{Offsets, Setting, simulate};
use millrace_network::{End, Link, Network, Side, Topology};
use std::collections::BTreeMap;

/// Networks of a test. MILLRACE_NETWORKS says another number, for an evaluation.
fn networks() -> u64 {
    number("MILLRACE_NETWORKS", 200)
}

/// Frames of a simulation.
fn frames() -> u64 {
    number("MILLRACE_FRAMES", 2_000)
}

fn number(name: &str, without: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(without)
}

fn checked(seed: u64, size: Size) -> Network {
    let network = generate(seed, size);
    network.checked("generated").unwrap_or_else(|problems| panic!("{seed}: {}", problems.render(false)))
}

#[test]
fn a_simulation_is_never_above_a_bound() {
    let mut reached = Vec::new();
    for seed in 0..networks() {
        let network = checked(seed, Size::random(seed));
        let topology = Topology::new(&network).expect("a topology");
        let bounds = bounds(&topology).expect("bounds");
        assert!(bounds.paths.iter().all(|path| path.bound.is_ok()), "{seed}: a tree has bounds");
        for (offsets, _) in Offsets::ALL {
            let setting = Setting { frames: frames(), offsets, seed, vls: Vec::new() };
            let report = simulate(&topology, Some(&bounds), &setting, &mut |_| {}).expect("a simulation");
            assert_eq!(report.above(&bounds), [], "{seed} {offsets:?}");
            // Accounts tolerate what the bounds say, so nothing is lost.
            assert_eq!(report.discards, Default::default(), "{seed} {offsets:?}");
            let paths = report.paths.iter().zip(&bounds.paths);
            for (seen, path) in paths.filter(|_| offsets == Offsets::Directed) {
                reached.extend(path.bound.as_ref().ok().map(|bound| seen.part_of(bound.delay)));
            }
            for (port, (most, bound)) in report.most_waiting.iter().zip(&bounds.ports).enumerate() {
                if let Some(Ok(queue)) = &bound.bound {
                    assert!(
                        *most <= queue.room,
                        "{seed} {offsets:?}: port {port} held {most} bytes, bound {}",
                        queue.room
                    );
                }
            }
        }
    }
    let mean = reached.iter().sum::<u64>() / reached.len() as u64;
    println!("{} paths reached {mean} thousandths of their bounds on average", reached.len());
    assert!(mean >= 800, "{mean}");
}

#[test]
fn what_is_written_is_read_back() {
    for seed in 0..networks().min(100) {
        let network = checked(seed, Size::random(seed));
        let text = network.to_toml();
        let back = Network::parse("back", &text).expect("its own text");
        assert_eq!(back, network, "{seed}");
        let mut turned = network.clone();
        turned.vls.reverse();
        turned.end_systems.reverse();
        turned.links.reverse();
        assert_eq!(turned.crc(), network.crc(), "{seed}: the order is not part of the CRC");
        turned.vls[0].lmax ^= 1;
        assert_ne!(turned.crc(), network.crc(), "{seed}");
    }
}

fn delays(topology: &Topology<'_>) -> Vec<u64> {
    let found = bounds(topology).expect("bounds");
    found.paths.iter().map(|path| path.bound.as_ref().expect("a bound").delay).collect()
}

/// WoPANets says what matters to delays: a network that is written and read has the same bounds.
#[test]
fn wopanets_keeps_the_bounds() {
    for seed in 0..networks().min(100) {
        let network = checked(seed, Size::random(seed));
        let topology = Topology::new(&network).expect("a topology");
        let (text, _) = wopanets(&topology, Side::A);
        let source = Source { name: "written.xml", text: &text };
        let read = import(Format::Wopanets, &[source]);
        let read = read.unwrap_or_else(|problems| panic!("{seed}: {}", problems.render(false))).network;
        let back = Topology::new(&read).expect("a topology");
        assert_eq!(delays(&topology), delays(&back), "{seed}");
    }
}

/// Links of one direction are those of their direction again, whether the other one has a link or not.
#[test]
fn wopanets_keeps_the_directions_of_links() {
    let mut compared = 0;
    for seed in 0..networks().min(100) {
        let mut network = checked(seed, Size::random(seed));
        let both: Vec<Link> = network.links.iter().filter(|link| link.network == Side::A).cloned().collect();
        network.links.retain(|link| link.network != Side::A);
        let mut next = BTreeMap::<String, u16>::new();
        for link in both {
            let [from, to] = link.between.clone();
            for (between, more) in [([from.clone(), to.clone()], 0), ([to, from], 1)] {
                let between = between.map(|end| {
                    let next = next.entry(end.node.clone()).or_default();
                    *next += 1;
                    End { node: end.node, port: *next - 1 }
                });
                let (rate, service_rate) = (link.rate + more, link.service_rate + more);
                network.links.push(Link { between, rate, service_rate, one_way: true, ..link.clone() });
            }
        }
        let Ok(network) = network.checked("directed") else { continue };
        let topology = Topology::new(&network).expect("a topology");
        let (text, notes) = wopanets(&topology, Side::A);
        assert!(!notes.iter().any(|note| note.contains("one direction")), "{seed}: {notes:?}");
        let read = import(Format::Wopanets, &[Source { name: "written.xml", text: &text }]);
        let read = read.unwrap_or_else(|problems| panic!("{seed}: {}", problems.render(false))).network;
        let written: Vec<&Link> = network.links.iter().filter(|link| link.network == Side::A).collect();
        assert_eq!(read.links.iter().collect::<Vec<_>>(), written, "{seed}");
        compared += 1;
    }
    assert!(compared > 10, "{compared}: others have more ports than a node may have");
}

/// What is read of output ports is written as a network of nodes, and read again with the same bounds: also links faster than a switch
/// can send, which end systems have.
#[test]
fn output_ports_are_written_as_a_network_that_is_read() {
    let text = include_str!("import/ports.json");
    let network = import(Format::Saihu, &[Source { name: "ports.json", text }]).expect("a network").network;
    let topology = Topology::new(&network).expect("a topology");
    let (text, _) = wopanets(&topology, Side::A);
    let read = import(Format::Wopanets, &[Source { name: "written.xml", text: &text }]);
    let read = read.unwrap_or_else(|problems| panic!("{}", problems.render(false))).network;
    let back = Topology::new(&read).expect("a topology");
    assert_eq!(delays(&topology), delays(&back));
}

/// Each virtual link is in the entries of each switch that it passes, once, with the ports that it leaves by.
#[test]
fn entries_send_each_virtual_link_on_its_way() {
    for seed in 0..networks().min(100) {
        let network = checked(seed, Size::random(seed));
        let topology = Topology::new(&network).expect("a topology");
        let made = entries(&topology, &bounds(&topology).expect("bounds")).expect("entries");
        for (place, of_switch) in made.iter().enumerate() {
            let node = (network.end_systems.len() + place) as u32;
            let mut wanted = Vec::new();
            for tree in &topology.trees {
                let ports = |hop: &millrace_network::Hop| &topology.graph.ports[hop.port as usize];
                let Some(enters) = tree.hops.iter().find(|hop| ports(hop).to == node) else { continue };
                let leaves = tree.hops.iter().filter(|hop| ports(hop).node == node);
                let bitmap = leaves.fold(0u64, |bitmap, hop| bitmap | 1 << ports(hop).number);
                wanted.push((ports(enters).to_number, network.vls[tree.vl].id, bitmap));
            }
            let words = |line: &str| -> (u16, u16, u64) {
                let words: Vec<&str> = line.split_whitespace().collect();
                let bitmap = u64::from_str_radix(words[11].trim_start_matches("0x"), 16).expect("a bitmap");
                (words[3].parse().expect("a port"), words[4].parse().expect("an id"), bitmap)
            };
            let lines = of_switch.commands.lines().filter(|line| line.starts_with("table_add vls"));
            let mut found: Vec<_> = lines.map(words).collect();
            found.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{seed}: {}", of_switch.switch);
            let plans = millrace_traffic::words::parse(&of_switch.plans).expect("plans");
            let ports = wanted.iter().fold(0, |bitmap, (.., leaves)| bitmap | leaves);
            assert_eq!(plans.len() as u32, ports.count_ones(), "{seed}");
        }
    }
}

/// 8 switches in a tree with 80 end systems, 1000 virtual links with 6 destinations each: 6000 paths.
fn aircraft() -> Network {
    let mut text = "[network]\nname = \"aircraft\"\nrate = \"1Gbit\"\n".to_owned();
    for end_system in 0..80 {
        text += &format!("[[end-system]]\nname = \"e{end_system}\"\nmax-jitter = \"10ms\"\n");
        text += &format!("[[link]]\nbetween = [\"e{end_system}\", \"s{}\"]\n", end_system % 8);
    }
    for switch in 0..8 {
        text += &format!("[[switch]]\nname = \"s{switch}\"\nlatency = \"10us\"\n");
        if switch > 0 {
            text += &format!("[[link]]\nbetween = [\"s{}\", \"s{switch}\"]\n", (switch - 1) / 2);
        }
    }
    for vl in 0..1000 {
        // 7 and 80 have no common divisor, so the destinations are six others.
        let to: Vec<String> = (1..=6).map(|at| format!("\"e{}\"", (vl + 7 * at + vl / 80) % 80)).collect();
        text += &format!("[[vl]]\nid = {vl}\nsource = \"e{}\"\nto = [{}]\n", vl * 3 % 80, to.join(", "));
        text += &format!(
            "bag = \"{}ms\"\nlmax = {}\npriority = {}\n",
            4 << (vl % 6),
            100 + vl * 37 % 500,
            vl % 2
        );
    }
    Network::parse("aircraft", &text).unwrap_or_else(|problems| panic!("{}", problems.render(false)))
}

/// The speed of a simulation and of bounds, by the time of the processor: cargo test --release --test generated -- --ignored speed --nocapture.
#[test]
#[ignore = "a measurement"]
fn speed() {
    let size = Size { switches: 8, end_systems: 80, vls: 4000, destinations: 8, extra_links: 0, load: 60 };
    for (name, network) in [("aircraft", aircraft()), ("random", checked(1, size))] {
        let topology = Topology::new(&network).expect("a topology");
        let busy = processor_time();
        let bounds = bounds(&topology).expect("bounds");
        let (took, paths) = (processor_time() - busy, bounds.paths.len());
        println!(
            "{name}: {} virtual links, {paths} paths: bounds in {:.1} ms",
            network.vls.len(),
            took * 1e3
        );
        for offsets in [Offsets::Random, Offsets::Synchronous] {
            let setting =
                Setting { frames: number("MILLRACE_FRAMES", 2_000_000), offsets, seed: 1, vls: Vec::new() };
            let busy = processor_time();
            let report = simulate(&topology, Some(&bounds), &setting, &mut |_| {}).expect("a simulation");
            let took = processor_time() - busy;
            assert_eq!(report.above(&bounds), []);
            let rate = report.hops as f64 / took / 1e6;
            println!(
                "{name}, {offsets:?}: {} frames, {} hops: {rate:.2} million hops a second",
                report.frames, report.hops
            );
        }
    }
}

/// Seconds that this thread has had a processor, which other work on the machine does not change much.
fn processor_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
