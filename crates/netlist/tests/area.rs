//! Estimates of area next to what Yosys makes of the library's blocks and of operations.

#[allow(dead_code)]
mod common;

use common::tools;
use millrace_netlist::area::{Area, Fabric, estimate};
use millrace_netlist::blocks::{self, EditorShape};
use millrace_netlist::{BinaryOp, Design, ModuleBuilder, StreamShape, passes};

/// What Yosys counts.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    luts: u64,
    ffs: u64,
    memory_luts: u64,
    blocks: u64,
}

fn counted(said: &str) -> Counted {
    let mut counted = Counted::default();
    for line in said.lines() {
        let mut words = line.split_whitespace();
        let (Some(cell), Some(count), None) = (words.next(), words.next(), words.next()) else { continue };
        let Ok(count) = count.parse::<u64>() else { continue };
        match cell {
            "LUT1" | "LUT2" | "LUT3" | "LUT4" | "LUT5" | "LUT6" => counted.luts += count,
            "CCU2C" => counted.luts += 2 * count,
            "FDRE" | "FDSE" | "TRELLIS_FF" => counted.ffs += count,
            "RAM32M" | "RAM64M" | "TRELLIS_DPR16X4" => counted.memory_luts += 4 * count,
            "RAM32X1D" | "RAM64X1D" => counted.memory_luts += 2 * count,
            "SRL16E" | "SRLC32E" => counted.memory_luts += count,
            "RAMB18E1" | "DP16KD" => counted.blocks += count,
            "RAMB36E1" => counted.blocks += 2 * count,
            _ => {}
        }
    }
    counted
}

/// A module with one operation between registers.
fn operation(name: &str, width: u32, op: BinaryOp) -> Design {
    let mut m = ModuleBuilder::new(name);
    let (a, b) = (m.input("a", width), m.input("b", width));
    let (a, b) = (m.delayed("held_a", a, None), m.delayed("held_b", b, None));
    let result = m.binary(op, a, b);
    let result = m.delayed("result", result, None);
    m.output("result", result);
    let mut design = Design::new();
    design.add(m.finish());
    design
}

/// A choice of so many words by their number.
fn choice(words: u32, width: u32) -> Design {
    let mut m = ModuleBuilder::new("choice");
    let all: Vec<_> = (0..words).map(|at| m.input(&format!("word{at}"), width)).collect();
    let index = m.input("number", millrace_netlist::address_width(words));
    let chosen = m.choose(index, &all);
    let chosen = m.delayed("chosen", chosen, None);
    m.output("chosen", chosen);
    let mut design = Design::new();
    design.add(m.finish());
    design
}

/// A memory that is read in the same cycle or after the edge, and what is read, some cycles later.
fn memory(width: u32, depth: u32, is_clocked: bool) -> Design {
    let mut m = ModuleBuilder::new("memory");
    let (enable, data) = (m.input("enable", 1), m.input("data", width));
    let bits = millrace_netlist::address_width(depth);
    let (to, from) = (m.input("to", bits), m.input("from", bits));
    let words = m.memory("words", width, depth, Vec::new());
    m.promise_no_collision(words);
    m.write(words, enable, to, data);
    let mut read = if is_clocked { m.read_clocked(words, from, None) } else { m.read(words, from) };
    for cycle in 0..6 {
        read = m.delayed(&format!("read_{cycle}"), read, None);
    }
    m.output("read", read);
    let mut design = Design::new();
    design.add(m.finish());
    design
}

fn editor(data: u32, emitted: u32, moves: u64) -> Design {
    let mut design = Design::new();
    blocks::editor(&mut design, EditorShape { data, emitted, word: 6, moves });
    design
}

fn of(make: impl FnOnce(&mut Design)) -> Design {
    let mut design = Design::new();
    make(&mut design);
    design
}

/// A number that is as large as another, or by a fifth different, or by a few.
fn is_near(told: u64, found: u64) -> bool {
    const FEW: u64 = 12;
    told.abs_diff(found) <= FEW.max(found / 5)
}

/// What is compared unless `MILLRACE_AREA_ALL` asks for all, which takes minutes.
const QUICK: [&str; 1] = ["sum"];

#[test]
fn estimates_are_near_what_synthesis_makes() {
    if !tools::has("yosys") {
        return;
    }
    let designs: Vec<(&str, Design)> = vec![
        ("sum", operation("sum", 32, BinaryOp::Add)),
        ("less", operation("less", 24, BinaryOp::Lt)),
        ("same", operation("same", 104, BinaryOp::Eq)),
        ("moved", operation("moved", 64, BinaryOp::Shr)),
        ("choice_32", choice(32, 24)),
        ("choice_5", choice(5, 64)),
        ("memory_small", memory(40, 32, false)),
        ("memory_four", memory(33, 256, false)),
        ("memory_few", memory(58, 32, true)),
        ("memory_block", memory(58, 512, true)),
        ("editor_256", editor(256, 42, EditorShape::all_moves(256))),
        ("editor_four", editor(256, 38, 1 | 1 << 4 | 1 << 20)),
        ("editor_none", editor(256, 18, 1)),
        ("editor_64", editor(64, 54, EditorShape::all_moves(64))),
        (
            "scheduler",
            of(|design| {
                blocks::scheduler(design, 4, 16, 6);
            }),
        ),
        (
            "turns",
            of(|design| {
                blocks::round_robin_arbiter(design, 8);
            }),
        ),
        (
            "axi",
            of(|design| {
                blocks::axi4_lite(design, 6);
            }),
        ),
        (
            "queue",
            of(|design| {
                blocks::fifo(design, StreamShape::frames(64, 1), 512);
            }),
        ),
        (
            "receive",
            of(|design| {
                blocks::xgmii_receive(design, 1518);
            }),
        ),
    ];
    let all = std::env::var_os("MILLRACE_AREA_ALL").is_some();
    let mut wrong = Vec::new();
    for (name, mut design) in designs.into_iter().filter(|(name, _)| all || QUICK.contains(name)) {
        passes::optimize(&mut design);
        let targets =
            [(Fabric::Lut6, "synth_xilinx -flatten -noiopad -noclkbuf"), (Fabric::Lut4, "synth_ecp5")];
        for (fabric, command) in targets {
            let mut told = Area::default();
            estimate(&design, fabric).unwrap().into_values().for_each(|area| told += area);
            let script = format!("{command} -top TOP; tee -o /dev/stdout stat");
            let folder = format!("area-{name}-{fabric:?}");
            let said = tools::yosys(&design, &folder, &script).unwrap_or_else(|said| panic!("{said}"));
            let found = counted(&said);
            println!("{name} {fabric:?}: {told:?}, found {found:?}");
            let pairs = [
                (told.luts + told.memory_luts, found.luts + found.memory_luts),
                (told.ffs, found.ffs),
                (told.blocks, found.blocks),
            ];
            if !pairs.into_iter().all(|(told, found)| is_near(told, found)) {
                wrong.push(format!("{name} {fabric:?}: {told:?}, found {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
