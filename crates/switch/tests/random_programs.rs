//! Random programs of the IR, random packets: nothing panics, every packet is accounted for, and the passes change
//! nothing that anybody can see.

use millrace_pipeline::arbitrary::{self, Rng};
use millrace_pipeline::{BodyKind, Expr, Home, Inst, Intrinsic, Program, Slot, Type, passes, verify};
use millrace_switch::{DropReason, Outcome, Replica, Session, Switch, SwitchConfig};
use std::sync::Arc;

const PROGRAMS: u64 = 150;
const PACKETS: usize = 12;

/// A random program that also asks the switch for clones, resubmission and so on.
fn program(seed: u64) -> Program {
    let mut program = arbitrary::program(seed, 1 + seed as usize % 7);
    let mut rng = Rng::new(!seed);
    for role in [
        Intrinsic::Clone,
        Intrinsic::CloneSession,
        Intrinsic::CloneList,
        Intrinsic::Resubmit,
        Intrinsic::ResubmitList,
        Intrinsic::Recirculate,
        Intrinsic::Truncate,
        Intrinsic::Priority,
        Intrinsic::PacketPath,
    ] {
        let name = format!("asked.{}", role.name());
        let slot = program.slots.push(Slot { name, ty: role.ty(), home: Home::Metadata });
        program.intrinsics.set(role, Some(slot));
        let bodies: Vec<_> = program.ingress.iter().chain(&program.egress).copied().collect();
        let controls: Vec<_> =
            bodies.into_iter().filter(|body| program.bodies[*body].kind == BodyKind::Control).collect();
        let Some(body) = rng.pick(&controls) else { continue };
        let value = match role.ty() {
            Type::Bool => Expr::Bool(rng.one_in(2)),
            ty => Expr::bits(ty.bits().unwrap_or(1), rng.below(6) as u128),
        };
        if rng.one_in(2) {
            let body = &mut program.bodies[*body];
            let at = rng.below(body.blocks.len());
            let block = body.blocks.keys().nth(at).unwrap_or(body.entry);
            body.blocks[block].insts.push(Inst::Assign { dst: slot, value });
        }
    }
    assert_eq!(verify(&program), Ok(()));
    program
}

/// `None` for the few programs that have one entry twice in a table.
fn switch(program: Program) -> Option<Switch> {
    let config = SwitchConfig { max_passes: 6, ..SwitchConfig::default() };
    let mut switch = Switch::new(Arc::new(program), config).ok()?;
    let replication = switch.replication_mut();
    for id in 1..4 {
        replication.create_group(id).unwrap();
        let copies = (0..id).map(|rid| Replica { port: rid * 7, rid: rid as u16 }).collect();
        replication.set_copies(id, copies).unwrap();
        let truncate = (id == 2).then_some(9);
        replication
            .set_session(id, Session { truncate, group: (id > 1).then_some(id), ..Session::to_port(id) })
            .unwrap();
    }
    Some(switch)
}

fn packets(seed: u64) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(seed ^ 0x5555);
    (0..PACKETS)
        .map(|_| {
            let length = rng.below(90);
            (0..length)
                .map(|_| if rng.one_in(2) { rng.below(4) as u8 } else { rng.next_u64() as u8 })
                .collect()
        })
        .collect()
}

#[test]
fn every_packet_is_accounted_for() {
    let mut ran = 0;
    for seed in 0..PROGRAMS {
        let Some(mut switch) = switch(program(seed)) else { continue };
        ran += 1;
        for (number, packet) in packets(seed).iter().enumerate() {
            let (outcome, trace) = switch.inject_traced(number as u32 % 3, packet, number as u64 * 1000);
            assert!(
                !outcome.sent.is_empty() || !outcome.drops.is_empty(),
                "seed {seed}, packet {number}\n{trace}"
            );
        }
    }
    assert!(ran > PROGRAMS / 2, "{ran} programs");
}

#[test]
fn passes_change_nothing_that_shows() {
    for seed in 0..PROGRAMS {
        let plain = program(seed);
        let mut optimized = plain.clone();
        passes::optimize(&mut optimized);
        let (Some(mut first), Some(mut second)) = (switch(plain), switch(optimized)) else { continue };
        for (number, packet) in packets(seed).iter().enumerate() {
            let time_ns = number as u64 * 1000;
            let (wanted, story) = first.inject_traced(number as u32 % 3, packet, time_ns);
            let (found, other) = second.inject_traced(number as u32 % 3, packet, time_ns);
            // The number of steps is what a pass may change.
            if out_of_steps(&wanted, &first) || out_of_steps(&found, &second) {
                break;
            }
            assert_eq!(wanted, found, "seed {seed}, packet {number}\n{story}\noptimised:\n{other}");
            for (register, object) in &first.program().registers {
                for index in 0..object.size.min(16) {
                    let cell = |switch: &Switch| switch.state().register_value(register, index);
                    assert_eq!(cell(&first), cell(&second), "seed {seed}, packet {number}, {}", object.name);
                }
            }
        }
    }
}

fn out_of_steps(outcome: &Outcome, switch: &Switch) -> bool {
    outcome.drops.iter().any(|drop| {
        drop.reason == DropReason::StepLimit
            || drop.reason.label(switch.program()) == "parser_error:ParserTimeout"
    })
}
