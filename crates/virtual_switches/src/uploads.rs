//! Files of clients of other machines: they send the contents, and the device keeps them in a folder of its own, under names that say what
//! is in them. So the same contents are the same file, and no client says where a file of this machine is.
//!
//! An absolute path names a file of this machine. A client may send it only unchanged, in the key of the running device file that has it
//! already: so `show`, an edit and `apply` work.

use crate::failure::Failure;
use millrace_device_file::{DeviceFile, Port, Program, Source, Switch, Tenant};
use millrace_drivers::{Driver, InterfaceSpec};
use ring::digest::{SHA256, digest};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tracing::warn;

/// Most files that the folder holds.
pub const MAX_UPLOADS: usize = 16_384;
/// Most bytes of all of them.
pub const MAX_UPLOAD_BYTES: u64 = 1 << 30;

/// How names of files end.
const ENDS: [&str; 4] = [".mimg", ".p4", ".entries", ".token"];
/// What the name of a file begins with until it is whole.
const UNFINISHED: &str = "unfinished-";
/// Letters of a hash.
const HASH: usize = 64;

/// A file of a client of another machine, and what is to be in the folder for it.
pub(crate) struct Sent<'f> {
    pub(crate) file: DeviceFile,
    contents: BTreeMap<PathBuf, &'f str>,
}

/// A file whose paths are those of the folder or of the device as it runs.
pub(crate) fn settle<'f>(
    mut file: DeviceFile,
    now: &'f DeviceFile,
    files: &'f BTreeMap<String, String>,
) -> Result<Sent<'f>, Failure> {
    let folder = now.device.uploads.as_deref().map(Path::new);
    let mut settling = Settling { folder, files, used: BTreeSet::new(), contents: BTreeMap::new() };
    for tenant in &mut file.tenants {
        let was = now.tenants.iter().find(|was| was.name == tenant.name);
        settling.tenant(tenant, was)?;
    }
    for port in &file.ports {
        check_port(port, now)?;
    }
    for switch in &mut file.switches {
        let was = now.switch(&switch.name);
        settling.switch(switch, was)?;
    }
    if let Some(program) = &mut file.classify {
        let is_same = now.classify.as_ref() == Some(program);
        if let Some(path) = settling.path(&program.path, is_same, "[classify]", ".p4")? {
            if !program.include.is_empty() {
                let reason = "[classify]: `include` names folders of this machine, and only the text of the program is sent";
                return Err(Failure::Invalid(reason.into()));
            }
            program.path = path;
        }
    }
    if let Some(unused) = files.keys().find(|path| !settling.used.contains(path.as_str())) {
        return Err(Failure::Invalid(format!("the text does not name the file `{}`", unused.escape_debug())));
    }
    let contents = settling.contents;
    Ok(Sent { file, contents })
}

struct Settling<'f> {
    folder: Option<&'f Path>,
    files: &'f BTreeMap<String, String>,
    used: BTreeSet<&'f str>,
    contents: BTreeMap<PathBuf, &'f str>,
}

impl<'f> Settling<'f> {
    /// The path that a file which is sent has in the folder; none of a file of this machine, which may be named where it `is_same`.
    fn path(&mut self, path: &str, is_same: bool, of: &str, end: &str) -> Result<Option<String>, Failure> {
        let shown = path.escape_debug();
        if Path::new(path).is_absolute() {
            return match is_same {
                true => Ok(None),
                false => Err(Failure::Invalid(format!(
                    "{of}: `{shown}` is a file of the machine of the device, which is not named over gRPC unless it is there already"
                ))),
            };
        }
        let Some((sent, content)) = self.files.get_key_value(path) else {
            return Err(Failure::Invalid(format!("{of}: the contents of `{shown}` were not sent")));
        };
        let Some(folder) = self.folder else {
            let reason = "the device takes no files over gRPC: `uploads` in [device] names a folder for them";
            return Err(Failure::Invalid(format!("{of}: {reason}")));
        };
        self.used.insert(sent);
        let mut name = String::with_capacity(HASH + end.len());
        for byte in digest(&SHA256, content.as_bytes()).as_ref() {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        let kept = folder.join(name + end);
        let text = kept.to_string_lossy().into_owned();
        self.contents.insert(kept, content);
        Ok(Some(text))
    }

    fn tenant(&mut self, tenant: &mut Tenant, was: Option<&Tenant>) -> Result<(), Failure> {
        let of = format!("tenant {}", tenant.name);
        if tenant.folder.is_some() && tenant.folder.as_ref() != was.and_then(|was| was.folder.as_ref()) {
            let reason = "`folder` is one of the machine of the device, which is not named over gRPC";
            return Err(Failure::Invalid(format!("{of}: {reason}")));
        }
        let Some(path) = &mut tenant.token_file else { return Ok(()) };
        let is_same = was.and_then(|was| was.token_file.as_ref()).is_some_and(|was| was == path);
        if let Some(kept) = self.path(path, is_same, &of, ".token")? {
            *path = kept;
        }
        Ok(())
    }

    fn switch(&mut self, switch: &mut Switch, was: Option<&Switch>) -> Result<(), Failure> {
        let of = format!("switch {}", switch.name);
        let is_same = was.map(|was| &was.source) == Some(&switch.source);
        let (Source::Image(path) | Source::Program(Program { path, .. })) = &switch.source;
        // Of a program its image is sent: whoever sends it has compiled it.
        if let Some(kept) = self.path(path, is_same, &of, ".mimg")? {
            switch.source = Source::Image(kept);
        }
        for path in &mut switch.entries {
            let is_same = was.is_some_and(|was| was.entries.contains(path));
            if let Some(kept) = self.path(path, is_same, &of, ".entries")? {
                *path = kept;
            }
        }
        Ok(())
    }
}

/// Ports of some drivers are files.
fn check_port(port: &Port, now: &DeviceFile) -> Result<(), Failure> {
    if now.ports.iter().any(|was| was.name == port.name && was.device == port.device) {
        return Ok(());
    }
    let wrong = |reason: String| Failure::Invalid(format!("port {}: {reason}", port.name));
    let spec: InterfaceSpec = port.device.parse().map_err(|error| wrong(format!("{error}")))?;
    match spec.driver {
        Driver::Packet | Driver::Tap | Driver::Xdp => Ok(()),
        Driver::Dpdk | Driver::Es | Driver::Null | Driver::Pcap | Driver::Stream => Err(wrong(format!(
            "over gRPC a port is an interface (packet, tap, xdp): `{}` can name files of the machine of the device",
            spec.driver.name()
        ))),
    }
}

impl Sent<'_> {
    /// Has the folder hold the contents. Those that are there already stay; a file whose bytes are others was damaged, and is written again.
    pub(crate) fn keep(&self, now: &DeviceFile) -> Result<(), Failure> {
        let Some(folder) = now.device.uploads.as_deref().map(Path::new) else { return Ok(()) };
        if self.contents.is_empty() {
            return Ok(());
        }
        let failed = |error: io::Error| Failure::failed(format_args!("{}: {error}", folder.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let mut there = kept_files(folder).map_err(failed)?;
        there.retain(|path, length| {
            self.contents
                .get(path)
                .is_none_or(|content| content.len() as u64 == *length && holds(path, content))
        });
        let new = || self.contents.iter().filter(|(path, _)| !there.contains_key(*path));
        let count = there.len() + new().count();
        let bytes = there.values().sum::<u64>() + new().map(|(_, content)| content.len() as u64).sum::<u64>();
        if count > MAX_UPLOADS || bytes > MAX_UPLOAD_BYTES {
            return Err(Failure::Limit(format!(
                "files that were sent would be {count} with {bytes} bytes: at most {MAX_UPLOADS} (MAX_UPLOADS) with \
                 {MAX_UPLOAD_BYTES} (MAX_UPLOAD_BYTES)"
            )));
        }
        new().try_for_each(|(path, content)| write(folder, path, content)).map_err(failed)
    }
}

/// Whether a file that has as many bytes has these.
fn holds(path: &Path, content: &str) -> bool {
    fs::read(path).is_ok_and(|kept| kept == content.as_bytes())
}

fn write(folder: &Path, path: &Path, content: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default();
    let unfinished = folder.join(format!("{UNFINISHED}{}", name.to_string_lossy()));
    let _ = fs::remove_file(&unfinished);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    // The contents are on the disk before the name that says what they are.
    let written = file.write_all(content.as_bytes()).and_then(|()| file.sync_all());
    let written = written.and_then(|()| fs::rename(&unfinished, path));
    written.inspect_err(|_| drop(fs::remove_file(&unfinished)))
}

/// The files of the folder that this module has made, with their lengths.
fn kept_files(folder: &Path) -> io::Result<BTreeMap<PathBuf, u64>> {
    let mut kept = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_ours) {
            kept.insert(entry.path(), entry.metadata()?.len());
        }
    }
    Ok(kept)
}

fn is_ours(name: &str) -> bool {
    let name = name.strip_prefix(UNFINISHED).unwrap_or(name);
    let Some((hash, end)) = name.split_at_checked(HASH) else { return false };
    hash.bytes().all(|byte| byte.is_ascii_hexdigit()) && ENDS.contains(&end)
}

/// Removes files that the device does not name any more.
pub(crate) fn sweep(now: &DeviceFile) {
    let Some(folder) = now.device.uploads.as_deref().map(Path::new) else { return };
    let Ok(kept) = kept_files(folder) else { return };
    if kept.is_empty() {
        return;
    }
    let mut named: BTreeSet<&str> = BTreeSet::new();
    named.extend(now.tenants.iter().filter_map(|tenant| tenant.token_file.as_deref()));
    named.extend(now.classify.iter().map(|program| program.path.as_str()));
    for switch in &now.switches {
        let (Source::Image(path) | Source::Program(Program { path, .. })) = &switch.source;
        named.insert(path);
        named.extend(switch.entries.iter().map(String::as_str));
    }
    for path in kept.keys().filter(|path| path.to_str().is_none_or(|path| !named.contains(path))) {
        if let Err(error) = fs::remove_file(path) {
            warn!(path = %path.display(), %error, "a file that was sent is not removed");
        }
    }
}
