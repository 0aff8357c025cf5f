//! Nodes at random, all of them hardware, with frames at both links in each cycle: what leaves is what software sends of the same frames,
//! but for what is counted as lost, and in the end nothing waits.

#[allow(dead_code)]
mod board;
#[allow(dead_code)]
mod nodes;

use board::{Board, Registers};
use millrace_link::Device;
use millrace_node::hardware::{MappedDevice, Programs, Top};
use millrace_node::{NodeFile, map};
use millrace_rtl::Target;
use millrace_rtl::device::Link;
use millrace_rtl::map::Bus;
use nodes::{Numbers, graph, in_hardware, load, number, text};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const MACS: [&str; 2] = ["p0", "p1"];

/// Frames at each link.
const FRAMES: usize = 40;

/// How often each frame has left by each MAC.
type Left = BTreeMap<(usize, Vec<u8>), u64>;

/// The frames that come, each with the number of its MAC: no two are equal.
fn frames(seed: u64) -> Vec<(usize, Vec<u8>)> {
    let mut numbers = Numbers(seed);
    let frame = |at: usize| {
        let mut frame = vec![0; [60, 61, 68, 130, 700, 1500][numbers.below(6)]];
        frame.iter_mut().for_each(|octet| *octet = numbers.below(4) as u8);
        frame[50..54].copy_from_slice(&(at as u32).to_be_bytes());
        (at % 2, frame)
    };
    (0..2 * FRAMES).map(frame).collect()
}

/// What software sends, one frame after the other.
fn wanted(text: &str, frames: &[(usize, Vec<u8>)]) -> Left {
    let (mut graph, file) = graph(text);
    let left = board::carry(&mut graph, &file, MACS, frames);
    counted(left)
}

fn counted(left: [Vec<Vec<u8>>; 2]) -> Left {
    let mut counts = Left::new();
    for (mac, frames) in left.into_iter().enumerate() {
        for frame in frames {
            *counts.entry((mac, frame)).or_default() += 1;
        }
    }
    counts
}

#[test]
fn under_load_every_frame_leaves_or_is_counted() {
    let (first, mut nodes, mut whole) = (number("MILLRACE_NODE_FIRST", 0), 0, 0);
    for seed in first..first + number("MILLRACE_NODES", 12) {
        let mut numbers = Numbers(seed);
        let (text, placed) = text(&mut numbers);
        // Two schedulers may lead to one MAC, which asks one.
        if NodeFile::parse("node.toml", &text).is_err() {
            continue;
        }
        let hardware = in_hardware(&text, placed.iter().flatten());
        let node =
            NodeFile::parse("node.toml", &hardware).unwrap_or_else(|why| panic!("{}", why.render(false)));
        let programs = Programs::of(&node, (Bus::Axi4Lite, Target::default()), &mut load).unwrap();
        let top = Top::new(&node, &programs, 0, Bus::Axi4Lite).unwrap().unwrap();
        let board = Arc::new(Mutex::new(Board::new(&node, &top, Link::Xgmii, MACS)));
        let registers = |bus: usize| -> Box<dyn Device> { Box::new(Registers(Arc::clone(&board), bus)) };
        let of_programs = (1..=top.programs.len()).map(registers).collect();
        let mut device = MappedDevice::new(&node, &top, registers(0), of_programs).unwrap();

        let frames = frames(seed);
        let (wanted, found) = (wanted(&text, &frames), counted(board.lock().unwrap().carry_at_once(&frames)));
        let map = map(&node);
        let mut value = |of: &millrace_node::Mapped| device.read(of.address).unwrap();
        let lost: u32 = map.iter().filter(|of| of.name.ends_with(".lost")).map(&mut value).sum();
        for of in map.iter().filter(|of| of.name.ends_with("queue.frames") || of.name.ends_with(".bytes")) {
            assert_eq!(value(of), 0, "seed {seed}: {} wait\n{hardware}", of.name);
        }
        let sent: u64 = found.values().sum();
        for (frame, count) in &found {
            let most = wanted.get(frame).copied().unwrap_or(0);
            assert!(
                *count <= most,
                "seed {seed}: {count} and not {most} times {:?}\n{hardware}",
                &frame.1[50..54]
            );
        }
        let missing = wanted.values().sum::<u64>() - sent;
        assert!(lost > 0 || missing == 0, "seed {seed}: {missing} frames are missing\n{hardware}");
        nodes += 1;
        whole += u32::from(missing == 0 && sent > 0);
    }
    assert!(whole * 3 > nodes, "{whole} of {nodes} nodes lose nothing");
}
