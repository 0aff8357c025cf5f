//! `millrace ctl --grpc`: a device that runs, asked over gRPC with the contents of files.

use crate::common::{Folder, Said, millrace, root};
use crate::live::Live;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

#[test]
fn options_that_do_not_fit_end_with_2() {
    let folder = Folder::new("ctl-grpc-usage");
    let file = folder.file("file.pem", "nothing");
    for (args, says) in [
        (&["--grpc", "9559", "--socket", "s"][..], "--socket"),
        (&["--grpc", "9559", "--device", "edge"], "--device"),
        (&["--grpc-ca", &file], "--grpc-ca needs --grpc"),
        (&["--grpc", "9559", "--grpc-name", "edge"], "--grpc-name needs --grpc-ca"),
        (&["--grpc", "9559", "--grpc-ca", &file, "--grpc-cert", &file], "--grpc-cert needs --grpc-key"),
        (&["--grpc", "9559", "--grpc-ca", &file, "--grpc-key", &file], "--grpc-key needs --grpc-cert"),
        (&["--grpc", "192.0.2.1:9559"], "over TLS only"),
        (&["--grpc", "a b"], "address"),
    ] {
        let said = millrace(&[&["ctl", "list"], args].concat());
        assert!(said.code == 2 && said.err.contains(says), "{args:?}: {} {}", said.code, said.err);
    }
    // What is no certificate, and an address where nobody is.
    let said = millrace(&["ctl", "list", "--grpc", "1", "--grpc-ca", &file]);
    assert_eq!(said.code, 1, "{}", said.err);
    let said = millrace(&["ctl", "list", "--grpc", "1", "--json"]);
    assert_eq!(said.code, 1, "{}", said.err);
}

/// A device without ports, which takes files.
struct Device {
    folder: Folder,
    address: String,
    live: Live,
}

impl Device {
    fn start() -> Device {
        let folder = Folder::new("ctl-grpc");
        folder.secret("boss.token", "token-of-the-operator");
        folder.secret("blue.token", "token-of-the-blue-tenant");
        folder.secret("wrong.token", "token-of-nobody-at-all");
        let file = folder.file(
            "edge.toml",
            "[device]\nname = \"edge\"\nsocket = \"ctl.sock\"\ngrpc = \"127.0.0.1:0\"\ngrpc-ctl = true\noperator-token-file = \"boss.token\"\n\
             uploads = \"uploads\"\n",
        );
        let mut live = Live::start(&["chassis", &file]);
        let address = live.hears("P4Runtime: ").unwrap();
        Device { folder, address, live }
    }

    fn ctl(&self, token: &str, args: &[&str]) -> Said {
        let token = self.folder.path(token);
        millrace(&[&["ctl"], args, &["--grpc", &self.address, "--token-file", &token]].concat())
    }

    fn done(&self, token: &str, args: &[&str]) -> String {
        let said = self.ctl(token, args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
        said.out
    }
}

#[test]
fn a_device_is_changed_with_the_contents_of_files() {
    let device = Device::start();
    let folder = &device.folder;
    std::fs::create_dir(folder.path("mine")).unwrap();
    for name in ["l2_switch.p4", "l2_switch.entries"] {
        std::fs::copy(root().join("programs").join(name), folder.path(&format!("mine/{name}"))).unwrap();
    }
    std::fs::copy(folder.path("blue.token"), folder.path("mine/blue.token")).unwrap();
    let text = "[[tenant]]\nname = \"blue\"\ntoken-file = \"blue.token\"\nroles = [\"read\", \"swap\", \"life-cycle\"]\n\
                [[switch]]\nname = \"l2\"\nprogram = \"l2_switch.p4\"\nentries = [\"l2_switch.entries\"]\ntenant = \"blue\"\n";
    let part = folder.file("mine/part.toml", text);
    let (boss, blue) = ("boss.token", "blue.token");
    assert_eq!(device.done(boss, &["list"]), "no switches\n");
    assert!(device.done(boss, &["load", &part]).contains("add switch l2"));
    assert_eq!(std::fs::read_dir(folder.path("uploads")).unwrap().count(), 3);
    let mode = std::fs::metadata(folder.path("uploads")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "names are hashes of tokens too");
    assert!(device.done(blue, &["list"]).contains("l2_switch"));
    assert!(device.done(blue, &["swap", "l2", "programs/l2_switch.p4"]).contains("running now"));
    let snapshot = folder.path("snapshot");
    device.done(blue, &["snapshot", "l2", "-o", &snapshot]);
    assert!(device.done(blue, &["restore", "l2", &snapshot]).contains("commands"));
    let refused = device.ctl(blue, &["remove", "l2", "--json"]);
    assert_eq!((refused.code, &refused.json()["kind"]), (1, &json!("forbidden")), "{}", refused.err);
    assert!(device.done(boss, &["graph", "--form", "dot"]).contains("edge"));
    assert!(device.done(boss, &["stats", "l2"]).contains("switch l2"));
    let shown =
        folder.file("shown.toml", &device.done(boss, &["show"]).replace("\"running\"", "\"stopped\""));
    assert_eq!(
        device.done(boss, &["apply", "--dry-run", &shown]).lines().next(),
        Some("would be done: stop switch l2")
    );
    device.done(boss, &["apply", &shown]);
    assert!(device.done(blue, &["list"]).contains("stopped"));
    // Mistakes have their lines; what cannot be read is told before the device is asked.
    let wrong = folder.file(
        "mine/wrong.toml",
        &text.replace("\"blue\"\nroles", "5\nroles").replace("name = \"l2\"", "name = 5"),
    );
    let said = device.ctl(boss, &["load", &wrong]);
    assert!(said.code == 1 && said.err.contains(":6:"), "{}", said.err);
    let absent = folder.file("absent.toml", text);
    let said = device.ctl(boss, &["load", &absent]);
    assert!(said.code == 1 && said.err.contains("l2_switch.p4"), "{}", said.err);
    let said = device.ctl("wrong.token", &["list", "--json"]);
    assert_eq!((said.code, &said.json()["kind"]), (1, &json!("unknown")), "{}", said.err);
    device.done(boss, &["remove", "l2"]);
    assert_eq!(
        std::fs::read_dir(folder.path("uploads")).unwrap().count(),
        1,
        "the token of the tenant stays"
    );
    drop(device.live);
}

#[test]
fn a_program_that_two_switches_compile_with_other_keys_is_refused() {
    let folder = Folder::new("ctl-grpc-twice");
    std::fs::copy(root().join("programs/l2_switch.p4"), folder.path("a.p4")).unwrap();
    let switch =
        |name: &str, keys: &str| format!("[[switch]]\nname = \"{name}\"\nprogram = \"a.p4\"\n{keys}");
    let token = folder.secret("token", "some-token-or-other");
    let ask = |text: String| {
        let file = folder.file("part.toml", &text);
        millrace(&["ctl", "load", &file, "--grpc", "1", "--token-file", &token])
    };
    let said = ask(switch("a", "") + &switch("b", "define = [\"__TARGET_BMV2__\"]\nstd = \"p4-16\"\n"));
    assert!(said.code == 1 && said.err.contains("no device is reached"), "the same image: {}", said.err);
    let said = ask(switch("a", "") + "[classify]\nprogram = \"a.p4\"\n");
    assert!(said.code == 1 && said.err.contains("needs a copy"), "{}", said.err);
}

#[test]
fn a_token_that_others_may_read_is_refused() {
    let folder = Folder::new("ctl-token-exposed");
    let token = folder.with_mode("token", "some-token-or-other", 0o604);
    let exposed = format!("{token}: others may read or change it (mode 0604), so it is no secret: chmod ");
    let said = millrace(&["ctl", "list", "--grpc", "1", "--token-file", &token]);
    assert!(said.code == 1 && said.err.contains(&exposed), "{}", said.err);
    let said = millrace(&["top", "--once", "--token-file", &token]);
    assert!(said.code == 1 && said.err.contains(&exposed), "{}", said.err);
    let text = "[[tenant]]\nname = \"t\"\ntoken-file = \"token\"\n";
    let part = folder.file("part.toml", text);
    let said = millrace(&["ctl", "load", &part, "--grpc", "1"]);
    assert!(said.code == 1 && said.err.contains(&exposed), "{}", said.err);
    let device = folder.file("device.toml", &format!("[device]\nname = \"d\"\n{text}"));
    let said = millrace(&["chassis", &device]);
    assert!(said.code == 1 && said.err.contains(&exposed), "{}", said.err);
}
