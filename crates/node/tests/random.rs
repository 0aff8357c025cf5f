//! Nodes at random, without loops, with each of their blocks in software, in hardware, or here and there: the same frames leave, and the
//! same is counted.

#[allow(dead_code)]
mod nodes;

use millrace_node::{Mapped, NodeFile, map};
use nodes::{Numbers, graph, in_hardware, number, text};

/// What leaves by both MACs, frame by frame, and all registers at the end.
type Said = (Vec<[Vec<Vec<u8>>; 2]>, Vec<(String, Vec<u32>)>);

fn run(text: &str, seed: u64) -> Said {
    let (mut graph, file) = graph(text);
    let (macs, mut numbers) = (["p0", "p1"].map(|mac| file.block(mac).unwrap()), Numbers(seed));
    let mut said = Vec::new();
    for _ in 0..24 {
        let mut frame = vec![0; [60, 61, 68, 130, 700, 3000][numbers.below(6)]];
        frame.iter_mut().for_each(|octet| *octet = numbers.below(4) as u8);
        assert!(graph.receive(macs[numbers.below(2)], &frame, 0));
        let mut left = [Vec::new(), Vec::new()];
        loop {
            let mut moved = graph.turn(0);
            for (left, mac) in left.iter_mut().zip(macs) {
                let before = left.len();
                left.extend(std::iter::from_fn(|| graph.leave_by(mac)));
                moved |= left.len() > before;
            }
            if !moved {
                break;
            }
        }
        // A program has each frame as a whole before it sends it: copies that take other paths may be before it at a MAC.
        if text.contains("kind = \"p4\"") {
            left.iter_mut().for_each(|left| left.sort());
        }
        said.push(left);
    }
    let value = |of: &Mapped| (0..of.words).map(|word| graph.read(of.address + 4 * word)).collect();
    // What a link has broken, software does not count.
    (said, map(&file).iter().map(|of| (of.name.clone(), value(of))).collect())
}

/// One frame after the other, as queues and MACs in hardware send as soon as they can. `MILLRACE_NODES` of them, from
/// `MILLRACE_NODE_FIRST` on.
#[test]
fn blocks_do_the_same_wherever_they_are() {
    let (first, mut left) = (number("MILLRACE_NODE_FIRST", 0), 0);
    let nodes = number("MILLRACE_NODES", 12);
    for seed in first..first + nodes {
        let mut numbers = Numbers(seed);
        let (text, placed) = text(&mut numbers);
        // Two schedulers may lead to one MAC, which asks one.
        if NodeFile::parse("node.toml", &text).is_err() {
            continue;
        }
        let wanted = run(&text, seed);
        left += wanted.0.iter().flatten().map(Vec::len).sum::<usize>();
        for round in 0..3 {
            let chosen = placed.iter().filter(|_| round == 0 || numbers.below(2) == 0).flatten();
            let hardware = in_hardware(&text, chosen);
            let found = run(&hardware, seed);
            for (at, (wanted, found)) in wanted.0.iter().zip(&found.0).enumerate() {
                let lengths = |left: &[Vec<Vec<u8>>; 2]| {
                    left.each_ref().map(|left| left.iter().map(Vec::len).collect::<Vec<_>>())
                };
                let both = [found, wanted].map(lengths);
                assert!(wanted == found, "seed {seed}, {round}, frame {at}: {both:?}\n{hardware}");
            }
            for (wanted, found) in wanted.1.iter().zip(&found.1) {
                assert_eq!(wanted, found, "seed {seed}, {round}\n{hardware}");
            }
        }
    }
    assert!(left as u64 > 5 * nodes, "{left} frames");
}
