//! Files that a file names are looked for when that is asked for, and a link of the file system does not lead a tenant out.

use millrace_device_file::{DeviceFile, Kind};
use std::fs;
use std::path::PathBuf;

/// A folder of its own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("millrace-device-file-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("blue")).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("the folder goes");
    }
}

const TEXT: &str = r#"
[[tenant]]
name = "blue"
token-file = "blue.token"
folder = "blue"

[[switch]]
name = "a"
image = "blue/a.mimg"
entries = ["blue/a.txt"]
tenant = "blue"

[[switch]]
name = "b"
program = "b.p4"
include = ["include"]
"#;

#[test]
fn what_is_not_there_is_told_with_its_place() {
    let folder = Folder::new("missing");
    fs::create_dir(folder.0.join("blue/a.txt")).expect("a folder in place of a file");
    fs::write(folder.0.join("b.p4"), "").expect("a file");
    assert!(DeviceFile::parse("a.toml", TEXT).is_ok());
    let problems = DeviceFile::parse_with_files("a.toml", TEXT, &folder.0).expect_err("files are missing");
    assert!(problems.problems.iter().all(|problem| problem.kind == Kind::File));
    let lines: Vec<usize> = problems.problems.iter().map(|problem| problem.place.line).collect();
    assert_eq!(lines, [4, 9, 10, 16]);
    assert!(problems.to_string().contains("the file `blue/a.txt` cannot be used: it is no file"));
}

#[test]
fn a_link_leads_no_tenant_out_of_its_folder() {
    let folder = Folder::new("linked");
    for file in ["blue.token", "blue/a.mimg", "secret", "b.p4"] {
        fs::write(folder.0.join(file), "").expect("a file");
    }
    fs::create_dir(folder.0.join("include")).expect("a folder");
    std::os::unix::fs::symlink("a.mimg", folder.0.join("blue/a.txt")).expect("a link");
    assert!(DeviceFile::parse_with_files("a.toml", TEXT, &folder.0).is_ok());
    fs::remove_file(folder.0.join("blue/a.txt")).expect("the link goes");
    std::os::unix::fs::symlink("../secret", folder.0.join("blue/a.txt")).expect("a link");
    let problems = DeviceFile::parse_with_files("a.toml", TEXT, &folder.0).expect_err("a link leads out");
    assert_eq!(problems.problems.len(), 1);
    assert!(problems.problems[0].message.contains("outside of the folder of its tenant"));
}
