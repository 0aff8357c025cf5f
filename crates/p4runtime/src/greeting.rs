//! What a client of HTTP/2 says first: among its settings, how much metadata it takes.
//!
//! The transport keeps this to itself, so it is read from the bytes as they come.

use crate::status::USUAL_METADATA;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Most metadata that is sent to a client that sets no limit, in bytes.
const MOST_METADATA: u32 = 1 << 20;
/// What a connection begins with (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The length of a frame's header (4.1).
const FRAME_HEADER: usize = 9;
/// The type of a SETTINGS frame (6.5).
const SETTINGS: u8 = 4;
/// SETTINGS_MAX_HEADER_LIST_SIZE (6.5.2).
const MAX_HEADER_LIST_SIZE: u16 = 6;
/// Most bytes of a first frame that is looked at: a setting has 6, and there are not ten.
const MAX_SETTINGS: usize = 600;

/// How much metadata the client of a connection takes: [`USUAL_METADATA`] until it has said more.
#[derive(Clone, Debug)]
pub(crate) struct Metadata(Arc<AtomicU32>);

impl Default for Metadata {
    fn default() -> Metadata {
        Metadata(Arc::new(AtomicU32::new(USUAL_METADATA)))
    }
}

impl Metadata {
    /// In bytes, as HTTP/2 counts them.
    pub(crate) fn bytes(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Reads the first settings of a connection.
#[derive(Debug)]
pub(crate) struct Greeting {
    metadata: Metadata,
    /// What has come until now; none when everything was read, or it is something else.
    begun: Option<Vec<u8>>,
}

impl Greeting {
    /// Notes there what the client takes.
    pub(crate) fn new(metadata: Metadata) -> Greeting {
        Greeting { metadata, begun: Some(Vec::new()) }
    }

    /// Whether the client has said it.
    pub(crate) fn is_done(&self) -> bool {
        self.begun.is_none()
    }

    /// Bytes have come.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let Some(begun) = &mut self.begun else { return };
        let most = PREFACE.len() + FRAME_HEADER + MAX_SETTINGS;
        begun.extend_from_slice(&bytes[..bytes.len().min(most - begun.len())]);
        match settings(begun) {
            Read::More if begun.len() < most => {}
            Read::Settings(limit) => {
                self.metadata.0.store(metadata(limit), Ordering::Relaxed);
                self.begun = None;
            }
            Read::More | Read::Other => self.begun = None,
        }
    }
}

/// What a connection begins with.
#[derive(Debug, PartialEq, Eq)]
enum Read {
    /// There is more to come.
    More,
    /// Something else than HTTP/2.
    Other,
    /// Settings, with the limit of metadata if there is one.
    Settings(Option<u32>),
}

fn settings(bytes: &[u8]) -> Read {
    let known = bytes.len().min(PREFACE.len());
    if bytes[..known] != PREFACE[..known] {
        return Read::Other;
    }
    let Some((header, rest)) = bytes[known..].split_first_chunk::<FRAME_HEADER>() else { return Read::More };
    let [a, b, c, kind, flags, ..] = *header;
    // An acknowledgement, flag 1, acknowledges nothing yet.
    if kind != SETTINGS || flags & 1 != 0 {
        return Read::Other;
    }
    let length = u32::from_be_bytes([0, a, b, c]) as usize;
    let Some(payload) = rest.get(..length) else { return Read::More };
    // Of a setting that is there twice, the last counts.
    let given = payload.chunks_exact(6).rev().find_map(|setting| {
        let (id, value) = setting.split_first_chunk::<2>()?;
        let value = value.first_chunk::<4>()?;
        (u16::from_be_bytes(*id) == MAX_HEADER_LIST_SIZE).then(|| u32::from_be_bytes(*value))
    });
    Read::Settings(given)
}

/// What is sent to a client with that limit. Clients built on gRPC's core announce 5/4 of the limit that they were given, at
/// least 16 KiB, and refuse at random what is above their own.
fn metadata(limit: Option<u32>) -> u32 {
    match limit {
        None => MOST_METADATA,
        // The default: 8 KiB, announced as twice as much.
        Some(limit) if limit <= 2 * USUAL_METADATA => limit.min(USUAL_METADATA),
        Some(limit) => (limit / 5 * 4).min(MOST_METADATA),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A preface with a first frame of these settings.
    fn greeting(settings: &[(u16, u32)]) -> Vec<u8> {
        let mut bytes = PREFACE.to_vec();
        bytes.extend([0, 0, settings.len() as u8 * 6, SETTINGS, 0, 0, 0, 0, 0]);
        for (id, value) in settings {
            bytes.extend(id.to_be_bytes());
            bytes.extend(value.to_be_bytes());
        }
        bytes
    }

    fn taken(bytes: &[u8], at_once: usize) -> u32 {
        let metadata = Metadata::default();
        let mut greeting = Greeting::new(metadata.clone());
        bytes.chunks(at_once).for_each(|part| greeting.take(part));
        metadata.bytes()
    }

    #[test]
    fn the_limit_is_that_of_the_first_settings() {
        for at_once in [1, 7, 1000] {
            // What gRPC's core, hyper and a client with a limit of 100 000 announce.
            assert_eq!(taken(&greeting(&[(2, 0), (3, 0), (6, 16384)]), at_once), 8192);
            assert_eq!(taken(&greeting(&[(6, 125_000), (4, 65535)]), at_once), 100_000);
            assert_eq!(taken(&greeting(&[(6, 8192)]), at_once), 8192);
            assert_eq!(taken(&greeting(&[(6, 1000)]), at_once), 1000);
            assert_eq!(taken(&greeting(&[(6, 1), (6, 200_000)]), at_once), 160_000);
            assert_eq!(taken(&greeting(&[(6, u32::MAX)]), at_once), MOST_METADATA);
            assert_eq!(taken(&greeting(&[(4, 65535)]), at_once), MOST_METADATA);
        }
    }

    #[test]
    fn anything_else_leaves_the_usual_limit() {
        let good = greeting(&[(6, 125_000)]);
        let mut other = good.clone();
        other[PREFACE.len() + 3] = 1;
        let mut acknowledged = good.clone();
        acknowledged[PREFACE.len() + 4] = 1;
        let mut long = good.clone();
        long[PREFACE.len()] = 0xff;
        long.extend([0; 100_000]);
        for bytes in
            [&b"GET / HTTP/1.1\r\n"[..], &[0x16, 3, 1], &other, &acknowledged, &long, &good[..38], &[]]
        {
            assert_eq!(taken(bytes, 13), USUAL_METADATA);
        }
    }
}
