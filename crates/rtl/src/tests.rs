//! Random programs: the pipeline, cycle by cycle, says what the graph that it was made of says at once.

use crate::hardware::{Hardware, Options, Part};
use crate::model::Sim;
use crate::running::given;
use crate::simulate::Simulation;
use crate::stage::Output;
use crate::units::Objects;
use crate::{Construct, Frame, line_rate};
use millrace_netlist::Simulator;
use millrace_pipeline::arbitrary::{Rng, program};
use millrace_pipeline::semantics::Value;
use millrace_pipeline::{
    BinaryOp, Bits, BodyBuilder, BodyKind, CrcParameters, DataItem, Expr, HashAlgorithm, Inst, OwnHash,
    Register,
};
use millrace_pipeline::{HeaderId, Intrinsic, ProgramBuilder, SlotId, Type, verify};
use millrace_state::{CounterRef, CounterValue, Effects, MeterRates, Rate, State};
use std::sync::Arc;

/// A frame as it arrives.
struct Arrived<'a>(&'a millrace_pipeline::Program, Vec<u8>);

impl Frame for Arrived<'_> {
    fn bytes(&self) -> &[u8] {
        &self.1
    }

    fn slot(&self, slot: SlotId) -> Value {
        Value::zero(self.0.slots[slot].ty)
    }

    fn is_valid(&self, _: HeaderId) -> bool {
        false
    }

    fn cursor(&self) -> usize {
        0
    }
}

#[test]
fn pipelines_are_their_graphs() {
    let mut compared = 0;
    for seed in 0..60 {
        let program = Arc::new(program(seed, 1 + seed as usize % 6));
        let Ok(hardware) = Hardware::new(
            Arc::clone(&program),
            Options { period_ps: 2000 + 100 * seed as u32, ..Options::default() },
        ) else {
            continue;
        };
        let Some(stage) = hardware.stages.iter().find(|stage| stage.part == Part::Ingress) else { continue };
        let mut simulation = Simulation::new(&hardware, stage, crate::Sim::InProcess).unwrap();
        let (Ok(mut one), Ok(mut other)) =
            (State::new(Arc::clone(&program)), State::new(Arc::clone(&program)))
        else {
            continue;
        };
        let mut rng = Rng::new(seed);
        for packet in 0..12 {
            let bytes = (0..rng.below(90)).map(|_| rng.next_u64() as u8).collect();
            let frame = Arrived(&program, bytes);
            let input = |input, width| given(&frame, input, width);
            let (mut told, mut said) = (Effects::default(), Effects::default());
            let mut objects = Objects { state: &mut one, now_ns: packet, effects: &mut told };
            let wanted = stage.dataflow.evaluate(&frame.1, &input, &mut objects);
            let mut objects = Objects { state: &mut other, now_ns: packet, effects: &mut said };
            let found = simulation.run(&frame.1, &input, &mut objects).unwrap();
            assert_eq!(wanted, found, "seed {seed}, packet {packet}");
            assert_eq!(told, said, "seed {seed}, packet {packet}");
            assert_eq!(left(&one), left(&other), "seed {seed}, packet {packet}");
            if packet % 3 == 2 {
                let number = rng.next_u64();
                control(&mut one, number);
                control(&mut other, number);
                assert_eq!(left(&one), left(&other));
            }
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared} frames");
}

/// What packets leave in the objects of a program.
fn left(state: &State) -> String {
    let program = state.program();
    let mut left = Vec::new();
    for (id, register) in &program.registers {
        left.extend(
            (0..register.size).map(|at| format!("{}[{at}] {}", register.name, state.register_read(id, at))),
        );
    }
    for (id, meter) in &program.meters {
        let cell = |at| (state.meter_cell(id, at), state.meter_counts(id, at));
        left.extend((0..meter.size).map(|at| format!("{}[{at}] {:?}", meter.name, cell(at))));
    }
    let tables = state.tables();
    for (id, counter) in &program.counters {
        let cell = |at| tables.counter_value(CounterRef::Indexed(id), at);
        left.extend((0..counter.size).map(|at| format!("{}[{at}] {:?}", counter.name, cell(at))));
    }
    for (id, table) in &program.tables {
        for entry in tables.entries(id) {
            let at = entry.index.0.into();
            let counter = tables.counter_value(CounterRef::Direct(id), at);
            let meter = (tables.direct_meter(id, at), tables.direct_meter_counts(id, at));
            left.push(format!("{} {at} {counter:?} {meter:?}", table.name));
        }
    }
    left.join("\n")
}

/// What control does between packets.
fn control(state: &mut State, number: u64) {
    let program = Arc::clone(state.program());
    let index = number % 4;
    for (id, register) in &program.registers {
        match number % 5 {
            0 => state.reset_register(id),
            _ => {
                let value = Bits::new(64, number.into()).zero_extend(register.width);
                // There may be fewer cells.
                let _ = state.set_register(id, index, &value);
            }
        }
    }
    let value = CounterValue { packets: number >> 3, bytes: number };
    for id in program.counters.keys() {
        let _ = state.tables().set_counter(CounterRef::Indexed(id), index, value);
    }
    for (id, table) in &program.tables {
        if table.direct_counter.is_some() {
            let _ = state.tables().set_counter(CounterRef::Direct(id), index, value);
        }
    }
    for id in program.value_sets.keys().filter(|_| number.is_multiple_of(7)) {
        state.clear_values(id);
    }
    if number.is_multiple_of(3) {
        configure(state);
    }
}

/// Configures all meters, such that all colors are there for a while.
fn configure(state: &mut State) {
    let program = Arc::clone(state.program());
    let rates = |cbs| MeterRates {
        cir: Rate::per_second_millionths(1 << 50),
        cbs,
        pir: Rate::per_second_millionths(1 << 51),
        pbs: 2 * cbs,
    };
    for (id, meter) in &program.meters {
        let cbs = if meter.unit == millrace_pipeline::Unit::Packets { 2 } else { 90 };
        // An account has other parameters.
        let _ = state.set_all_meters(id, Some(rates(cbs).into()));
    }
    for (id, table) in &program.tables {
        if table.direct_meter.is_some() {
            let _ = state.tables().set_direct_meters(id, Some(rates(3).into()));
        }
    }
}

/// Frames as close together as a stage takes them meet objects as if each came alone.
#[test]
fn frames_close_together_see_each_other() {
    let (mut compared, mut kinds) = (0, std::collections::BTreeMap::<&str, (u32, u32, u64)>::new());
    for seed in 0..400 {
        let program = Arc::new(program(seed, 1 + seed as usize % 6));
        let options = Options { period_ps: 2500 + 100 * (seed as u32 % 60), ..Options::default() };
        let Ok(hardware) = Hardware::new(Arc::clone(&program), options) else { continue };
        let Some(stage) = hardware.stages.iter().find(|stage| stage.part == Part::Ingress) else { continue };
        let (Ok(mut one), Ok(mut other)) =
            (State::new(Arc::clone(&program)), State::new(Arc::clone(&program)))
        else {
            continue;
        };
        configure(&mut one);
        configure(&mut other);
        let mut simulation = Simulation::new(&hardware, stage, Sim::InProcess).unwrap();
        let mut rng = Rng::new(seed);
        let frame = |_| {
            let mut bytes: Vec<u8> = (0..rng.below(60)).map(|_| rng.next_u64() as u8).collect();
            // Frames that are alike ask for the same cells.
            bytes.iter_mut().take(30).for_each(|byte| *byte &= 0x11);
            bytes
        };
        let frames: Vec<Vec<u8>> = (0..10).map(frame).collect();
        let arrived: Vec<Arrived<'_>> = frames.iter().map(|bytes| Arrived(&program, bytes.clone())).collect();
        let (mut told, mut said) = (Effects::default(), Effects::default());
        let input = |at: usize, input, width| given(&arrived[at], input, width);
        let mut objects = Objects { state: &mut other, now_ns: 0, effects: &mut said };
        let Some(found) = simulation.run_together(&frames, &input, &mut objects) else { continue };
        for (at, (frame, found)) in frames.iter().zip(found).enumerate() {
            let input = |input, width| given(&arrived[at], input, width);
            let mut objects = Objects { state: &mut one, now_ns: at as u64, effects: &mut told };
            let wanted = stage.dataflow.evaluate(frame, &input, &mut objects);
            assert_eq!(wanted, found, "seed {seed}, frame {at}");
        }
        // Software took no message while the frames passed, so the queue may be full.
        let lost = said.take_lost() as usize;
        match lost {
            0 => assert_eq!(told, said, "seed {seed}"),
            _ => {
                let all = |effects: &Effects| effects.message_count() + effects.log.len();
                assert_eq!(all(&told), all(&said) + lost, "seed {seed}");
            }
        }
        assert_eq!(left(&one), left(&other), "seed {seed}");
        assert_eq!(simulation.collisions(), 0, "seed {seed}");
        for unit in &stage.objects {
            let of_kind = kinds.entry(unit.kind_name()).or_default();
            of_kind.0 += 1;
            of_kind.1 += u32::from(unit.slots.len() > 1);
        }
        for (kind, requests) in simulation.asked() {
            kinds.entry(kind).or_default().2 += requests;
        }
        compared += 1;
    }
    println!("{compared} programs; units, those with several ports, and requests to them: {kinds:?}");
    assert!(compared > 80, "{compared} programs");
    for kind in ["register", "counter", "meter", "value set", "messages"] {
        let (all, several, requests) = kinds.get(kind).copied().unwrap_or_default();
        assert!(all > 3 && requests > 10 && (several > 0 || kind == "meter"), "{kind}: {kinds:?}");
    }
}

/// A register that is written so many operations after it is read, by ingress or by both.
fn counting(steps: u32, both: bool) -> Arc<millrace_pipeline::Program> {
    let mut b = ProgramBuilder::new("counting", "v1model");
    for error in ["PacketTooShort", "ParserInvalidArgument", "ParserTimeout"] {
        b.error(error);
    }
    b.intrinsic(Intrinsic::ParserError);
    let register = Register { name: "seen".into(), width: 32, size: 16, initial: None };
    let register = b.program_mut().registers.push(register);
    let value = b.metadata("meta.value", Type::Bits(32));
    let mut body = |name: &str| {
        let mut control = BodyBuilder::new(name, BodyKind::Control);
        let index = Expr::bits(32, 3);
        control.push(Inst::RegisterRead { dst: value, register, index: index.clone() });
        for _ in 0..steps {
            let squared = Expr::binary(BinaryOp::Mul, Expr::Read(value), Expr::Read(value));
            control.assign(value, Expr::binary(BinaryOp::Add, squared, Expr::bits(32, 1)));
        }
        control.push(Inst::RegisterWrite { register, index, value: Expr::Read(value) });
        control.end();
        control.finish(&mut b).unwrap()
    };
    let (ingress, egress) = (body("ingress"), both.then(|| body("egress")));
    b.program_mut().ingress = vec![ingress];
    b.program_mut().egress = egress.into_iter().collect();
    let program = b.finish();
    assert_eq!(verify(&program), Ok(()));
    Arc::new(program)
}

/// The interval is what lies between answer and write, the stage keeps it, and what is too slow is named.
#[test]
fn intervals_are_kept_and_told() {
    let hardware = |steps, both| Hardware::new(counting(steps, both), Options::default()).unwrap();
    let fast = hardware(0, false);
    assert_eq!(fast.report().stages[0].interval, 1);
    assert_eq!(fast.check_rate(156_250_000), Ok(()));
    let slow = hardware(12, false);
    let report = slow.report();
    let interval = report.stages[0].interval;
    assert!(interval > 11, "{report}");
    assert_eq!((report.objects[0].object.as_str(), report.objects[0].interval), ("seen", interval));
    assert!(
        report.to_string().contains("seen: register of ingress, 16 words of 32 bits, 1024 bits"),
        "{report}"
    );
    let refused = slow.check_rate(line_rate(6400)).unwrap_err();
    assert_eq!(refused.part, "ingress");
    assert!(refused.to_string().contains("--allow-slow"), "{refused}");
    assert_eq!(slow.check_rate(156_250_000 / u64::from(interval)), Ok(()));

    let stage = &slow.stages[0];
    let mut simulator = Simulator::new(&slow.design(stage, crate::assemble::View::Alone)).unwrap();
    let [valid, ready] = [simulator.input("valid").unwrap(), simulator.output("ready").unwrap()];
    simulator.set_u64(valid, 1);
    let mut taken = Vec::new();
    for cycle in 0..200 {
        if simulator.get_u64(ready) == 1 {
            taken.push(cycle);
        }
        simulator.step();
    }
    assert!(taken.windows(2).all(|pair| pair[1] - pair[0] == interval), "{taken:?}");

    assert_eq!(slow.check_shared(), Ok(()));
}

/// A register of two stages has one unit, of which a frame of each stage has its turn; one that no unit has room for is named.
#[test]
fn an_object_of_two_stages_has_a_unit() {
    let both = Hardware::new(counting(0, true), Options::default()).unwrap();
    assert_eq!(both.check_shared(), Ok(()));
    let report = both.report();
    let [object] = report.objects.as_slice() else { panic!("{report}") };
    // A read is answered in the second cycle, and written back in that: two cycles each.
    assert_eq!((object.stage.as_str(), object.ports, object.interval), ("ingress and egress", 4, 2));
    assert!(report.outside.is_empty(), "{report}");
    assert_eq!(both.check_rate(156_250_000 / 2), Ok(()));
    let refused = both.check_rate(156_250_000 / 2 + 1).unwrap_err();
    assert_eq!(refused.part, "ingress and egress");
    assert!(matches!(refused.construct, Construct::Slow { interval: 2, .. }), "{refused}");

    let mut large = (*counting(0, true)).clone();
    large.registers.values_mut().for_each(|register| register.size = 1 << 24);
    let large = Hardware::new(Arc::new(large), Options::default()).unwrap();
    let refused = large.check_shared().unwrap_err();
    assert!(matches!(refused.construct, Construct::Shared { .. }), "{refused}");
    assert_eq!(refused.part, "ingress and egress");
    let report = large.report();
    let [object] = report.outside.as_slice() else { panic!("{report}") };
    // 2^24 words of 32 bits, three times: each of two stages reads a memory of its own, and software another one.
    let why = "its unit would have 1610612736 bits of memory, more than 268435456 (limit MAX_OBJECT_BITS)";
    assert_eq!(object.why, why);
}

/// A CRC of the parameters that control sets, before and after it sets others.
#[test]
fn hashes_compute_what_control_sets() {
    let mut compared = 0;
    for algorithm in [HashAlgorithm::Crc16Custom, HashAlgorithm::Crc32Custom] {
        let mut b = ProgramBuilder::new("hashes", "v1model");
        for error in ["PacketTooShort", "ParserInvalidArgument", "ParserTimeout"] {
            b.error(error);
        }
        b.intrinsic(Intrinsic::ParserError);
        let hash = b.program_mut().hashes.push(OwnHash { name: "own".into(), algorithm });
        let dst = b.metadata("meta.hash", Type::Bits(algorithm.width()));
        let mut parser = BodyBuilder::new("parser", BodyKind::Parser);
        let data = vec![DataItem::Value(Expr::PacketLength), DataItem::Value(Expr::bits(24, 0xabcdef))];
        parser.push(Inst::Hash { dst, algorithm, own: Some(hash), data });
        parser.end();
        let parser = parser.finish(&mut b).unwrap();
        b.program_mut().ingress = vec![parser];
        let program = Arc::new(b.finish());
        assert_eq!(verify(&program), Ok(()));
        let hardware = Hardware::new(Arc::clone(&program), Options::default()).unwrap();
        let stage = &hardware.stages[0];
        let mut simulation = Simulation::new(&hardware, stage, Sim::InProcess).unwrap();
        let mut state = State::new(Arc::clone(&program)).unwrap();
        let mut rng = Rng::new(9);
        for round in 0..40 {
            let frame = Arrived(&program, vec![7; rng.below(90)]);
            let mut effects = Effects::default();
            let mut objects = Objects { state: &mut state, now_ns: 0, effects: &mut effects };
            let said = simulation.run(&frame.1, &|input, width| given(&frame, input, width), &mut objects);
            let found = said.unwrap().into_iter().find(|(output, _)| *output == Output::Slot(dst)).unwrap().1;
            let mut data = (frame.1.len() as u32).to_be_bytes().to_vec();
            data.extend([0xab, 0xcd, 0xef]);
            let wanted = state.own_hash(hash).compute(&data);
            assert_eq!(found.to_u64_saturating(), wanted, "{algorithm:?}, round {round}");
            compared += 1;
            let number = rng.next_u64();
            let parameters = CrcParameters {
                polynomial: number as u32 | 1,
                initial: (number >> 16) as u32,
                final_xor: (number >> 32) as u32,
                data_reflected: rng.one_in(2),
                remainder_reflected: rng.one_in(2),
                ..state.own_hash(hash).parameters()
            };
            assert!(state.set_own_hash(hash, parameters));
        }
    }
    assert_eq!(compared, 80);
}

/// What hardware cannot do is named, with the limit and the part of the program.
#[test]
fn refusals_name_construct_and_part() {
    let refusal = |make: &dyn Fn(&mut BodyBuilder, SlotId)| {
        let mut b = ProgramBuilder::new("wide", "v1model");
        for error in ["PacketTooShort", "ParserInvalidArgument", "ParserTimeout"] {
            b.error(error);
        }
        b.intrinsic(Intrinsic::ParserError);
        let wide = b.metadata("meta.wide", Type::Bits(136));
        let mut parser = BodyBuilder::new("parser", BodyKind::Parser);
        make(&mut parser, wide);
        let parser = parser.finish(&mut b).unwrap();
        b.program_mut().ingress = vec![parser];
        let program = b.finish();
        assert_eq!(verify(&program), Ok(()));
        Hardware::new(Arc::new(program), Options::default()).err()
    };
    let divided = refusal(&|parser, wide| {
        let by = Expr::binary(millrace_pipeline::BinaryOp::Add, Expr::Cursor, Expr::PacketLength);
        let by = Expr::ZeroExtend(Box::new(by), 136);
        parser.assign(wide, Expr::binary(millrace_pipeline::BinaryOp::Div, Expr::Read(wide), by));
        parser.end();
    });
    let divided = divided.unwrap();
    assert_eq!(
        (divided.construct.clone(), divided.part.as_str()),
        (Construct::Quotient(136), "parser.block0")
    );
    assert_eq!(
        divided.to_string(),
        "hardware cannot have a division of 136 bits, more than 128 (limit MAX_QUOTIENT), in parser.block0"
    );
    let endless = refusal(&|parser, _| {
        let state = parser.create_state("again");
        parser.goto(state);
        parser.switch_to(state);
        parser.push(millrace_pipeline::Inst::Advance { bits: Expr::bits(32, 64) });
        parser.goto(state);
    });
    let endless = endless.unwrap();
    assert!(matches!(endless.construct, Construct::Window | Construct::Loop), "{endless}");
    assert_eq!(endless.part, "parser.again");
    assert!(endless.to_string().contains("limit MAX_"), "{endless}");
}
