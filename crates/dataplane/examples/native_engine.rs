//! An engine of one's own: Rust code in place of a program's, in a switch that does all else.
//!
//! The program sends each packet back to the port that it came in on, and drops what is shorter than 14 bytes. [`Hairpin`] is
//! the same in Rust. The switch asks it for each stage; ports, queues, copies, counters and drops are the switch's. The test
//! of this example compares it with the interpreter, as every engine has to be.
//!
//!     cargo run -p millrace-dataplane --example native_engine

use millrace_dataplane::{Switch, SwitchConfig};
use millrace_engine::{Context, Ended, Engine, EngineError, Observer, Stage, World};
use millrace_pipeline::*;
use std::error::Error;
use std::sync::Arc;

/// The program, as text of the IR.
pub const PROGRAM: &str = "program hairpin architecture test errors (NoError)
    ingress (ingress) egress ()
    intrinsic ingress_port = from intrinsic egress_spec = to
    intrinsic packet_length = length intrinsic drop = drop
    metadata from: bit<9> metadata to: bit<9> metadata length: bit<32> metadata drop: bool
    body control ingress { block0: to = from  drop = lt(length, 32w14) end }";

/// [`PROGRAM`] in Rust.
#[derive(Debug)]
pub struct Hairpin {
    program: Arc<Program>,
}

impl Engine for Hairpin {
    fn name(&self) -> &'static str {
        "hairpin"
    }

    fn context(&mut self, bytes: &[u8]) -> Context {
        Context::interpreted(&self.program, bytes.to_vec())
    }

    fn run(
        &mut self,
        stage: Stage,
        packets: &mut [Context],
        _world: &mut World<'_, dyn Observer + '_>,
        ended: &mut Vec<Ended>,
    ) -> Result<(), EngineError> {
        for packet in packets {
            if stage == Stage::Ingress {
                let from = packet.get(&self.program, Intrinsic::IngressPort);
                packet.set(&self.program, Intrinsic::EgressSpec, from);
                packet.set(&self.program, Intrinsic::Drop, u64::from(packet.len() < 14));
            }
            // What the program asks for is in the packet's storage; the switch does it.
            ended.push(Ended::STOPPED);
        }
        Ok(())
    }
}

/// A switch with the engine.
///
/// # Errors
/// The text is no program, or there can be no switch.
pub fn hairpin() -> Result<Switch, Box<dyn Error>> {
    let program = Arc::new(text::parse(PROGRAM)?);
    let engine = Box::new(Hairpin { program: Arc::clone(&program) });
    Ok(Switch::with_engine(program, SwitchConfig::default(), engine)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut switch = hairpin()?;
    for length in [60, 10] {
        let outcome = switch.inject(3, &vec![0; length], 0);
        let ports: Vec<_> = outcome.sent.iter().map(|sent| sent.port).collect();
        println!("{length} bytes from port 3: sent to {ports:?}, dropped {:?}", outcome.drops);
    }
    Ok(())
}
