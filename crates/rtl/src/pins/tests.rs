//! What is set at once is what goes through ports.

use super::*;
use crate::hardware::{Hardware, Options};
use crate::model::Sim;
use millrace_pipeline::arbitrary::program;
use millrace_pipeline::*;
use millrace_state::State;
use std::sync::Arc;

/// A program that looks a table of ranges up twice, with a few entries.
fn ranges(fields: u64) -> Arc<Program> {
    let mut b = ProgramBuilder::new("ranges", "v1model");
    for error in ["PacketTooShort", "ParserInvalidArgument", "ParserTimeout"] {
        b.error(error);
    }
    b.intrinsic(Intrinsic::ParserError);
    let param = b.local("act.x", Type::Bits(16));
    let to = b.metadata("meta.to", Type::Bits(16));
    let mut body = BodyBuilder::new("act", BodyKind::Action);
    body.assign(to, Expr::Read(param));
    body.end();
    let body = body.finish(&mut b).unwrap();
    let action = TableAction { action: b.action("act", vec![param], body), scope: ActionScope::Both };
    let keys = (0..fields).map(|at| {
        let value = Expr::Read(b.metadata(&format!("meta.k{at}"), Type::Bits(64)));
        TableKey { name: format!("k{at}"), value, kind: MatchKind::Range }
    });
    let keys: Vec<TableKey> = keys.collect();
    let call = |number: u64| ActionCall { action: 0, args: vec![Bits::new(16, number.into())] };
    let entry = |number: u64| {
        let range = |at: u64| {
            EntryMatch::Range(
                Bits::new(64, (number << (at + 7)).into()),
                Bits::new(64, u128::MAX >> (64 + at)),
            )
        };
        let (matches, priority) = ((0..fields).map(range).collect(), 1 + number as u32);
        TableEntry { matches, priority, call: call(number), is_const: false }
    };
    let table = b.program_mut().tables.push(Table {
        entries: (0..3).map(entry).collect(),
        ..Table::new("t".into(), keys, vec![action], call(9), 512)
    });
    let mut control = BodyBuilder::new("ingress", BodyKind::Control);
    for _ in 0..2 {
        let next = control.create_block();
        control.apply(table, None, None, next, next);
        control.switch_to(next);
    }
    control.end();
    let control = control.finish(&mut b).unwrap();
    b.program_mut().ingress = vec![control];
    let program = b.finish();
    assert_eq!(verify(&program), Ok(()));
    Arc::new(program)
}

/// The words of the memories of tables in the first stage of a program that starts, and the cycles of writing them.
fn started(hardware: &Hardware, program: &Arc<Program>, by_port: usize) -> (Vec<Vec<Bits>>, u64) {
    let stage = &hardware.stages[0];
    let mut model =
        Model::new(&hardware.design(stage, crate::assemble::View::Observed), Sim::InProcess).unwrap();
    let pins = Pins::find(&model, &hardware.software_ports(stage.part), &hardware.memories(stage));
    let state = State::new(Arc::clone(program)).unwrap();
    let mut driver = hardware.driver(stage.part);
    driver.update(&state, &mut Attached::new(&pins, &mut model, by_port)).unwrap();
    // The last write is done at the edge after it.
    model.step();
    let Model::InProcess { simulator, .. } = &model else { unreachable!() };
    let words = |(memory, count)| (0..count).map(|at| simulator.read_memory(memory, at)).collect();
    (pins.memories.all().map(words).collect(), simulator.cycle())
}

#[test]
fn tables_begin_with_the_same_words_set_at_once_and_through_ports() {
    let (mut compared, mut written) = (0, 0);
    for seed in 0..150 {
        let program = Arc::new(program(seed, 1 + seed as usize % 6));
        let Ok(hardware) = Hardware::new(Arc::clone(&program), Options::default()) else { continue };
        if State::new(Arc::clone(&program)).is_err() {
            continue;
        }
        let (through_ports, _) = started(&hardware, &program, usize::MAX);
        let (at_once, _) = started(&hardware, &program, 0);
        assert_eq!(through_ports, at_once, "seed {seed}");
        compared += through_ports.len();
        written += at_once.iter().flatten().filter(|word| !word.is_zero()).count();
    }
    assert!(compared > 100 && written > 100, "{compared} memories, {written} words");
}

/// Two keys of 64 bits have 60 memories of 256 words for 64 entries, and the table two units.
#[test]
fn ranges_start_in_a_bounded_number_of_cycles() {
    let program = ranges(2);
    let hardware = Hardware::new(Arc::clone(&program), Options::default()).unwrap();
    let (through_ports, cycles) = started(&hardware, &program, usize::MAX);
    assert!(cycles > 25_000, "{cycles}");
    let (words, cycles) = started(&hardware, &program, WORDS_BY_PORT);
    assert!(words == through_ports);
    assert!(words.iter().flatten().filter(|word| !word.is_zero()).count() > 50_000);
    // Until all frames meet a bank, too.
    assert!(cycles < 2 * WORDS_BY_PORT as u64 + 100, "{cycles}");
}
