//! The program of an interface: loaded once, shared by the sockets of all queues, gone when the last of them is.
//!
//! It is attached by a link of bpf(2), which the kernel takes away with the last descriptor, so also when the process is killed.
//! A kernel without such links (before 5.9) keeps the program until somebody takes it away: that is done at the end, and by
//! the next start after a crash, which knows the program by its name. A program of anybody else is left alone.

use super::bpf;
use super::netlink::{self, Refusal, XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE};
use std::fmt;
use std::io;
use std::os::fd::{OwnedFd, RawFd};

/// What all sockets of an interface need, until the last of them is closed.
#[derive(Debug)]
pub(super) struct Hold {
    _program: Program,
    /// The interface takes frames for the addresses that are wanted.
    _addresses: OwnedFd,
}

impl Hold {
    pub(super) fn new(program: Program, addresses: OwnedFd) -> Hold {
        Hold { _program: program, _addresses: addresses }
    }
}

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    /// In the driver of the interface.
    Native,
    /// In the kernel's own stack.
    Generic,
}

impl Hook {
    fn flags(self) -> u32 {
        match self {
            Hook::Native => XDP_FLAGS_DRV_MODE,
            Hook::Generic => XDP_FLAGS_SKB_MODE,
        }
    }
}

/// Why a program is not attached.
#[derive(Debug)]
pub(super) enum AttachError {
    /// Another program is there.
    Taken(String),
    /// The kernel or the driver of the interface does not do it.
    Refused(Refusal),
    /// The program cannot be loaded at all.
    Load(io::Error),
}

impl AttachError {
    /// Whether the caller may do such things at all.
    pub(super) fn is_permission(&self) -> bool {
        let kind = match self {
            AttachError::Taken(_) => return false,
            AttachError::Refused(refusal) => refusal.error.kind(),
            AttachError::Load(error) => error.kind(),
        };
        kind == io::ErrorKind::PermissionDenied
    }
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttachError::Taken(by) => f.write_str(by),
            AttachError::Refused(refusal) => refusal.fmt(f),
            AttachError::Load(error) => write!(f, "the kernel does not load the XDP program: {error}"),
        }
    }
}

/// An attached program with its map of sockets.
#[derive(Debug)]
pub(super) struct Program {
    map: OwnedFd,
    program: OwnedFd,
    /// The interface and the mode.
    place: (u32, Hook),
    /// None where the kernel has no links.
    link: Option<OwnedFd>,
}

impl Program {
    /// Attaches the program to an interface with queues of numbers below `queues`. No queue has a socket yet, so that all frames
    /// go on to the kernel.
    pub(super) fn attach(ifindex: u32, hook: Hook, queues: u32) -> Result<Program, AttachError> {
        make_way(ifindex)?;
        let map = bpf::socket_map(queues).map_err(AttachError::Load)?;
        let program = bpf::load_program(&map).map_err(AttachError::Load)?;
        let link = match bpf::link(&program, ifindex, hook.flags()) {
            Ok(link) => Some(link),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                return Err(AttachError::Taken("another XDP program was just attached to it".to_owned()));
            }
            // The kernel does not know links, or refuses without a reason.
            Err(_) => {
                netlink::attach(ifindex, &program, hook.flags()).map_err(AttachError::Refused)?;
                None
            }
        };
        Ok(Program { map, program, place: (ifindex, hook), link })
    }

    /// Frames of a queue go to this socket from now on, until that is closed.
    pub(super) fn put_socket(&self, queue: u32, socket: RawFd) -> io::Result<()> {
        bpf::put_socket(&self.map, queue, socket)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.link.is_none() {
            let (ifindex, hook) = self.place;
            // An interface that is gone has none any more.
            let _ = netlink::detach(ifindex, &self.program, hook.flags());
        }
    }
}

/// Takes programs of this driver away that outlived their process. Refuses where others are.
fn make_way(ifindex: u32) -> Result<(), AttachError> {
    for (id, mode) in netlink::attached(ifindex).map_err(AttachError::Refused)? {
        let found = bpf::program_by_id(id).and_then(|program| Ok((bpf::program_name(&program)?, program)));
        let (name, program) = match found {
            Ok(found) => found,
            // It has just ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            // Only root may look at programs.
            Err(_) => return Err(AttachError::Taken(format!("it has an XDP program already (number {id})"))),
        };
        if name.as_bytes() != bpf::NAME.to_bytes() {
            let by = format!("it has the XDP program `{}` already (number {id})", name.escape_debug());
            return Err(AttachError::Taken(by));
        }
        match netlink::detach(ifindex, &program, mode) {
            Ok(()) => {}
            // It hangs on a link, which a process has open.
            Err(refusal) if refusal.error.raw_os_error() == Some(libc::EBUSY) => {
                return Err(AttachError::Taken("another switch that runs has it already".to_owned()));
            }
            Err(refusal) => return Err(AttachError::Refused(refusal)),
        }
    }
    Ok(())
}
