//! Another drop port for a program that is lowered already.

use millrace_pipeline::{BinaryOp, Bits, Expr, Inst, Program, SlotId};
use std::collections::BTreeSet;

use super::DROP_PORT;

/// Gives a program of v1model another number for the port that means drop: what `mark_to_drop` writes into
/// `egress_spec` and what that is compared with. A program that itself writes 511 there means the drop port too.
///
/// # Errors
/// The program is not of v1model, or the number does not fit in `egress_spec`.
pub fn set_drop_port(program: &mut Program, port: u32) -> Result<(), String> {
    if program.architecture != "v1model" {
        return Err(format!("a program for {} has no drop port", program.architecture));
    }
    let named = program.slots.iter().filter(|(_, slot)| slot.name.rsplit('.').next() == Some("egress_spec"));
    let slots: BTreeSet<SlotId> = named.map(|(id, _)| id).collect();
    let Some(width) = slots.iter().find_map(|slot| program.slots[*slot].ty.bits()) else {
        // It neither sends nor drops.
        return Ok(());
    };
    if width < 32 && port >> width != 0 {
        return Err(format!("the drop port {port} does not fit in the {width} bits of egress_spec"));
    }
    let (old, new) = (Bits::new(width, DROP_PORT), Bits::new(width, port.into()));
    for body in program.bodies.values_mut() {
        for block in body.blocks.values_mut() {
            for inst in &mut block.insts {
                if let Inst::Assign { dst, value: Expr::Const(written) } = inst
                    && slots.contains(dst)
                    && *written == old
                {
                    *written = new.clone();
                }
                inst.for_each_expr_mut(&mut |expr| {
                    expr.walk_mut(&mut |part| compare(part, &slots, &old, &new))
                });
            }
            block
                .term
                .for_each_expr_mut(&mut |expr| expr.walk_mut(&mut |part| compare(part, &slots, &old, &new)));
        }
    }
    Ok(())
}

/// Changes the constant that one of the slots is compared with.
fn compare(expr: &mut Expr, slots: &BTreeSet<SlotId>, old: &Bits, new: &Bits) {
    if let Expr::Binary(BinaryOp::Eq | BinaryOp::Ne, left, right) = expr
        && let (Expr::Read(slot), Expr::Const(constant)) | (Expr::Const(constant), Expr::Read(slot)) =
            (&mut **left, &mut **right)
        && slots.contains(slot)
        && constant == old
    {
        *constant = new.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_pipeline::text;

    fn program() -> Program {
        text::parse(
            "program p architecture v1model errors (NoError) \
             metadata standard_metadata.egress_spec: bit<9> metadata drop: bool metadata other: bit<9> \
             body control c { block0: standard_metadata.egress_spec = 9w511 other = 9w511 \
             drop = bool_and(eq(standard_metadata.egress_spec, 9w511), eq(other, 9w511)) end }",
        )
        .unwrap()
    }

    #[test]
    fn what_means_drop_changes_and_nothing_else() {
        let mut program = program();
        set_drop_port(&mut program, 500).unwrap();
        let text = program.to_string();
        for line in [
            "standard_metadata.egress_spec = 9w500",
            "other = 9w511",
            "drop = bool_and(eq(standard_metadata.egress_spec, 9w500), eq(other, 9w511))",
        ] {
            let shown = text.replace("0x1f4", "500").replace("0x1ff", "511");
            assert!(shown.contains(line), "{line}: {shown}");
        }
    }

    #[test]
    fn numbers_that_do_not_fit_and_other_architectures_are_refused() {
        assert!(set_drop_port(&mut program(), 512).is_err());
        let mut psa = program();
        psa.architecture = "psa".into();
        assert!(set_drop_port(&mut psa, 5).is_err());
    }
}
