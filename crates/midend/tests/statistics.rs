//! A reader of the middle end that is no code generator needs nothing of one: the example's statistics of small programs, counted
//! by hand.

#[path = "../examples/statistics.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod statistics;

use millrace_midend::Footprint;
use millrace_pipeline::text;
use statistics::Statistics;

fn of(program: &str) -> Statistics {
    let program = text::parse(program).unwrap_or_else(|error| panic!("{error}"));
    Statistics::of(&program).unwrap_or_else(|error| panic!("{error}"))
}

/// A program with an Ethernet header, two tables and this control.
fn program(control: &str) -> String {
    format!(
        "program t architecture test errors (NoError, PacketTooShort)
         ingress (parser, control, deparser) egress ()
         intrinsic egress_spec = port
         metadata port: bit<32>
         header h: ethernet {{ a: bit<48> b: bit<48> c: bit<16> }}
         action set () = set
         action nop () = nop
         table one {{ key h.a: exact = h.a action set action nop default nop() size 4 }}
         table two {{ key h.b: exact = h.b action nop default nop() size 4 }}
         body action set {{ block0: h.b = 48w5 end }}
         body action nop {{ block0: end }}
         body parser parser {{ block0 state start: extract h end }}
         body control control {{ {control} }}
         body deparser deparser {{ block0: emit h end }}"
    )
}

#[test]
fn paths_are_counted() {
    // The packet is too short, or not: two paths, and no table.
    let none = of(&program("block0: end"));
    assert_eq!((none.paths, none.applications, none.moves), (Some(2), Some(0), false));
    // The second of two tables has one action, the first two: too short (where no header is valid the keys are 0, but the
    // tables are applied all the same) or not, each with 2 * 1 paths.
    let both = of(&program(
        "block0: apply one, next = block1, exit = block1
         block1: apply two, next = block2, exit = block2
         block2: end",
    ));
    assert_eq!((both.paths, both.applications), (Some(4), Some(2)));
}

#[test]
fn the_footprint_is_that_of_the_fields_that_are_written() {
    // Field b, which the action sets, is in the bytes 6 to 11.
    let one = of(&program("block0: apply one, next = block1, exit = block1 block1: end"));
    assert_eq!(one.footprint, Footprint { before: 0, within: 12 });
    let none = of(&program("block0: apply two, next = block1, exit = block1 block1: end"));
    assert_eq!(none.footprint, Footprint::default());
    assert!(!one.moves && !none.moves);
}
