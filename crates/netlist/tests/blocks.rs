//! What library blocks do, next to a plain model of it, and what they are made of.

#[allow(dead_code)]
mod common;

use common::tools;
use millrace_netlist::arbitrary::Rng;
use millrace_netlist::*;
use std::collections::VecDeque;

/// Sends numbered beats through a block with streams `s` and `m`, both sides stopping at random, once in so many cycles; gives how
/// many came out. All come out once, in order, and a beat that waits does not change.
fn pass(design: &Design, room: usize, stops: [usize; 2], check: impl Fn(&mut Simulator, usize)) -> u64 {
    let mut sim = Simulator::new(design).unwrap();
    let input = |sim: &Simulator, name: &str| sim.input(name).unwrap();
    let (data, valid, ready) = (input(&sim, "s_tdata"), input(&sim, "s_tvalid"), input(&sim, "m_tready"));
    let [out_data, out_valid, in_ready] =
        ["m_tdata", "m_tvalid", "s_tready"].map(|name| sim.output(name).unwrap());
    let mut rng = Rng::new(stops[0] as u64 * 100 + stops[1] as u64);
    let (mut sent, mut received, mut inside) = (0, 0, VecDeque::new());
    let mut offered = false;
    for _ in 0..5000 {
        offered |= !rng.one_in(stops[0]);
        sim.set_u64(valid, offered.into());
        sim.set_u64(data, if offered { sent & 0xffff } else { 0xdead });
        let takes = !rng.one_in(stops[1]);
        sim.set_u64(ready, takes.into());
        check(&mut sim, inside.len());
        let (comes, goes) = (offered && sim.get_u64(in_ready) == 1, sim.get_u64(out_valid) == 1);
        if goes {
            assert_eq!(Some(&sim.get_u64(out_data)), inside.front(), "the beat at the output");
        }
        if goes && takes {
            inside.pop_front();
            received += 1;
        }
        if comes {
            inside.push_back(sent & 0xffff);
            (sent, offered) = (sent + 1, false);
        }
        assert!(inside.len() <= room, "{} beats inside", inside.len());
        sim.step();
    }
    assert_eq!(sim.collisions(), 0, "reads of what is written");
    received
}

#[test]
fn register_slice() {
    for stops in [[1_000_000, 1_000_000], [2, 1_000_000], [1_000_000, 2], [3, 3], [2, 5]] {
        let mut design = Design::new();
        blocks::register_slice(&mut design, StreamShape::words(16));
        let received = pass(&design, 2, stops, |_, _| ());
        // Nothing stops: one beat a cycle, after the first.
        assert!(stops != [1_000_000, 1_000_000] || received == 4999, "{received}");
    }
}

#[test]
fn fifo() {
    for depth in [1, 2, 3, 4, 5, 16, 100] {
        for stops in [[1_000_000, 1_000_000], [2, 1_000_000], [1_000_000, 2], [3, 3], [7, 2], [2, 7]] {
            let mut design = Design::new();
            blocks::fifo(&mut design, StreamShape::words(16), depth);
            let received = pass(&design, depth as usize + 1, stops, |sim, inside| {
                let length = sim.output("length").unwrap();
                assert_eq!(sim.get_u64(length), inside as u64, "length");
            });
            // A memory of one word cannot write while it reads that word.
            let wanted = if depth == 1 { 2400 } else { 4998 };
            assert!(stops != [1_000_000, 1_000_000] || received >= wanted, "{depth}: {received}");
        }
    }
}

#[test]
fn priority_arbiter() {
    let mut design = Design::new();
    blocks::priority_arbiter(&mut design, 5);
    let mut sim = Simulator::new(&design).unwrap();
    let (request, grant) = (sim.input("request").unwrap(), sim.output("grant").unwrap());
    for requests in 0..32u64 {
        sim.set_u64(request, requests);
        let wanted = if requests == 0 { 0 } else { 1 << requests.trailing_zeros() };
        assert_eq!(sim.get_u64(grant), wanted, "{requests:b}");
    }
}

#[test]
fn round_robin_arbiter() {
    for count in [1, 2, 3, 8, 70] {
        let mut design = Design::new();
        blocks::round_robin_arbiter(&mut design, count);
        let mut sim = Simulator::new(&design).unwrap();
        let [request, take] = ["request", "take"].map(|name| sim.input(name).unwrap());
        let grant = sim.output("grant").unwrap();
        let mut rng = Rng::new(count.into());
        let mut last = count as usize - 1;
        for _ in 0..2000 {
            let requests = rng.bits(count);
            let taken = rng.one_in(2);
            sim.set(request, &requests);
            sim.set_u64(take, taken.into());
            // The next one after the last one that asks.
            let next = (1..=count as usize).map(|step| (last + step) % count as usize);
            let served = next.into_iter().find(|at| requests.bit(*at as u32));
            let wanted = served.map_or(Bits::zero(count), |at| Bits::new(count, 1).shl_by(at as u64));
            assert_eq!(sim.get(grant), wanted, "{requests} after {last}");
            sim.step();
            if let (true, Some(served)) = (taken, served) {
                last = served;
            }
        }
    }
}

/// A top with an instance of each block, whose ports are its own.
fn all_blocks() -> Design {
    let mut design = Design::new();
    let all = [
        blocks::register_slice(&mut design, StreamShape::frames(64, 3)),
        blocks::fifo(&mut design, StreamShape::frames(64, 3), 512),
        blocks::priority_arbiter(&mut design, 9),
        blocks::round_robin_arbiter(&mut design, 9),
    ];
    let mut m = ModuleBuilder::new("all_blocks");
    for (at, block) in all.into_iter().enumerate() {
        let instance = m.instance(&design, block, &format!("block{at}"));
        for port in design.modules[block].inputs.values() {
            let input = m.input(&format!("block{at}_{}", port.name), port.width);
            m.connect(instance, &port.name, input);
        }
        for port in design.modules[block].outputs.values() {
            let output = m.output_of(instance, &port.name);
            m.output(&format!("block{at}_{}", port.name), output);
        }
    }
    design.add(m.finish());
    design
}

#[test]
fn verilator_has_nothing_to_say() {
    if tools::has("verilator") {
        tools::lint(&all_blocks(), "blocks").unwrap_or_else(|said| panic!("{said}"));
    }
}

/// Synthesis finds no latch, and block memory for the words of the queue, with no circuit around it that keeps old data.
#[test]
fn synthesis() {
    if !tools::has("yosys") {
        return;
    }
    for (target, memory) in [("synth_xilinx -flatten", "RAMB"), ("synth_ecp5", "DP16KD")] {
        let script = format!(
            "{target} -top TOP; check -assert; select -assert-none t:$_DLATCH*; tee -o /dev/stdout stat"
        );
        let said = tools::yosys(&all_blocks(), memory, &script).unwrap_or_else(|said| panic!("{said}"));
        let count = |cell: &str| -> u32 {
            let lines = said.lines().filter(|line| line.trim_start().starts_with(cell));
            lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u32>().ok()).sum()
        };
        assert!(count(memory) > 0, "{target}: {said}");
        // A slice has 2 beats of 76 bits, 2 bits more and the inverse of one; the queue has 9 + 9 + 10 + 1, the round robin 9.
        let flip_flops = count("FDRE") + count("FDSE") + count("TRELLIS_FF");
        assert!(flip_flops <= 2 * 76 + 3 + 29 + 9, "{target}: {flip_flops} flip-flops: {said}");
    }
}
