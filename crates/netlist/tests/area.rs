//! Estimates of area next to what Yosys makes of the library's blocks and of operations.

#[allow(dead_code)]
mod common;

use common::synthesis::synthesised;
use common::tools;
use millrace_netlist::area::{Area, Fabric, MAX_GATES, Owner, TooLarge, estimate};
use millrace_netlist::blocks::{self, EditorShape};
use millrace_netlist::{BinaryOp, Design, ModuleBuilder, Place, StreamShape, passes, text, verify, verilog};
use std::collections::BTreeMap;

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

/// A number that is one of two, and a word that is there or 0, some cycles later: bits of the number are the same or never change.
fn carried() -> Design {
    let mut m = ModuleBuilder::new("carried");
    let (valid, word) = (m.input("valid", 1), m.input("word", 40));
    let (number, none) = (m.number(32, 0x70), m.number(32, 0));
    let mut number = m.mux(valid, number, none);
    let none = m.number(40, 0);
    let mut word = m.mux(valid, word, none);
    for cycle in 0..6 {
        number = m.delayed(&format!("number_{cycle}"), number, None);
        word = m.delayed(&format!("word_{cycle}"), word, None);
    }
    m.output("number", number);
    m.output("word", word);
    let mut design = Design::new();
    design.add(m.finish());
    design
}

/// Whether all of many bits are 1, and one of two or both of others: a tree of gates of two inputs, as entries of a TCAM are compared.
fn tree() -> Design {
    let mut m = ModuleBuilder::new("tree");
    let words: Vec<_> = (0..21).map(|at| m.input(&format!("word{at}"), 32)).collect();
    let words: Vec<_> =
        words.into_iter().enumerate().map(|(at, word)| m.delayed(&format!("held{at}"), word, None)).collect();
    let mut all = words[..9].to_vec();
    for at in (9..21).step_by(3) {
        let both = m.and(words[at + 1], words[at + 2]);
        all.push(m.or(words[at], both));
    }
    let none = m.number(32, 0);
    let all = m.tree(BinaryOp::And, &all, none);
    let all = m.delayed("all", all, None);
    m.output("all", all);
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

/// What an estimate may differ by in any case.
const FEW: u64 = 12;

/// What is compared unless `MILLRACE_AREA_ALL` asks for all, which takes minutes.
const QUICK: [&str; 5] = ["sum", "carried", "less", "tree", "memory_deep"];

/// What is not compared on an ECP5: where all of a design is its longest path, abc makes it short with tables of up to seven inputs, which
/// are eight tables, and takes twice what it takes of the same next to a longer path (8 tables a bit in a firewall's TCAM, 13 here).
const ALL_CRITICAL: [&str; 1] = ["tree"];

#[test]
fn estimates_are_near_what_synthesis_makes() {
    if !tools::has("yosys") {
        return;
    }
    let designs: Vec<(&str, Design)> = vec![
        ("tree", tree()),
        ("sum", operation("sum", 32, BinaryOp::Add)),
        ("carried", carried()),
        ("less", operation("less", 24, BinaryOp::Lt)),
        ("less_signed", operation("less_signed", 40, BinaryOp::LtSigned)),
        ("same", operation("same", 104, BinaryOp::Eq)),
        ("moved", operation("moved", 64, BinaryOp::Shr)),
        ("choice_32", choice(32, 24)),
        ("choice_5", choice(5, 64)),
        ("memory_small", memory(40, 32, false)),
        ("memory_four", memory(33, 256, false)),
        ("memory_few", memory(58, 32, true)),
        ("memory_block", memory(58, 512, true)),
        ("memory_deep", memory(18, 8192, true)),
        ("memory_deeper", memory(36, 16_384, true)),
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
        for fabric in [Fabric::Lut6, Fabric::Lut4] {
            if fabric == Fabric::Lut4 && ALL_CRITICAL.contains(&name) {
                continue;
            }
            if fabric == Fabric::Lut4 {
                passes::borrows(&mut design);
            }
            let mut told = Area::default();
            estimate(&design, fabric).unwrap().into_values().for_each(|area| told += area);
            let found = synthesised(&design, &format!("area-{name}-{fabric:?}"), fabric);
            println!("{name} {fabric:?}: {told:?}, found {found:?}");
            if !found.is_near(&told, FEW) {
                wrong.push(format!("{name} {fabric:?}: {told:?}, found {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_design_of_too_many_gates_has_no_estimate() {
    const WIDTH: u32 = 8192;
    // A choice for each bit at each of 13 bits of an amount, and one more where the amount is larger.
    let of_one = 14 * WIDTH as usize;
    let mut m = ModuleBuilder::new("shifts");
    let mut value = m.input("value", WIDTH);
    for at in 0..=MAX_GATES / of_one {
        let amount = m.input(&format!("by{at}"), WIDTH);
        value = m.binary(BinaryOp::Shr, value, amount);
    }
    m.output("moved", value);
    let mut design = Design::new();
    design.add(m.finish());
    let refused = estimate(&design, Fabric::Lut4);
    assert_eq!(refused, Err(TooLarge::Gates));
}

#[test]
fn a_product_takes_the_multipliers_of_the_parts_that_it_has() {
    // Parts of 17 bits: four of 64 bits, two of 32. Of 64 bits of the product those pairs count whose sum is below four.
    for (narrow, multipliers) in [(64, 4 + 3 + 2 + 1), (32, 4 + 3), (17, 4)] {
        let mut m = ModuleBuilder::new("product");
        let (a, b) = (m.input("a", narrow), m.input("b", 64));
        let a = m.resize(a, 64);
        let product = m.binary(BinaryOp::Mul, a, b);
        m.output("product", product);
        let mut design = Design::new();
        design.add(m.finish());
        let areas = estimate(&design, Fabric::Lut4).unwrap();
        assert_eq!(areas.values().map(|area| area.multipliers).sum::<u64>(), multipliers, "{narrow} bits");
    }
}

#[test]
fn bits_of_a_memory_that_are_always_zero_take_nothing() {
    let mut m = ModuleBuilder::new("memory");
    let (enable, data, at) = (m.input("enable", 1), m.input("data", 4), m.input("at", 4));
    let words = m.memory("words", 8, 16, Vec::new());
    m.promise_no_collision(words);
    let wide = m.resize(data, 8);
    m.write(words, enable, at, wide);
    let read = m.read(words, at);
    m.output("read", read);
    let mut design = Design::new();
    design.add(m.finish());
    let areas = estimate(&design, Fabric::Lut4).unwrap();
    // A memory of 16 words of 4 bits is four lookup tables.
    assert_eq!(
        areas.values().map(|area| (area.memory_luts, area.memory_bits)).collect::<Vec<_>>(),
        [(4, 64)]
    );
}

/// The part of the program that what follows is of.
fn part(m: &mut ModuleBuilder, name: &str) {
    m.set_place(Some(Place::Part(name.into())));
}

/// A module whose values come from two parts of a program, inside another that has it twice.
fn two_parts() -> Design {
    let mut m = ModuleBuilder::new("inner");
    let (a, b) = (m.input("a", 8), m.input("b", 8));
    part(&mut m, "first");
    let both = m.and(a, b);
    let low = m.slice(both, 0, 4);
    part(&mut m, "second");
    // Four of the gates of `both`, in a value of its own.
    let (low_a, low_b) = (m.slice(a, 0, 4), m.slice(b, 0, 4));
    let again = m.and(low_a, low_b);
    let sum = m.add(a, b);
    m.set_place(Some(Place::Line { file: "program.p4".into(), line: 3 }));
    let held = m.delayed("held", sum, None);
    part(&mut m, "second");
    let kept = m.delayed("kept", low, Some(0));
    let words = m.memory("words", 8, 16, Vec::new());
    m.promise_no_collision(words);
    m.set_place(None);
    let enable = m.input("enable", 1);
    m.write(words, enable, low_a, sum);
    let read = m.read(words, low_b);
    for (name, value) in [("both", both), ("again", again), ("held", held), ("kept", kept), ("read", read)] {
        m.output(name, value);
    }
    let mut design = Design::new();
    let inner = design.add(m.finish());
    let mut m = ModuleBuilder::new("outer");
    let inputs = [("a", m.input("a", 8)), ("b", m.input("b", 8)), ("enable", m.input("enable", 1))];
    let different = m.not(inputs[0].1);
    for (at, a) in [inputs[0].1, different].into_iter().enumerate() {
        let instance = m.instance(&design, inner, &format!("i{at}"));
        m.connect(instance, "a", a);
        inputs[1..].iter().for_each(|(port, value)| m.connect(instance, port, *value));
        for port in ["both", "again", "held", "kept", "read"] {
            let value = m.output_of(instance, port);
            m.output(&format!("{port}{at}"), value);
        }
    }
    design.add(m.finish());
    design
}

#[test]
fn each_part_of_the_program_takes_what_it_adds() {
    let mut design = two_parts();
    assert_eq!(verify(&design), Ok(()));
    passes::optimize(&mut design);
    let areas = estimate(&design, Fabric::Lut4).unwrap();
    let area = |instance: &str, part: &str| {
        let owner = Owner { instance: instance.into(), part: part.into() };
        areas.get(&owner).copied().unwrap_or_default()
    };
    for instance in ["i0", "i1"] {
        // A gate for each of eight bits; the four that the second part makes again are these.
        assert_eq!(area(instance, "first"), Area { luts: 8, ..Area::default() }, "{instance}");
        // A chain of eight sums, a register of four bits, and 16 words of 8 bits, four to a lookup table.
        let second = Area { luts: 8, ffs: 4, memory_luts: 8, memory_bits: 128, ..Area::default() };
        assert_eq!(area(instance, "second"), second, "{instance}");
        // A line of the source is no part.
        assert_eq!(area(instance, ""), Area { ffs: 8, ..Area::default() }, "{instance}");
    }
    assert_eq!(area("", ""), Area::default());
    let total = |areas: BTreeMap<Owner, Area>| {
        areas.into_values().fold(Area::default(), |mut all, area| {
            all += area;
            all
        })
    };
    let mut whole = design.clone();
    for module in whole.modules.values_mut() {
        module.nodes.values_mut().for_each(|node| node.place = None.into());
        module.registers.values_mut().for_each(|register| register.place = None.into());
        module.memories.values_mut().for_each(|memory| memory.place = None.into());
        module.places.clear();
    }
    let of_whole = estimate(&whole, Fabric::Lut4).unwrap();
    assert_eq!(of_whole.keys().map(|owner| owner.instance.as_str()).collect::<Vec<_>>(), ["", "i0", "i1"]);
    assert_eq!(total(of_whole), total(areas));
}

#[test]
fn parts_of_the_program_are_not_printed() {
    let design = two_parts();
    let text = text::print(&design);
    assert!(!text.contains("second") && text.contains("@ program.p4:3"), "{text}");
    for file in verilog::print(&design) {
        assert!(!file.text.contains("second"), "{}", file.text);
    }
}
