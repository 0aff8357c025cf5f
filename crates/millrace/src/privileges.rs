//! What a running switch may do in the system: after its start no more than it needs.
//!
//! A switch that is started by root reads programs, packets and requests that others made. So before it takes any of
//! them its threads keep two capabilities, which ports that are added later need (packet sockets, interfaces), and can gain
//! none (`no_new_privs`); with `--user` they are those of another user too. Files that the command line names are opened by a
//! thread that still may do everything ([`Opener`]), and which ends before the switch serves anybody.
//!
//! Capabilities, users and groups belong to a thread; threads that it starts get them. So [`Privileges::give_up`] is called
//! while there are no threads that go on.

use crate::findings::Failure;
use nix::unistd::{Group, User, getgrouplist};
use rustix::fs::{Access, AtFlags, CWD, accessat, chown};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::JoinHandle;
use tracing::info;

/// What ports need that are added later: packet sockets, and interfaces that are brought up.
const KEPT: CapabilitySet = CapabilitySet::NET_RAW.union(CapabilitySet::NET_ADMIN);
/// Capabilities have numbers below it.
const MAX_CAPABILITY: u32 = 64;

/// Who a switch is to be, and what it has to be able to do.
#[derive(Debug)]
pub(crate) struct Privileges {
    user: Option<Identity>,
    kept: CapabilitySet,
    /// Folders in which files are made later.
    folders: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
struct Identity {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

impl Privileges {
    /// Those that ports need; `user` is `USER[:GROUP]`, names or numbers.
    pub(crate) fn new(user: Option<&str>) -> Result<Privileges, Failure> {
        let user = user.map(identity).transpose()?;
        Ok(Privileges { user, kept: KEPT, folders: Vec::new() })
    }

    /// A server listens at this port, which may be one that not everybody may have.
    pub(crate) fn serves(&mut self, port: u16) {
        if (1..1024).contains(&port) {
            self.kept |= CapabilitySet::NET_BIND_SERVICE;
        }
    }

    /// Files are made in this folder while the switch runs.
    pub(crate) fn writes_in(&mut self, folder: &Path) {
        self.folders.push(folder.to_owned());
    }

    /// What was made for the switch, belongs to the user that it will be.
    pub(crate) fn give(&self, path: &Path) -> Result<(), Failure> {
        match &self.user {
            None => Ok(()),
            Some(user) => chown(path, Some(user.uid), Some(user.gid)).map_err(|error| {
                Failure::failed(format!("--user: cannot give {} away", path.display()), error)
            }),
        }
    }

    /// From now on this thread, and all threads that it starts, have no more than that.
    pub(crate) fn give_up(self) -> Result<(), Failure> {
        let failed =
            |what: &'static str| move |error| Failure::failed(format!("cannot give up {what}"), error);
        let had = capabilities(None).map_err(failed("capabilities"))?;
        let mut kept = had.permitted & self.kept;
        if self.user.is_none() && geteuid().is_root() && self.is_kept_out(had, kept) {
            kept |= had.permitted & CapabilitySet::DAC_OVERRIDE;
        }
        // Another user may not do that any more.
        if had.effective.contains(CapabilitySet::SETPCAP) {
            give_up_bounding(kept);
        }
        if let Some(user) = self.user.filter(|user| *user != Identity::now()) {
            become_user(&user)?;
        }
        // Where there are none, or the system does not know these sets, there is nothing to give up.
        let _ = clear_ambient_capability_set();
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
        set_capabilities(None, sets).map_err(failed("capabilities"))?;
        set_no_new_privs(true).map_err(failed("new privileges"))?;
        info!(uid = geteuid().as_raw(), capabilities = names(kept), "privileges");
        Ok(())
    }

    /// Whether root without its special rights could not write to a folder of somebody else.
    fn is_kept_out(&self, had: CapabilitySets, kept: CapabilitySet) -> bool {
        let tried = CapabilitySets { effective: kept, ..had };
        if self.folders.is_empty() || set_capabilities(None, tried).is_err() {
            return false;
        }
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        let is_open = |folder: &PathBuf| accessat(CWD, folder, wanted, AtFlags::EACCESS).is_ok();
        let is_kept_out = !self.folders.iter().all(is_open);
        // What is permitted can be had again.
        let _ = set_capabilities(None, had);
        is_kept_out
    }
}

impl PartialEq for Identity {
    /// Groups are set along with the others.
    fn eq(&self, other: &Identity) -> bool {
        (self.uid, self.gid) == (other.uid, other.gid)
    }
}

impl Identity {
    fn now() -> Identity {
        Identity { uid: geteuid(), gid: rustix::process::getegid(), groups: Vec::new() }
    }
}

/// Who `USER[:GROUP]` is.
fn identity(text: &str) -> Result<Identity, Failure> {
    let (user, group) = match text.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (text, None),
    };
    let unknown = |what: &str, name: &str| {
        Failure::Usage(format!("--user: this machine has no {what} `{}`", name.escape_debug()))
    };
    let failed = |error: nix::Error| Failure::failed("--user", error);
    let known = User::from_name(user).map_err(failed)?;
    let (uid, own_group, name) = match (known, user.parse::<u32>()) {
        (Some(known), _) => (known.uid.as_raw(), Some(known.gid), Some(known.name)),
        (None, Ok(uid)) => match User::from_uid(uid.into()).map_err(failed)? {
            Some(known) => (uid, Some(known.gid), Some(known.name)),
            None => (uid, None, None),
        },
        (None, Err(_)) => return Err(unknown("user", user)),
    };
    let gid = match group {
        Some(group) => match (Group::from_name(group).map_err(failed)?, group.parse::<u32>()) {
            (Some(known), _) => known.gid,
            (None, Ok(gid)) => gid.into(),
            (None, Err(_)) => return Err(unknown("group", group)),
        },
        None => own_group.ok_or_else(|| {
            Failure::Usage(format!(
                "--user: user {uid} has no group of its own: --user {uid}:GROUP names one"
            ))
        })?,
    };
    // A group that is named is the only one.
    let groups = match (group, name.and_then(|name| CString::new(name).ok())) {
        (None, Some(name)) => getgrouplist(&name, gid).map_err(failed)?,
        _ => vec![gid],
    };
    let raw = |gid: nix::unistd::Gid| Gid::from_raw(gid.as_raw());
    Ok(Identity { uid: Uid::from_raw(uid), gid: raw(gid), groups: groups.into_iter().map(raw).collect() })
}

/// Becomes another user, with the capabilities that are permitted.
fn become_user(user: &Identity) -> Result<(), Failure> {
    let failed = |error: rustix::io::Errno| {
        let hint = if error == rustix::io::Errno::PERM { ": only root can be another user" } else { "" };
        Failure::failed("--user", format_args!("{error}{hint}"))
    };
    set_keep_capabilities(true).map_err(failed)?;
    set_thread_groups(&user.groups).map_err(failed)?;
    set_thread_res_gid(user.gid, user.gid, user.gid).map_err(failed)?;
    set_thread_res_uid(user.uid, user.uid, user.uid).map_err(failed)
}

/// No program that is started later has others; none is started.
fn give_up_bounding(kept: CapabilitySet) {
    for number in 0..MAX_CAPABILITY {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if !kept.contains(one) && capability_is_in_bounding_set(one).unwrap_or(false) {
            let _ = remove_capability_from_bounding_set(one);
        }
    }
}

/// `net_raw,net_admin`, as capabilities(7) calls them.
fn names(set: CapabilitySet) -> String {
    let names: Vec<String> = set.iter_names().map(|(name, _)| name.to_lowercase()).collect();
    names.join(",")
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread with the rights that the process started with, which opens what the command line names. It ends with this.
#[derive(Debug)]
pub(crate) struct Opener {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Opener {
    /// To be started before anything is given up.
    pub(crate) fn start() -> Result<Opener, Failure> {
        let (jobs, list) = channel::<Job>();
        let work = move || list.into_iter().for_each(|job| job());
        let thread = std::thread::Builder::new().name("opener".into()).spawn(work);
        let thread = thread.map_err(|error| Failure::failed("cannot start a thread", error))?;
        Ok(Opener { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Has the thread do something, and waits for it.
    pub(crate) fn open<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let (answer, answered) = sync_channel(1);
        let job: Job = Box::new(move || {
            // Whoever asked waits.
            let _ = answer.send(work());
        });
        let ended = || Failure::Failed("the thread that opens files has ended".into());
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        jobs.send(job).map_err(|_| ended())?;
        answered.recv().map_err(|_| ended())
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_names_or_numbers() {
        let of = |text| identity(text).map(|found| (found.uid.as_raw(), found.gid.as_raw()));
        assert_eq!(of("root").unwrap(), (0, 0));
        assert_eq!(of("0").unwrap(), (0, 0));
        assert_eq!(of("root:4242").unwrap(), (0, 4242));
        assert_eq!(of("123456:4242").unwrap(), (123_456, 4242));
        assert_eq!(identity("123456:4242").unwrap().groups, [Gid::from_raw(4242)]);
        for (text, message) in [
            ("no-such-user", "no user `no-such-user`"),
            ("root:no-such-group", "no group `no-such-group`"),
            ("123456", "names one"),
            ("", "no user ``"),
        ] {
            let Failure::Usage(said) = of(text).unwrap_err() else { panic!("{text}") };
            assert!(said.contains(message), "{said}");
        }
    }

    #[test]
    fn what_is_kept_is_named() {
        assert_eq!(names(KEPT | CapabilitySet::NET_BIND_SERVICE), "net_bind_service,net_admin,net_raw");
        assert_eq!(names(CapabilitySet::empty()), "");
        let mut privileges = Privileges::new(None).unwrap();
        [0, 1024, 9559].into_iter().for_each(|port| privileges.serves(port));
        assert_eq!(privileges.kept, KEPT);
        privileges.serves(90);
        assert_eq!(privileges.kept, KEPT | CapabilitySet::NET_BIND_SERVICE);
    }
}
