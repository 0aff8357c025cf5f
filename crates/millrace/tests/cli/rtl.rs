//! `millrace rtl`: what it says of the hardware of a program.

use crate::common::{Folder, millrace, root};
use std::fs;
use std::path::Path;

/// The parser is in ingress, the deparser in egress, and controls where they are applied. The total of each stage is that of its parts.
#[test]
fn rtl_tells_what_each_part_takes() {
    let said = millrace(&["rtl", "programs/router.p4", "--json"]).json();
    let stages = [
        ("ingress", ["parser RouterParser", "control RouterVerifyChecksum", "control RouterIngress"]),
        ("egress", ["control RouterEgress", "control RouterComputeChecksum", "deparser RouterDeparser"]),
    ];
    let areas = said["areas"].as_array().unwrap();
    assert_eq!(areas.len(), stages.len(), "{areas:?}");
    for (area, (stage, bodies)) in areas.iter().zip(stages) {
        let parts = area["parts"].as_array().unwrap();
        let part = |name: &str| parts.iter().find(|part| part["part"] == *name);
        assert_eq!(area["of"], stage);
        for body in bodies {
            let takes = part(body).unwrap_or_else(|| panic!("{body} in {area}"));
            assert!(takes["luts"].as_u64() > Some(0) && takes["ffs"] == 0, "{takes}");
        }
        let is_body =
            |name: &str| ["parser ", "control ", "deparser "].iter().any(|kind| name.starts_with(kind));
        let found = parts.iter().filter_map(|part| part["part"].as_str()).filter(|name| is_body(name));
        assert_eq!(found.count(), bodies.len(), "{area}");
        let registers = part("pipeline registers").unwrap();
        assert!(registers["luts"] == 0 && registers["ffs"].as_u64() > Some(0), "{registers}");
        for key in ["luts", "ffs", "memory_luts", "memory_bits", "blocks", "multipliers"] {
            let all: u64 = parts.iter().filter_map(|part| part[key].as_u64()).sum();
            assert_eq!(area["total"][key], all, "{key} of {area}");
        }
    }
    let text = millrace(&["rtl", "programs/router.p4"]).out;
    let page = fs::read_to_string(root().join("docs/rtl.md")).unwrap();
    let shown = page.split("```\n").find(|block| block.starts_with("ingress\n  area, by estimate")).unwrap();
    assert!(shown.lines().count() > 3 && text.contains(shown), "{shown}{text}");
}

#[test]
fn options_of_a_device_that_cannot_be_are_refused_in_words() {
    let program = "programs/l2_switch.p4";
    for (more, why) in [
        (
            &["--ports", "0"][..],
            "hardware cannot have a number of ports of 0: 1 to 16 is expected, in device",
        ),
        (&["--width", "63"], "a width of beats of 63: a power of two from 64 to 512 is expected"),
        (
            &["--link", "xgmii", "--width", "128"],
            "beats of 128 bits at a MAC of 10 Gbit/s, which has beats of 64",
        ),
        // The program would take the second port for the first.
        (
            &["--numbers", "0:512"],
            "port 512 does not fit in the 9 bits that `l2_switch` has for the number of a port",
        ),
    ] {
        let said = millrace(&[&["rtl", program, "--device"], more].concat());
        assert!(said.code == 1 && said.err.contains(why), "{more:?}: {}", said.err);
    }
}

/// Programs in `refused` say in their first line what is asked for, and in their second what is refused and where.
#[test]
fn refusals_name_construct_file_and_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/refused");
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert!(names.len() >= 13, "{names:?}");
    for name in names {
        let program = folder.join(&name).display().to_string();
        let text = fs::read_to_string(&program).unwrap();
        let mut lines = text.lines();
        let mut next = |begin| {
            lines.next().and_then(|line| line.strip_prefix(begin)).unwrap_or_else(|| panic!("{program}"))
        };
        let (asked, refused) = (next("// rtl"), next("// refused: "));
        let args: Vec<&str> = ["rtl", &program].into_iter().chain(asked.split_whitespace()).collect();
        let said = millrace(&args);
        assert_eq!(said.code, 1, "{program}: {}", said.err);
        let wanted = format!("hardware cannot have {refused}");
        assert!(said.err.trim_end().ends_with(&wanted), "{program}: {}\nnot: {wanted}", said.err);
    }
}

/// Two arrays of 2^22 cells have as many words as all objects may have together: the third has no unit.
#[test]
fn arrays_beyond_the_limit_of_all_stay_outside_with_the_limit() {
    let folder = Folder::new("rtl-limit");
    let members: String = (0..3).map(|at| format!("bit<8> f{at}; ")).collect();
    let text = format!(
        "#include <core.p4>
         #include <v1model.p4>
         header h_t {{ bit<8> a; }}
         struct headers {{ h_t h; }}
         struct meta_t {{ }}
         struct cell_t {{ {members} }}
         parser P(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata_t s) {{
             state start {{ p.extract(hdr.h); transition accept; }}
         }}
         control V(inout headers hdr, inout meta_t m) {{ apply {{ }} }}
         control I(inout headers hdr, inout meta_t m, inout standard_metadata_t s) {{
             register<cell_t>(1 << 22) cells;
             cell_t cell;
             apply {{ cells.read(cell, 0); cells.write((bit<32>)hdr.h.a, cell); s.egress_spec = 1; }}
         }}
         control E(inout headers hdr, inout meta_t m, inout standard_metadata_t s) {{ apply {{ }} }}
         control D(packet_out p, in headers hdr) {{ apply {{ p.emit(hdr); }} }}
         V1Switch(P(), V(), I(), E(), V(), D()) main;"
    );
    let said = millrace(&["rtl", &folder.file("large.p4", &text), "--allow-slow", "-o", &folder.path("out")]);
    assert_eq!(said.code, 0, "{}", said.err);
    let outside: Vec<&str> = said.out.lines().filter(|line| line.contains("asked by")).collect();
    let why = "  I.cells.f2, asked by ingress: with it the units of all objects would have 12582912 words, more than 8388608 \
               (limit MAX_OBJECTS_WORDS)";
    assert_eq!(outside, [why], "{}", said.out);
}

/// Whoever synthesises a folder takes all that is in it: what an earlier design has left goes, what is somebody else's or was changed stays.
#[test]
fn a_design_replaces_the_one_before_in_a_folder() {
    let folder = Folder::new("rtl-again");
    let out = folder.path("out");
    let at = |name: &str| Path::new(&out).join(name);
    let make = |more: &[&str]| {
        let said = millrace(&[&["rtl", "programs/l2_switch.p4", "-o", &out], more].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        said.err
    };
    make(&[]);
    let of_stages = ["control_avalon_mm.sv", "egress.xdc", "egress_vivado.tcl"];
    assert!(of_stages.iter().all(|name| at(name).exists()));
    fs::write(at("board.sv"), "module board; endmodule\n").unwrap();
    fs::write(at("egress.sdc"), "# changed by hand\n").unwrap();
    let said = make(&["--device"]);
    assert!(said.contains("egress.sdc is of an earlier design and stays: it was changed"), "{said}");
    assert!(of_stages.iter().all(|name| !at(name).exists()));
    assert!(["device.sv", "board.sv", "egress.sdc"].iter().all(|name| at(name).exists()));
    // Of the same design nothing goes, and names that lead out of the folder are no files of a design.
    let outside = folder.file("outside.txt", "kept\n");
    let list = fs::read_to_string(at("design.files")).unwrap();
    fs::write(at("design.files"), format!("{list}5 00000000 ../outside.txt\n")).unwrap();
    make(&["--device"]);
    assert!(at("device.sv").exists() && Path::new(&outside).exists());
    assert_eq!(fs::read_to_string(at("design.files")).unwrap(), list);
}
