//! Running the binary, and a folder for what it reads and writes.

use pcap_file::pcap::PcapReader;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What a run of the command said.
pub(crate) struct Said {
    /// The exit status.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl Said {
    /// The one JSON object on standard output.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }

    /// Standard error without the frames around source lines, as one line.
    pub(crate) fn err_line(&self) -> String {
        self.err.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The command, to be started in the root of the repository.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
    command.current_dir(root()).env("NO_COLOR", "1");
    command
}

/// Runs the command to its end.
pub(crate) fn millrace(args: &[&str]) -> Said {
    command().args(args).output().unwrap().into()
}

/// As [`millrace`], with a text on standard input.
pub(crate) fn millrace_with_input(args: &[&str], input: &str) -> Said {
    let mut command = command();
    let command = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // One that does not read it is no failure here.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap().into()
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder that goes when this does.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A new one; `name` is unique among the tests.
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("millrace-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file and gives its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// As [`Folder::file`], of a secret.
    pub(crate) fn secret(&self, name: &str, text: &str) -> String {
        self.with_mode(name, text, 0o600)
    }

    /// As [`Folder::file`], with these permissions.
    pub(crate) fn with_mode(&self, name: &str, text: &str, mode: u32) -> String {
        let path = self.file(name, text);
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The frames of a capture that a switch is still writing: none without a header, and the last may be half there.
pub(crate) fn frames_so_far(path: &str) -> Vec<Vec<u8>> {
    let Some(mut reader) = std::fs::File::open(path).ok().and_then(|file| PcapReader::new(file).ok()) else {
        return Vec::new();
    };
    std::iter::from_fn(|| Some(reader.next_packet()?.ok()?.data.into_owned())).collect()
}

/// The frames of a capture file.
pub(crate) fn frames(path: &str) -> Vec<Vec<u8>> {
    let mut reader = PcapReader::new(std::fs::File::open(path).unwrap()).unwrap();
    std::iter::from_fn(|| reader.next_packet().map(|packet| packet.unwrap().data.into_owned())).collect()
}
