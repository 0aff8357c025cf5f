//! A program takes over from another one, with code that was made before.

use millrace_dataplane::{EngineKind, Keep, Request, Switch, SwitchConfig, Worker};
use millrace_engine::Effort;
use millrace_pipeline::{Program, text};
use std::fmt::Write;
use std::sync::Arc;
use std::thread;

/// A program of so many steps after a table, which is too large for the best code to be made soon.
fn program(steps: usize) -> Arc<Program> {
    let mut body = String::new();
    for step in 0..steps {
        let (set, next) = (2 * step + 2, 2 * step + 3);
        writeln!(body, "block{}: branch eq(h.a, 8w{}), block{set}, block{next}", set - 1, step % 256)
            .unwrap();
        writeln!(body, "block{set}: port = 32w{step} goto block{next}").unwrap();
    }
    let source = format!(
        "program large architecture test
         errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
         ingress (parse, steps) egress ()
         intrinsic parser_error = perr intrinsic egress_spec = port
         metadata perr: bit<16> metadata port: bit<32>
         header h: h_t {{ a: bit<8> dst: bit<48> }}
         action nop () = nop
         table stations {{ key dst: exact = h.dst action nop default nop() size 8 entry (48w1) => nop() }}
         body action nop {{ block0: end }}
         body parser parse {{ block0: extract h end }}
         body control steps {{ block0: apply stations, next = block1, exit = block1 {body}
         block{}: end }}",
        2 * steps + 1
    );
    Arc::new(text::parse(&source).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn a_program_that_waited_begins_with_its_best_code() {
    if !EngineKind::HERE.contains(&EngineKind::Jit) {
        println!(
            "a_program_that_waited_begins_with_its_best_code: skipped, this processor has no code generator"
        );
        return;
    }
    let program = program(100);
    let config = || SwitchConfig { engine: EngineKind::Jit, ..SwitchConfig::default() };
    let running = Switch::new(Arc::clone(&program), config()).unwrap();
    let tables = running.state().handle();
    let worker = Worker::new(running, Vec::new()).unwrap();
    let control = worker.control();
    let worker = thread::spawn(move || worker.run());

    let effort = || control.ask(Request::Look).unwrap().compiled.effort;
    let alongside = |tables| Switch::alongside(Arc::clone(&program), config(), tables).unwrap();
    control.swap(alongside(&tables), Keep::Everything).unwrap();
    assert_eq!(effort(), Effort::Quick);
    let tables = control.ask(Request::Look).unwrap().tables;
    let mut prepared = alongside(&tables);
    prepared.prepare_best_code(&tables).unwrap();
    control.swap(prepared, Keep::Everything).unwrap();
    assert_eq!(effort(), Effort::Speed);

    control.stop();
    worker.join().unwrap();
}
