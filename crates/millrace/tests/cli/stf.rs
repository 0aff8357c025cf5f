//! `stf`: what passes, and what is said about what does not.

use crate::common::{Folder, millrace};
use serde_json::json;

/// A packet from 10.0.0.2 to 10.0.1.2, and as it leaves the router by port 1.
const IN: &str =
    "020000000000 060000000000 0800 4500001c00000000401165ce 0a000002 0a000102 00010002 00080000";
const ENTRIES: &str = "add send_frame standard_metadata.egress_port:1 rewrite_smac(smac:0x020000000001)\n\
                       add ipv4_lpm ipv4.dst:0x0a0001** set_nhop(dmac:0x060000000001, port:1)\n";

#[test]
fn the_tests_of_the_programs_pass() {
    for name in ["router", "ip_router", "l2_switch", "firewall", "int"] {
        let (program, test) = (format!("programs/{name}.p4"), format!("programs/{name}.stf"));
        let said = millrace(&["stf", &program, &test]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(said.out.starts_with(&format!("{test}: ok (")), "{}", said.out);
    }
    let said =
        millrace(&["stf", "--json", "programs/router.p4", "programs/router.stf", "programs/router.stf"]);
    let object = said.json();
    assert_eq!(
        (said.code, &object["ok"], &object["passed"], &object["failed"]),
        (0, &json!(true), &json!(2), &json!(0))
    );
}

#[test]
fn the_tests_of_the_cookbook_pass() {
    for name in ["vlan", "mirror", "load_balancer", "aqm"] {
        let (program, test) =
            (format!("programs/cookbook/{name}.p4"), format!("programs/cookbook/{name}.stf"));
        for engine in ["auto", "interp"] {
            let said = millrace(&["stf", "--engine", engine, &program, &test]);
            assert_eq!(said.code, 0, "{program}: {}", said.err);
            assert!(said.out.starts_with(&format!("{test}: ok (")), "{program}: {}", said.out);
        }
    }
}

/// A program of a language passes a test with an engine.
fn passes(std: &str, engine: &str, program: &str, test: &str) {
    let said = millrace(&["stf", "--std", std, "--engine", engine, program, test]);
    assert_eq!(said.code, 0, "{program}: {}", said.err);
    assert!(said.out.starts_with(&format!("{test}: ok (")), "{program}: {}", said.out);
}

/// A program takes entries.
fn fits(std: &str, program: &str, entries: &str) {
    let packet = ["--port", "0", "--packet", "00"];
    let said = millrace(&[&["trace", "--std", std, program, "--entries", entries], &packet[..]].concat());
    assert_eq!(said.code, 0, "{entries}: {}", said.err);
}

#[test]
fn the_tests_of_programs_in_both_languages_pass() {
    for name in ["nat", "l3_gateway_vxlan", "l3_gateway_pppoe", "l3_gateway_gtp"] {
        let test = format!("programs/{name}.stf");
        // Machine code takes seconds to make without optimisation, so one language has to do.
        for (std, engine, program) in [
            ("p4-16", "auto", format!("programs/{name}.p4")),
            ("p4-14", "interp", format!("programs/{name}_14.p4")),
        ] {
            passes(std, engine, &program, &test);
            // And the entries of the example network fit it.
            fits(std, &program, &format!("programs/{name}.entries"));
        }
    }
}

#[test]
fn the_tests_of_the_afdx_switches_pass() {
    for (name, std) in [("afdx", "p4-16"), ("afdx_registers", "p4-16"), ("afdx_14", "p4-14")] {
        let (program, test) = (format!("programs/{name}.p4"), format!("programs/{name}.stf"));
        for engine in ["auto", "interp"] {
            passes(std, engine, &program, &test);
        }
        fits(std, &program, &format!("programs/{name}.entries"));
    }
}

#[test]
fn the_tests_of_p4_14_pass() {
    for name in ["arithmetic", "calculations", "conditions", "headers", "parsing", "state", "wide"] {
        let (program, test) = (format!("tests/p4_14/{name}.p4"), format!("tests/p4_14/{name}.stf"));
        let said = millrace(&["stf", "--std", "p4-14", &program, &test]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(said.out.starts_with(&format!("{test}: ok (")), "{}", said.out);
    }
}

#[test]
fn a_difference_is_shown_byte_by_byte() {
    let folder = Folder::new("stf-differs");
    // The test expects the time to live unchanged.
    let text = format!(
        "{ENTRIES}packet 0 {IN}\nexpect 1 060000000001 020000000001 0800 4500001c00000000 40 11 **** 0a000002 0a000102\n"
    );
    let test = folder.file("ttl.stf", &text);
    let said = millrace(&["stf", "programs/router.p4", &test]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.out.contains("ttl.stf: FAILED (1 packet, 0 checks passed, 1 failed)"), "{}", said.out);
    assert!(said.err.contains("packet 1 on port 1 differs at byte 22"), "{}", said.err);
    assert!(said.err.contains("ttl.stf:4:1"), "{}", said.err);
    assert!(
        said.err.contains(
            "  0010 expected 00 1c 00 00 00 00 40 11 ** ** 0a 00 00 02 0a 00\n\
             \x20      got      00 1c 00 00 00 00 3f 11 66 ce 0a 00 00 02 0a 00\n\
             \x20                                 ^^\n"
        ),
        "{}",
        said.err
    );
    let failure =
        millrace(&["stf", "--json", "programs/router.p4", &test]).json()["tests"][0]["failures"][0].clone();
    assert_eq!(
        (&failure["line"], &failure["port"], &failure["differing_bytes"]),
        (&json!(4), &json!(1), &json!([22]))
    );
}

#[test]
fn packets_too_many_and_too_few_are_told() {
    let folder = Folder::new("stf-count");
    let text = format!("{ENTRIES}packet 0 {IN}\nexpect 2 00\nexpect 1\npacket 0 {IN}\nno_packet\n");
    let test = folder.file("count.stf", &text);
    let said = millrace(&["stf", "programs/router.p4", &test]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("packet 1 on port 2 did not come"), "{}", said.err);
    assert!(said.err.contains("packet 2 on port 1 was not expected"), "{}", said.err);
    assert!(said.out.contains("1 check passed, 2 failed"), "{}", said.out);
    // Without entries everything is dropped, so `no_packet` holds and ports that are not named do not matter.
    let test = folder.file("none.stf", &format!("packet 0 {IN}\nno_packet\n"));
    assert_eq!(millrace(&["stf", "programs/router.p4", &test]).code, 0);
}

#[test]
fn a_test_that_expects_nothing_passes_and_says_so() {
    let folder = Folder::new("stf-empty");
    for (text, packets) in
        [("", "0 packets"), ("# nothing yet\n\n", "0 packets"), ("packet 0 00\n", "1 packet")]
    {
        let test = folder.file("empty.stf", text);
        let said = millrace(&["stf", "programs/router.p4", &test]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(
            said.out.ends_with(&format!("empty.stf: ok ({packets}, 0 checks: it expects nothing)\n")),
            "{}",
            said.out
        );
        let object = millrace(&["stf", "--json", "programs/router.p4", &test]).json();
        assert_eq!((&object["ok"], &object["tests"][0]["passed"]), (&json!(true), &json!(0)));
    }
}

#[test]
fn what_does_not_fit_the_program_is_told_with_its_place() {
    let folder = Folder::new("stf-refused");
    for (statement, message) in [
        ("add ipv4_lmp ipv4.dst:1 drop()", "no table named `ipv4_lmp`"),
        ("add ipv4_lpm ipv4.dts:1 drop()", "has no key field `ipv4.dts`"),
        ("add ipv4_lpm ipv4.dst:1 set_nhop(dmac:1)", "needs the parameter `port`"),
        ("add ipv4_lpm ipv4.dst:1 set_nhop(dmac:1, port:512)", "the value takes 10 bits"),
        ("add ipv4_lpm ipv4.dst:1/33 RouterIngress.drop()", "a prefix length from 0 to 32"),
        ("check_counter nothing(1)", "no counter named `nothing`"),
        ("mc_node_associate 1 1", "no multicast"),
        ("pakcet 0 00", "did you mean `packet`?"),
    ] {
        let test = folder.file("refused.stf", &format!("# one\n{statement}\n"));
        let said = millrace(&["stf", "programs/router.p4", &test]);
        assert_eq!(said.code, 1, "{statement}");
        assert!(said.err.contains("refused.stf:2:"), "{statement}: {}", said.err);
        assert!(said.err_line().contains(message), "{statement}: {}", said.err);
    }
    let said = millrace(&["stf", "programs/router.p4", &folder.path("nowhere.stf")]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("cannot read"), "{}", said.err);
}

#[test]
fn priorities_counters_and_labels() {
    // Of rules that match at once the largest number decides: with p4c's runner 500 comes before 100.
    let folder = Folder::new("stf-priority");
    let packet = "020000000000060000000000 0800 45000014000000004001 0000 0a000002 0a000102";
    let text = format!(
        "add forward ingress_port:0 set_port(port:1)\n\
         add acl 100 ipv4.src:0x0a****** deny() = broad\n\
         add acl 500 ipv4.src:0x0a000002 permit() = narrow\n\
         packet 0 {packet}\nexpect 1 {packet} $\n"
    );
    let test = folder.file("priority.stf", &text);
    let said = millrace(&["stf", "programs/firewall.p4", &test]);
    assert_eq!(said.code, 0, "{}", said.err);
    let swapped = folder.file("swapped.stf", &text.replace("acl 500", "acl 50"));
    assert_eq!(millrace(&["stf", "programs/firewall.p4", &swapped]).code, 1);
}
