//! The socket by which large frames leave that were put together again ([`crate::offload::join`]): slots of a ring have no room for them.

use super::ring::{self, Refused};
use crate::offload::Joined;
use millrace_frames::Packet;
use std::fs::File;
use std::io::{self, Write};

/// A packet socket without rings, which receives nothing.
pub(super) struct WholeSocket(File);

/// What became of a large frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handed {
    Sent,
    /// There is no room now.
    NotNow,
    /// Such frames do not leave by this socket.
    Never,
}

impl WholeSocket {
    /// Opens the socket for the interface of a number.
    pub(super) fn open(index: i32) -> Result<WholeSocket, Refused> {
        ring::sender(index).map(|descriptor| WholeSocket(File::from(descriptor)))
    }

    /// Hands the large frame that these packets make to the kernel, which copies it.
    pub(super) fn send(&mut self, joined: &Joined, packets: &[Packet]) -> Handed {
        let (pieces, count) = joined.pieces(packets);
        match self.0.write_vectored(&pieces[..count]) {
            Ok(_) => Handed::Sent,
            Err(error) if is_passing(&error) => Handed::NotNow,
            Err(_) => Handed::Never,
        }
    }
}

/// Answers that concern a while: no memory, a full queue, a link that is down.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR | libc::ENETDOWN | libc::ENXIO)
    )
}
