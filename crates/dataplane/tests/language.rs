//! What the P4_16 specification leaves open, from source to packet: docs/semantics.md says what is pinned here.

use millrace_dataplane::{DropReason, PortId, Replica, Switch, SwitchConfig};
use millrace_pipeline::verify;
use millrace_syntax::{Options, parse_path};
use std::path::Path;
use std::sync::Arc;

fn switch() -> Switch {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/open.p4");
    let parsed = parse_path(&path, &Options::default());
    let errors: Vec<_> = parsed.diagnostics.iter().filter(|found| found.is_error()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let checked = millrace_sema::check(&parsed.program);
    let errors: Vec<_> = checked.diagnostics.iter().filter(|found| found.is_error()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let program = millrace_lower::lower(&checked.program, "open").unwrap();
    verify(&program).unwrap();
    Switch::new(Arc::new(program), SwitchConfig::default()).unwrap()
}

/// The four result bytes of a packet, and what follows them.
#[track_caller]
fn expect(packet: &[u8], result: [u8; 4], rest: &[u8]) {
    let (outcome, trace) = switch().inject_traced(0, packet, 0);
    let expected: Vec<u8> = result.iter().chain(rest).copied().collect();
    assert_eq!(outcome.sent.first().map(|sent| sent.bytes.clone()), Some(expected), "{trace}");
}

#[test]
fn uninitialised_variables_are_zero_and_headers_invalid() {
    expect(&[0, 0, 0], [0, 0, 2, 2], &[]);
}

#[test]
fn invalid_headers_read_zero_and_lose_writes() {
    expect(&[1, 77, 0], [0, 0, 0, 0], &[]);
}

#[test]
fn an_index_outside_a_stack_reads_zero_and_writes_nothing() {
    expect(&[2, 1, 5], [5, 1, 5, 0], &[]);
    expect(&[2, 3, 5], [0, 2, 0, 0], &[]);
    expect(&[2, 255, 5], [0, 2, 0, 0], &[]);
}

#[test]
fn a_union_has_one_valid_member() {
    expect(&[3, 77, 0], [2, 0, 0, 2], &[]);
}

#[test]
fn making_one_member_of_a_union_invalid_makes_all_of_it_invalid() {
    expect(&[11, 77, 0], [2, 0, 0, 0], &[]);
}

/// "Operations on header unions", and "Calling convention: call by copy in/copy out" of the specification.
#[test]
fn copying_an_invalid_header_to_a_member_of_a_union_makes_all_of_it_invalid() {
    expect(&[15, 77, 0], [2, 77, 9, 2], &[]);
}

#[test]
fn enums_keep_numbers_without_a_name() {
    expect(&[4, 1, 0], [1, 1, 0, 0], &[]);
    expect(&[4, 200, 0], [200, 2, 0, 0], &[]);
}

#[test]
fn shifts_by_the_width_and_more() {
    expect(&[5, 0x81, 7], [0x80, 1, 0xff, 0], &[]);
    expect(&[5, 0x81, 8], [0, 0, 0xff, 0], &[]);
    expect(&[5, 0x41, 255], [0, 0, 0, 0], &[]);
}

#[test]
fn arithmetic_wraps_or_saturates() {
    expect(&[6, 200, 100], [44, 255, 44, 56], &[]);
    expect(&[6, 100, 100], [200, 200, 127, 156], &[]);
    expect(&[6, 128, 255], [127, 255, 128, 128], &[]);
}

#[test]
fn an_out_parameter_that_is_not_written_is_zero() {
    expect(&[7, 77, 0], [0, 0, 0, 0], &[]);
}

#[test]
fn exit_copies_out_and_egress_runs() {
    expect(&[8, 0, 0], [9, 0, 7, 0], &[]);
}

#[test]
fn operands_from_left_to_right_and_no_more_than_needed() {
    expect(&[9, 1, 0], [12, 3, 0, 0], &[]);
    expect(&[9, 0, 0], [12, 3, 0, 0], &[]);
}

/// "Expression evaluation order" and "Calling convention: call by copy in/copy out" of the specification.
#[test]
fn arguments_and_members_with_names_are_evaluated_as_they_are_written() {
    expect(&[14, 0, 0], [21, 43, 1, 5], &[]);
}

/// The identity of two bytes is the number that they are together: 0x0101 mod 256 after a base of 0, and 0x0304 mod 0x400 after 3.
#[test]
fn arguments_of_externs_are_evaluated_as_they_are_written() {
    expect(&[16, 0, 0], [1, 1, 2, 7], &[]);
}

#[test]
fn a_full_stack_is_an_error_of_the_parser() {
    expect(&[20, 0, 0, 1, 2, 3, 4], [0, 1, 0, 0], &[1, 2, 3, 4]);
    expect(&[20, 0, 0, 1, 2], [0, 2, 0, 0], &[1, 2]);
}

#[test]
fn the_last_index_of_an_empty_stack_wraps() {
    expect(&[21, 0, 0, 1, 2], [1, 0, 0, 0], &[1, 2]);
    expect(&[22, 0, 0], [255, 0, 0, 0], &[]);
}

#[test]
fn a_select_without_a_match_is_an_error_of_the_parser() {
    expect(&[23, 1, 0], [0, 0, 0, 0], &[]);
    expect(&[23, 2, 0], [0, 3, 0, 0], &[]);
}

#[test]
fn entries_in_the_source_come_in_order_and_the_default_is_no_action() {
    expect(&[10, 3, 0], [1, 2, 0, 0], &[]);
    expect(&[10, 2, 0], [3, 2, 0, 0], &[]);
}

/// What was sent: the port, and the result with what follows it. Else why nothing was.
fn fate(packet: &[u8]) -> Result<(PortId, Vec<u8>), DropReason> {
    let mut switch = switch();
    let groups = switch.replication_mut();
    groups.create_group(1).unwrap();
    groups.set_copies(1, vec![Replica { port: 3, rid: 0 }]).unwrap();
    let outcome = switch.inject(0, packet, 0);
    match (outcome.sent.as_slice(), outcome.drops.as_slice()) {
        ([sent], []) => Ok((sent.port, sent.bytes.clone())),
        ([], [dropped]) => Err(dropped.reason),
        _ => panic!("{outcome:?}"),
    }
}

#[test]
fn a_drop_in_ingress_gives_way_to_resubmission_and_multicast() {
    assert_eq!(fate(&[12, 0, 0]), Err(DropReason::IngressDrop));
    // A later assignment counts; `egress_spec` is 0 where egress starts.
    assert_eq!(fate(&[12, 1, 0]), Ok((2, vec![0, 0, 0, 0])));
    // Multicast: instance type 5. Resubmitted, then unicast to port 1: 6, in egress too.
    assert_eq!(fate(&[12, 2, 0]), Ok((3, vec![0, 5, 0, 0])));
    assert_eq!(fate(&[12, 3, 0]), Ok((1, vec![6, 6, 0, 0])));
}

#[test]
fn a_drop_in_egress_comes_before_recirculation_and_who_recirculates_stays_known() {
    assert_eq!(fate(&[13, 0, 0]), Err(DropReason::EgressDrop));
    // Recirculated: instance type 4 in ingress and, after unicast, in egress. The fourth byte is payload now.
    assert_eq!(fate(&[13, 1, 0]), Ok((1, vec![4, 4, 0, 0, 0])));
}
