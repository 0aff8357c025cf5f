//! Random programs: the pipeline, cycle by cycle, says what the graph that it was made of says at once.

use crate::hardware::{Hardware, Options, Part};
use crate::running::given;
use crate::simulate::Simulation;
use crate::units::Objects;
use crate::{Construct, Frame};
use millrace_pipeline::arbitrary::{Rng, program};
use millrace_pipeline::semantics::Value;
use millrace_pipeline::{BodyBuilder, BodyKind, Expr};
use millrace_pipeline::{HeaderId, Intrinsic, ProgramBuilder, SlotId, Type, verify};
use millrace_state::{Effects, State};
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
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared} frames");
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
