//! How long a frame takes over the host link and back, and how many go over it in a second: alone, as the link of a program that is taken
//! apart at a table, and to a memory that programs share.
//!
//! `cargo run --release -p millrace-node --example host_link [FRAMES]`

use millrace_dataplane::{Switch, SwitchConfig};
use millrace_link::{Client, Device, Event, Fault, Server, Shape};
use millrace_node::blocks::compile;
use millrace_node::split::SplitEngine;
use millrace_node::{Graph, NodeFile, SharedMemory};
use millrace_stf::{parse, run_on};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A device that sends back what it is sent.
#[derive(Debug, Default)]
struct Echo(Vec<Vec<u8>>);

impl Device for Echo {
    fn shape(&self) -> Shape {
        Shape { name: "echo".into(), bytes: 4, ports: 1 }
    }

    fn read(&mut self, _: u32) -> Result<u32, Fault> {
        Ok(0)
    }

    fn write(&mut self, _: u32, _: u32) -> Result<(), Fault> {
        Ok(())
    }

    fn send(&mut self, _: u16, frame: &[u8]) -> Result<(), Fault> {
        self.0.push(frame.to_vec());
        Ok(())
    }

    fn poll(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        self.0.drain(..).for_each(|bytes| tell(Event::Frame { port: 0, bytes }));
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let frames: usize = std::env::args().nth(1).map_or(Ok(10_000), |text| text.parse())?;
    println!("{:>8} {:>7} {:>11} {:>11} {:>11}", "bytes", "window", "median us", "99 % us", "frames/s");
    for bytes in [64, 512, 1518] {
        for window in [1, 32] {
            alone(bytes, window, frames)?;
        }
    }
    for software in [
        &[][..],
        &["binding_in"],
        &["static_in", "binding_in", "ipv4_lpm", "static_out", "binding_out", "send_frame"],
    ] {
        program(software)?;
    }
    for nodes in [1, 2] {
        sharing(nodes)?;
    }
    Ok(())
}

/// Frames from the inside through the gates of so many nodes at once, which share a memory, for a second.
fn sharing(nodes: usize) -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/nodes"));
    let text = std::fs::read_to_string(folder.join("gates.toml"))?;
    let mut file = NodeFile::parse("gates.toml", &text).map_err(|why| why.render(false))?;
    let spec = &mut file.memories[0];
    let server = Server::local(Box::new(SharedMemory::new(&spec.name, spec.words)?))?;
    spec.at = Some(server.address());
    let stf = std::fs::read_to_string(folder.join("../nat.stf"))?;
    let test = parse(&stf).map_err(|_| "nat.stf")?;
    let frames: Vec<Vec<u8>> = test.frames().map(|(_, bytes)| bytes.to_vec()).collect();
    let run = || -> Result<(u64, u64), String> {
        let mut load =
            |path: &Path| std::fs::read_to_string(folder.join(path)).map_err(|why| why.to_string());
        let mut graph = Graph::new(&file, &mut load).map_err(|why| why.to_string())?;
        let [mac, gate] = ["left_inside", "left"].map(|name| file.block(name).unwrap_or_default());
        let (begun, mut at) = (Instant::now(), 0);
        while begun.elapsed() < Duration::from_secs(1) {
            graph.receive(mac, &frames[at % frames.len()], 0);
            while graph.turn(0) {}
            at += 1;
        }
        let counts = graph.program(gate).map(|gate| gate.shared_counts()).unwrap_or_default();
        Ok((counts.frames - counts.lost, counts.waits))
    };
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..nodes).map(|_| scope.spawn(run)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "a thread ended")?)
            .collect::<Result<Vec<_>, String>>()
    })?;
    let (frames, waits) = all.iter().fold((0, 0), |(frames, waits), one| (frames + one.0, waits + one.1));
    println!(
        "{nodes} nodes whose programs share 2048 words: {frames} frames in a second, {waits} of them waited"
    );
    Ok(())
}

/// So many frames, of which so many are on the link at once.
fn alone(bytes: usize, window: usize, frames: usize) -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::local(Box::new(Echo::default()))?;
    let mut client = Client::connect(server.address(), true)?;
    let frame = vec![0x5a; bytes];
    let mut sent = std::collections::VecDeque::new();
    let (mut times, mut left) = (Vec::with_capacity(frames), frames);
    let begun = Instant::now();
    while times.len() < frames {
        while left > 0 && sent.len() < window {
            sent.push_back(Instant::now());
            client.send(0, &frame)?;
            left -= 1;
        }
        client.event(Duration::from_secs(5))?.ok_or("no answer")?;
        times.extend(sent.pop_front().map(|sent| sent.elapsed()));
    }
    let rate = frames as f64 / begun.elapsed().as_secs_f64();
    times.sort();
    let at = |part: usize| times[(frames - 1) * part / 100].as_secs_f64() * 1e6;
    println!("{bytes:>8} {window:>7} {:>11.1} {:>11.1} {rate:>11.0}", at(50), at(99));
    Ok(())
}

/// The test of `nat.p4`, over and over for a second.
fn program(software: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs"));
    let mut load = |path: &Path| std::fs::read_to_string(path).map_err(|why| why.to_string());
    let program = compile(&folder.join("nat.p4"), &mut load)?;
    let names: Vec<String> = software.iter().map(|name| (*name).to_owned()).collect();
    let engine = SplitEngine::new(&program, &names)?;
    let ((to, back), counts) = (engine.cut().live_bits(), engine.counts());
    let mut switch = Switch::with_engine(program, SwitchConfig::default(), Box::new(engine))?;
    let text = std::fs::read_to_string(folder.join("nat.stf"))?;
    let test = parse(&text).map_err(|_| "nat.stf")?;
    let report = run_on(&mut switch, &text, &test, |_| ());
    let packets: Vec<(u32, Vec<u8>)> = test.frames().map(|(port, bytes)| (port, bytes.to_vec())).collect();
    let before = *counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (begun, mut passed) = (Instant::now(), 0u64);
    while begun.elapsed() < Duration::from_secs(1) {
        for (port, bytes) in &packets {
            switch.inject(*port, bytes, 0);
            passed += 1;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = *counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let per = |count: u64| count as f64 / passed as f64;
    println!(
        "nat.p4 with {} tables in software: test {}, {:.0} frames/s, {:.2} stages and {:.2} tables a frame, {to} bits to a table and {back} back",
        software.len(),
        if report.is_success() { "passes" } else { "FAILS" },
        passed as f64 / seconds,
        per(after.frames - before.frames),
        per(after.tables - before.tables),
    );
    Ok(())
}
