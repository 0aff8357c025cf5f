//! The port that means drop, and another one for a program that is lowered already.

use millrace_pipeline::{Bits, Expr, Program};

/// `egress_spec` of a packet that is dropped.
pub(super) const DROP_PORT: u128 = 511;

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
    let offset = value.sub(&Bits::new(*width, DROP_PORT));
    *expr = Expr::Const(offset.add(&Bits::new(*width, port.into())));
    true
}

/// How many bits a program has for the number of a port; none where all numbers of the switch fit.
fn port_bits(program: &Program) -> Option<u32> {
    if program.architecture != "v1model" {
        return None;
    }
    let bits = |name: String| program.slots.values().find(|slot| slot.name == name)?.ty.bits();
    // `standard_metadata` has the name that the parser gives it. Only that has all of these fields.
    let of_block = program.slots.values().filter_map(|slot| slot.name.strip_suffix(".checksum_error"));
    let ports = |block: &str| {
        let [ingress, egress, spec] =
            ["ingress_port", "egress_port", "egress_spec"].map(|field| bits(format!("{block}.{field}")));
        Some(ingress?.min(egress?).min(spec?))
    };
    of_block.filter(|block| !block.contains('.')).find_map(ports)
}

/// Whether a program can tell the port of a number from others: with fewer bits it would see the low ones alone, and take
/// the port for another.
///
/// # Errors
/// It cannot.
pub fn check_port(program: &Program, port: u32) -> Result<(), String> {
    match port_bits(program) {
        Some(bits) if bits < 32 && port >> bits != 0 => Err(format!(
            "port {port} does not fit in the {bits} bits that `{}` has for the number of a port: 0 to {}",
            program.name,
            (1u32 << bits) - 1
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_pipeline::text;

    /// As it is lowered, with the program's own 511 next to it.
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
        for (port, offset) in [(7, 8), (0, 1), (511, 0)] {
            let mut program = program();
            set_drop_port(&mut program, port).unwrap();
            let text = program.to_string().replace("0x1ff", "511");
            for line in [
                format!("standard_metadata.egress_spec = 9w{offset}\n"),
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
    fn ports_have_the_bits_of_the_standard_metadata() {
        let program = |block: &str, bits: u32| {
            let fields = ["ingress_port", "egress_spec", "egress_port", "checksum_error"];
            let slots = fields.map(|field| format!("metadata {block}.{field}: bit<{bits}> ")).concat();
            // A field of the program's own that has the name of one.
            let text = format!(
                "program p architecture v1model errors (NoError) metadata meta.egress_port: bit<4> {slots}"
            );
            text::parse(&text).unwrap()
        };
        assert_eq!(port_bits(&program("smeta", 9)), Some(9));
        assert_eq!(port_bits(&program("standard_metadata", 16)), Some(16));
        assert!(check_port(&program("smeta", 9), 511).is_ok());
        assert!(check_port(&program("smeta", 32), u32::MAX).is_ok());
        let refused = check_port(&program("smeta", 9), 512).unwrap_err();
        assert_eq!(
            refused,
            "port 512 does not fit in the 9 bits that `p` has for the number of a port: 0 to 511"
        );
        let mut psa = program("smeta", 9);
        psa.architecture = "psa".into();
        assert!(check_port(&psa, 512).is_ok());
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
