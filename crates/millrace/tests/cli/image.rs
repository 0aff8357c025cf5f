//! Images: made from each program that users start from, they behave as their sources; damaged ones are refused.

use crate::common::{Folder, command, frames, millrace, root};

/// The programs of the folder, each with its test; those in P4_14 without one have that of their twins.
fn programs() -> Vec<(String, String, bool)> {
    let files = std::fs::read_dir(root().join("programs")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let programs = names.filter_map(|name| name.strip_suffix(".p4").map(str::to_owned));
    let tested = programs.map(|name| {
        let has_own = root().join(format!("programs/{name}.stf")).exists();
        let test = name.strip_suffix("_14").filter(|_| !has_own).unwrap_or(&name);
        (format!("programs/{name}.p4"), format!("programs/{test}.stf"), name.ends_with("_14"))
    });
    tested.collect()
}

#[test]
fn every_program_runs_from_its_image_as_from_its_source() {
    let folder = Folder::new("images");
    let programs = programs();
    assert!(programs.len() >= 11, "{programs:?}");
    for (program, test, is_14) in programs {
        let standard = ["--std", if is_14 { "p4-14" } else { "p4-16" }];
        let image = folder.path("image.json");
        let made = millrace(&[&["compile", &program, "-o", &image], &standard[..]].concat());
        assert_eq!((made.code, made.out.as_str(), made.err.as_str()), (0, "", ""), "{program}");
        let of_image = millrace(&["stf", &image, &test, "--json"]);
        let of_source = millrace(&[&["stf", &program, &test, "--json"], &standard[..]].concat());
        assert_eq!(of_image.code, 0, "{program}: {}", of_image.err);
        assert_eq!(of_image.json(), of_source.json(), "{program}");
        // All that a controller sees, too.
        let described = |args: &[&str]| millrace(&[&["p4info"], args].concat()).out;
        let of_source = described(&[&[program.as_str()], &standard[..]].concat());
        assert_eq!(described(&[&image]), of_source, "{program}");
    }
}

#[test]
fn an_image_forwards_without_its_source() {
    let folder = Folder::new("image-run");
    let image = folder.path("router.img");
    assert_eq!(millrace(&["compile", "programs/router.p4", "-o", &image]).code, 0);
    let output = folder.path("out.pcap");
    let port = |number, input: &str| format!("{number}@pcap:programs/demo/{input}.pcap,{output}{number}");
    let mut run = command();
    run.args(["run", &image, "--entries", "programs/router.entries", "--json"]);
    run.args(["-i", &port(0, "in0"), "-i", &port(1, "in1")]);
    let said: crate::common::Said = run.output().unwrap().into();
    assert_eq!(said.code, 0, "{}", said.err);
    let source = millrace(&["run", "--json"]).json();
    assert_eq!(said.json()["drops"], source["drops"]);
    let sent = frames(&format!("{output}0")).len() + frames(&format!("{output}1")).len();
    assert_eq!(sent, 6, "as in the demonstration");
}

#[test]
fn options_that_say_how_a_text_is_read_are_refused_with_an_image() {
    let folder = Folder::new("image-options");
    let image = folder.path("router.img");
    assert_eq!(millrace(&["compile", "programs/router.p4", "-o", &image]).code, 0);
    for option in [&["-I", "programs"][..], &["-D", "X=1"], &["-U", "X"], &["--std", "p4-16"]] {
        for args in [&["check", &image][..], &["p4info", &image], &["run", &image, "-i", "0@null:-"]] {
            let said = millrace(&[args, option].concat());
            let why = format!("`{}` is for the text of a program: {image} is an image", option[0]);
            assert!(said.code == 2 && said.err.contains(&why), "{args:?} {option:?}: {}", said.err);
        }
    }
}

#[test]
fn what_is_no_image_is_refused_with_what_it_is() {
    let folder = Folder::new("image-broken");
    let image = folder.path("image.json");
    assert_eq!(millrace(&["compile", "programs/l2_switch.p4", "-o", &image]).code, 0);
    let text = std::fs::read_to_string(&image).unwrap();
    let refused = |name: &str, text: &str| {
        let said = millrace(&["stf", &folder.file(name, text), "programs/l2_switch.stf"]);
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{name}");
        said.err_line()
    };
    assert!(refused("cut", &text[..text.len() / 2]).contains("its end is missing"));
    assert!(refused("bmv2", "{\"header_types\": [], \"pipelines\": []}").contains("p4c wrote for bmv2"));
    let newer = text.replace("\"millrace_image\": 2", "\"millrace_image\": 7");
    assert!(refused("newer", &newer).contains("version 7 of the format, which is newer"));
    assert!(refused("foreign", "{\"a\": 1}").contains("not an image of Millrace"));
    assert!(refused("damaged", &text.replacen("body ", "bode ", 1)).contains("its program is wrong"));
}

/// The other processor than this one, whose code generator only the feature `all-targets` brings: `cargo test` turns it on
/// for the whole workspace, not for this package alone.
#[test]
fn assembly_for_another_processor_is_made_or_refused_with_what_brings_it() {
    let (other, instruction) =
        if cfg!(target_arch = "x86_64") { ("aarch64", "stp fp, lr") } else { ("x86-64", "pushq %rbp") };
    let listed = |arguments: &[&str]| {
        millrace(&[&["compile", "programs/router.p4", "--emit", "asm"], arguments].concat())
    };
    let here = listed(&[]);
    assert_eq!((here.code, here.out.contains(instruction)), (0, false), "{}", here.err);
    let there = listed(&["--target", other]);
    match there.code {
        0 => assert!(there.out.contains(instruction), "{}", there.out),
        code => {
            let name = other.replace('-', "_");
            let error =
                format!("this build has no code generator for {name}: build with `--features all-targets`");
            assert_eq!((code, there.out.as_str()), (1, ""));
            assert!(there.err_line().contains(&error), "{}", there.err);
        }
    }
}
