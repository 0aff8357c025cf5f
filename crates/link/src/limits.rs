//! What a peer may cause at most.

use std::time::Duration;

/// The version of the protocol; peers of different versions do not talk.
pub const VERSION: u16 = 1;
/// Most words of one read, or of one write.
pub const MAX_WORDS: usize = 4096;
/// Longest frame or message, in bytes.
pub const MAX_FRAME: usize = 16_384;
/// Longest record: a batch of [`MAX_WORDS`] writes with their addresses, and its head.
pub const MAX_RECORD: usize = MAX_WORDS * 8 + 16;
/// Longest text in a record: the name of a device, or why something was refused.
pub const MAX_TEXT: usize = 512;
/// Most clients of a server at a time; another one is told so and let go.
pub const MAX_CLIENTS: usize = 16;
/// Most requests of one client that wait for the device; the client's connection is not read further until one is done.
pub const MAX_REQUESTS: usize = 64;
/// Most records that wait for one client to read them.
pub const MAX_WAITING: usize = 256;
/// How long a client that has connected may take to say who it is.
pub const HELLO_TIME: Duration = Duration::from_secs(5);
/// How long a record that has begun may take to be there, and to be taken by the peer.
pub const RECORD_TIME: Duration = Duration::from_secs(10);
/// How long a client waits for the answer to a request.
pub const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Between two looks at a device that has nothing to do.
pub const IDLE_TIME: Duration = Duration::from_millis(1);
