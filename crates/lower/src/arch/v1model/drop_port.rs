//! The port that means drop, and another one for a program that is lowered already.

use millrace_pipeline::{Bits, Expr, Program};

/// `egress_spec` of a packet that is dropped.
const DROP_PORT: u128 = 511;

/// The drop port. [`set_drop_port`] tells it from numbers of the program by its form: a constant widened to the width
/// that it has. What builds expressions folds that away, so nothing else is lowered to it; the first pass folds it too.
pub(super) fn drop_port(width: u32) -> Expr {
    marked(Bits::new(width, DROP_PORT))
}

/// What egress starts with: not the drop port, whatever that is.
pub(super) fn no_drop_port(width: u32) -> Expr {
    marked(Bits::new(width, DROP_PORT + 1))
}

fn marked(value: Bits) -> Expr {
    let width = value.width();
    Expr::ZeroExtend(Box::new(Expr::Const(value)), width)
}

/// Gives a program of v1model another number for the port that means drop: what `mark_to_drop` writes into
/// `egress_spec`, and what that is compared with where ingress and egress end. Numbers that the program writes itself
/// stay. To be called once, before any pass.
///
/// # Errors
/// The program is not of v1model, the number does not fit in `egress_spec`, or the program was lowered by a version that
/// did not mark the drop port.
pub fn set_drop_port(program: &mut Program, port: u32) -> Result<(), String> {
    if program.architecture != "v1model" {
        return Err(format!("a program for {} has no drop port", program.architecture));
    }
    let named = program.slots.values().find(|slot| slot.name.rsplit('.').next() == Some("egress_spec"));
    let Some(width) = named.and_then(|slot| slot.ty.bits()) else {
        // It neither sends nor drops.
        return Ok(());
    };
    if width < 32 && port >> width != 0 {
        return Err(format!("the drop port {port} does not fit in the {width} bits of egress_spec"));
    }
    let mut found = false;
    for block in program.bodies.values_mut().flat_map(|body| body.blocks.values_mut()) {
        let mut each = |expr: &mut Expr| expr.walk_mut(&mut |part| found |= replace(part, port));
        block.insts.iter_mut().for_each(|inst| inst.for_each_expr_mut(&mut each));
        block.term.for_each_expr_mut(&mut each);
    }
    match found {
        true => Ok(()),
        false => Err("the program does not tell the drop port from other numbers: compile it again".into()),
    }
}

/// Gives a marked number the distance from the new drop port that it had from the old one.
fn replace(expr: &mut Expr, port: u32) -> bool {
    let Expr::ZeroExtend(inner, width) = &*expr else { return false };
    let Expr::Const(value) = &**inner else { return false };
    if value.width() != *width {
        return false;
    }
    let beside = value.sub(&Bits::new(*width, DROP_PORT));
    *expr = Expr::Const(beside.add(&Bits::new(*width, port.into())));
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_pipeline::text;

    /// As it is lowered, with the program's own 511 beside.
    fn program() -> Program {
        text::parse(
            "program p architecture v1model errors (NoError) \
             metadata standard_metadata.egress_spec: bit<9> metadata drop: bool metadata own: bool \
             body control c { block0: standard_metadata.egress_spec = zext(9w0, 9) \
             standard_metadata.egress_spec = zext(9w511, 9) standard_metadata.egress_spec = 9w511 \
             own = eq(standard_metadata.egress_spec, 9w511) \
             drop = bool_and(own, eq(standard_metadata.egress_spec, zext(9w511, 9))) end }",
        )
        .unwrap()
    }

    #[test]
    fn what_means_drop_changes_and_nothing_else() {
        for (port, beside) in [(7, 8), (0, 1), (511, 0)] {
            let mut program = program();
            set_drop_port(&mut program, port).unwrap();
            let text = program.to_string().replace("0x1ff", "511");
            for line in [
                format!("standard_metadata.egress_spec = 9w{beside}\n"),
                format!("standard_metadata.egress_spec = 9w{port}\n"),
                "standard_metadata.egress_spec = 9w511\n".into(),
                "own = eq(standard_metadata.egress_spec, 9w511)".into(),
                format!("drop = bool_and(own, eq(standard_metadata.egress_spec, 9w{port}))"),
            ] {
                assert!(text.contains(&line), "{line}: {text}");
            }
        }
    }

    #[test]
    fn what_has_no_other_drop_port_is_refused() {
        let mut known = program();
        assert!(set_drop_port(&mut known, 512).is_err());
        assert_eq!(known, program());
        let mut psa = program();
        psa.architecture = "psa".into();
        assert!(set_drop_port(&mut psa, 5).is_err());
        // As after passes, or of an earlier version.
        set_drop_port(&mut known, 5).unwrap();
        assert!(set_drop_port(&mut known, 6).unwrap_err().contains("compile it again"));
    }
}
