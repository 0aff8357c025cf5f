//! What is known of the code of the project's own programs, worked out by hand from their sources.

use millrace_jit::{Compiled, Effort, Options, listing};
use millrace_midend::{Footprint, Plan};
use millrace_pipeline::{Program, passes};
use std::path::Path;

fn program(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../programs/{name}.p4"));
    let parsed = millrace_syntax::parse_path(&path, &millrace_syntax::Options::default());
    let checked = millrace_sema::check(&parsed.program);
    let mut program = millrace_lower::lower(&checked.program, name).expect("a program of this project");
    passes::optimize(&mut program);
    program
}

fn compile(name: &str, effort: Effort) -> Compiled {
    let program = program(name);
    let options = Options { effort, ..Options::default() };
    Compiled::new(&program, &Plan::through(&program, true), &options).expect("code for this machine")
}

/// A router writes both MAC addresses and the time to live or hop limit; the last thing that it writes is the checksum of
/// IPv4, bytes 24 and 25 of the frame.
#[test]
fn a_router_writes_twenty_six_bytes() {
    let code = compile("router", Effort::Speed);
    assert_eq!(code.footprint(), Footprint { before: 0, within: 26 });
    assert!(code.keeps_place());
    // Where all paths join, headers may be anywhere as far as the parser gets, after IPv6 with its options.
    let bound = compile("router", Effort::Quick).footprint();
    assert!(bound.within >= 26, "{bound:?}");
}

/// These two choose a port and leave the frame alone.
#[test]
fn a_switch_and_a_firewall_write_nothing() {
    for name in ["l2_switch", "firewall"] {
        let code = compile(name, Effort::Speed);
        assert_eq!(code.footprint(), Footprint { before: 0, within: 0 }, "{name}");
        assert!(code.keeps_place());
    }
}

/// On the path of an IPv4 packet both headers are at known places, and after the checks the version and the header length
/// are known too, at each node up to the one that sends.
#[test]
fn a_router_is_specialised() {
    let program = program("router");
    let graph =
        listing(&program, &Plan::through(&program, true), &Options::default(), None).expect("code").graph;
    let routed: Vec<&str> =
        graph.lines().filter(|line| line.contains(" RouterIngress.set_nhop.block0 ")).collect();
    assert_eq!(routed.len(), 2, "one for each family:\n{graph}");
    assert!(routed.iter().all(|line| line.contains(" hdr.ethernet @0 ")));
    let ipv4 = routed.iter().find(|line| line.contains(" hdr.ipv4 @14 ")).expect("one for IPv4");
    assert!(
        ipv4.contains(" hdr.ipv4.version=0x4 hdr.ipv4.ihl=0x5 ") && ipv4.contains(" cursor 272 "),
        "{ipv4}"
    );
    let ipv6 = routed.iter().find(|line| line.contains(" hdr.ipv6 @14 ")).expect("one for IPv6");
    assert!(ipv6.contains(" cursor 432 "), "{ipv6}");
}

/// Where paths join on which a header is valid or not, quickly made code has it point into the packet or to zeros; its
/// fields are not copied.
#[test]
fn headers_of_quickly_made_code_stay_in_the_packet() {
    let program = program("l3_gateway_gtp");
    let options = Options { effort: Effort::Quick, ..Options::default() };
    let graph = listing(&program, &Plan::through(&program, true), &options, None).expect("code").graph;
    let accepted =
        graph.lines().find(|line| line.contains(" hdr.ipv4 -@?")).expect("packets with and without IPv4");
    assert!(accepted.contains(" hdr.ethernet @0 "), "{accepted}");
}

/// The feature `all-targets`, which tests have, brings the code generators of both machines; others are refused with how
/// to get those. The names of the instructions are those of the manuals of the processors.
#[test]
fn code_for_another_machine_is_made_where_its_code_generator_is_built_in() {
    let program = program("router");
    let plan = Plan::through(&program, true);
    let code = |target| listing(&program, &plan, &Options::default(), Some(target));
    let arm = code("aarch64").expect("code for Arm").asm;
    assert!(arm.contains("ldrb") && arm.contains("stp fp, lr") && !arm.contains("movq"), "{arm}");
    let x86 = code("x86_64").expect("code for x86").asm;
    assert!(x86.contains("pushq %rbp") && !x86.contains("ldrb"), "{x86}");
    let refused = code("s390x").expect_err("no code generator of this crate").to_string();
    assert_eq!(
        refused,
        "this build has no code generator for s390x: build with `--features all-targets` for x86-64 and aarch64"
    );
}
