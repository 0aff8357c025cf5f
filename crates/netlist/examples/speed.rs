//! How fast the simulator is: `cargo run --release -p millrace-netlist --example speed [VALUES]`.
//!
//! Two designs, each of about so many values (100,000 if nothing is said): *words*, a network of sums, choices and comparisons of 8 to
//! 64 bits between registers, as an action or a checksum is; *window*, operations on 512 bits, as a parser's window is. Prints cycles
//! a second, values a second, and operations on words a second.

use millrace_netlist::{Design, ModuleBuilder, NodeId, Simulator, passes};
use std::time::Instant;

/// A stream of numbers, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

fn design(values: usize, widths: &[u32]) -> Design {
    let mut numbers = Numbers(1);
    let mut m = ModuleBuilder::new("speed");
    let mut registers = Vec::new();
    let mut by_width: Vec<Vec<NodeId>> = Vec::new();
    for (at, width) in widths.iter().enumerate() {
        let own = (0..1 + values / 200).map(|n| {
            let (register, value) = m.register(&format!("r{at}_{n}"), *width, Some((n + 1) as u128));
            registers.push((register, at));
            value
        });
        by_width.push(own.collect());
    }
    let mut bits = vec![m.input("go", 1)];
    while m.module().nodes.len() < values {
        let kind = numbers.below(widths.len());
        let pick = |numbers: &mut Numbers, all: &[NodeId]| {
            let recent = all.len().min(2000);
            all[all.len() - recent + numbers.below(recent)]
        };
        let (a, b) = (pick(&mut numbers, &by_width[kind]), pick(&mut numbers, &by_width[kind]));
        let new = match numbers.below(10) {
            0 | 1 => m.add(a, b),
            2 => m.xor(a, b),
            3 => m.and(a, b),
            4 => m.or(a, b),
            5 | 6 => {
                let bit = pick(&mut numbers, &bits);
                m.mux(bit, a, b)
            }
            7 => {
                bits.push(m.eq(a, b));
                continue;
            }
            8 => {
                bits.push(m.lt(a, b));
                continue;
            }
            _ => {
                let half = m.width(a) / 2;
                let (high, low) = (m.slice(a, 0, half), m.slice(b, half, half));
                m.concat(&[high, low])
            }
        };
        by_width[kind].push(new);
    }
    for (at, (register, kind)) in registers.into_iter().enumerate() {
        let all = &by_width[kind];
        // What was made last is used first.
        m.set_next(register, all[all.len() - 1 - at % all.len()]);
    }
    // All of it counts.
    let mut checksum = Vec::new();
    for all in &by_width {
        let parts: Vec<NodeId> = all.iter().map(|value| m.reduce_xor(*value)).collect();
        let none = m.number(1, 0);
        checksum.push(m.tree(millrace_netlist::BinaryOp::Xor, &parts, none));
    }
    let checksum = m.concat(&checksum);
    m.output("checksum", checksum);
    let mut design = Design::new();
    design.add(m.finish());
    design
}

fn measure(name: &str, design: &Design) {
    let start = Instant::now();
    let mut sim = Simulator::new(design).expect("a sound design");
    let built = start.elapsed();
    let (values, operations) = sim.work();
    let go = sim.input("go").expect("an input");
    sim.set_u64(go, 1);
    let mut best = f64::INFINITY;
    let cycles = (20_000_000 / operations.max(1)).max(3);
    for _ in 0..7 {
        let start = Instant::now();
        (0..cycles).for_each(|_| sim.step());
        best = best.min(start.elapsed().as_secs_f64() / cycles as f64);
    }
    println!(
        "{name}: {values} values, {operations} operations in {} runs; made in {:.0} ms; {:.0} cycles/s, {:.0} M values/s, {:.0} M operations/s",
        sim.runs(),
        built.as_secs_f64() * 1e3,
        1.0 / best,
        values as f64 / best / 1e6,
        operations as f64 / best / 1e6,
    );
}

fn main() {
    let values = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let sets: [(&str, usize, &[u32]); 3] = [
        ("small words", 5_000, &[8, 16, 32, 48, 64]),
        ("words", values, &[8, 16, 32, 48, 64]),
        ("window", values / 8, &[512]),
    ];
    for (name, values, widths) in sets {
        let mut design = design(values, widths);
        let start = Instant::now();
        passes::optimize(&mut design);
        println!("{name}: optimised in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
        measure(name, &design);
    }
}
