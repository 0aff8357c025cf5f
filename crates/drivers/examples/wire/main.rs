//! What the table of drivers is measured with (`tests/drivers/table`): a source of frames, a sink that measures how long they took,
//! and two forwarders to compare a switch with. As root, in the namespace of the interfaces:
//!
//! ```text
//! wire send INTERFACE BYTES [--rate FRAMES-A-SECOND]     until it is ended; says how many frames it made
//! wire delays INTERFACE SECONDS                          of the frames of `send` that arrive there, as JSON
//! wire rings FROM TO                                     packet sockets with mapped rings, and nothing between them
//! wire redirect FROM TO                                  an XDP program that sends each frame on by another interface
//! ```
//!
//! It ends when its standard input does, or when it is killed; what it attached goes with it.

mod bpf;
mod delays;
mod redirect;
mod rings;
mod send;

use std::ffi::CString;
use std::io::{self, Read};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// The standard input has ended.
static OVER: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    std::thread::spawn(|| {
        // What comes there means nothing; that it ends does.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        OVER.store(true, Ordering::Relaxed);
    });
    let done = match words[..] {
        ["send", interface, bytes] => number(bytes).and_then(|bytes| send::run(interface, bytes, None)),
        ["send", interface, bytes, "--rate", rate] => {
            number(bytes).and_then(|bytes| send::run(interface, bytes, Some(number(rate)? as u64)))
        }
        ["delays", interface, seconds] => number(seconds).and_then(|seconds| delays::run(interface, seconds)),
        ["rings", from, to] => rings::run(from, to),
        ["redirect", from, to] => redirect::run(from, to),
        _ => Err(io::Error::other("send, delays, rings or redirect, with their interfaces: see the source")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wire {}: {error}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn number(text: &str) -> io::Result<usize> {
    text.parse().map_err(|_| io::Error::other(format!("`{text}` is not a number")))
}

/// Whether it is to end.
fn is_over() -> bool {
    OVER.load(Ordering::Relaxed)
}

/// The number of an interface of this namespace.
#[allow(unsafe_code)]
fn index(interface: &str) -> io::Result<u32> {
    let name = CString::new(interface).map_err(io::Error::other)?;
    // SAFETY: the name ends with a zero and lives beyond the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}
