//! Whether a program can tell what time it is: then each packet is given the time at which it came.

use millrace_pipeline::*;

/// What the switch tells programs about the time.
const TIMES: [Intrinsic; 4] = [
    Intrinsic::IngressTimestamp,
    Intrinsic::EgressTimestamp,
    Intrinsic::EnqueueTimestamp,
    Intrinsic::QueueDelay,
];

/// Whether something that a program reads or keeps depends on the time: what the switch tells it, meters, and entries that
/// age.
pub fn shows(program: &Program) -> bool {
    let is_time = |slot: SlotId| TIMES.iter().any(|role| program.intrinsics.get(*role) == Some(slot));
    let reads_time = |expr: &Expr| {
        let mut found = false;
        expr.for_each_read(&mut |slot| found |= is_time(slot));
        found
    };
    let in_bodies = program.bodies.values().flat_map(|body| body.blocks.values()).any(|block| {
        let is_meter = |inst: &Inst| matches!(inst, Inst::Meter { .. } | Inst::MeterDirect { .. });
        let mut found = block.insts.iter().any(is_meter);
        block.for_each_expr(&mut |expr| found |= reads_time(expr));
        found
    });
    in_bodies
        || program
            .tables
            .values()
            .any(|table| table.idle_timeout || table.direct_meter.is_some() || table.exprs().any(reads_time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shows_in(text: &str) -> bool {
        let program = text::parse(&format!(
            "program t architecture test errors (NoError)
             ingress (ingress) egress ()
             intrinsic ingress_timestamp = now intrinsic egress_spec = port
             metadata now: bit<64> metadata port: bit<9> metadata x: bit<64>
             meter m size 4 packets
             body control ingress {{ block0: {text} end }}"
        ));
        shows(&program.unwrap())
    }

    #[test]
    fn who_does_not_look_is_told_no_time() {
        assert!(!shows_in("port = 9w1"));
        assert!(shows_in("x = now"));
    }
}
