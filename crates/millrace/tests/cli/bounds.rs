//! `millrace bounds` and `millrace calibrate`.

use crate::common::{Folder, millrace};
use serde_json::{Value, json};

const ROUTER: [&str; 4] = ["bounds", "programs/router.p4", "--entries", "programs/router.entries"];

#[test]
fn times_come_from_a_calibration_of_this_machine_and_version() {
    let folder = Folder::new("calibration");
    let file = folder.path("here.json");
    let file = file.as_str();
    let said = millrace(&["calibrate", "-o", file]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains(" ps, of several at once "), "{}", said.out);
    let bounds = |calibration: &[&str]| millrace(&[&ROUTER[..], calibration].concat());
    let said = bounds(&["--calibration", file, "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    let batches = found["batches"].as_array().expect("batches");
    let ns: Vec<u64> = batches.iter().filter_map(|batch| batch["ns"].as_u64()).collect();
    assert_eq!(ns.len(), batches.len());
    assert!(ns[0] > 100 && ns.is_sorted(), "{ns:?}");
    // Without one there are no times.
    let said = bounds(&["--json"]);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(found["batches"][0]["ns"], Value::Null);

    let own: Value = serde_json::from_str(&std::fs::read_to_string(file).expect("it")).expect("JSON");
    let refused = |change: &dyn Fn(&mut Value), why: &str| {
        let mut other = own.clone();
        change(&mut other);
        std::fs::write(file, other.to_string()).expect("written");
        let said = bounds(&["--calibration", file]);
        assert!(said.code == 1 && said.err.contains(why), "{} {}", said.code, said.err);
    };
    // As an earlier version has written it.
    refused(
        &|other| {
            *other = json!({ "version": 1, "processor": "p", "machine": "m", "ps_per_instruction": 300,
                             "ps_per_line": 90_000, "ps_per_batch": 40_000 });
        },
        "it has version 1, and only 2 is known: run `millrace calibrate` again",
    );
    refused(&|other| other["machine"] = json!("another"), "it is of another machine");
    refused(&|other| other["ps_per_line_at_once"] = json!(0), "`ps_per_line_at_once` is not between");
    refused(&|other| drop(other.as_object_mut().map(|all| all.remove("version"))), "missing field `version`");
}
