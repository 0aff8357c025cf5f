//! Plugins that a program calls: WebAssembly modules, run by wasmtime with bounded time and memory.
//!
//! A plugin gets numbers and the payload of a packet, and answers with numbers, a changed payload, a packet of its own, and
//! whether the packet is to be dropped. It sees nothing else: a module with imports is refused, so there is no way to the
//! system, to a clock or to another plugin. What host and module tell each other goes through one **area** in the memory of
//! the module ([`area`]), which costs a call no allocation and no copy that the module does not ask for.
//!
//! ```text
//!   control                     Registry                          workers
//!   load NAME, file  ------>    Plugin (settings, code)   <-----  Caller (one for each worker and program)
//!   off, list        ------>      |- seat: mailbox, counters -->    |- Instance: a store and a module of its own
//!                                 |- seat ...                       |- ...
//! ```
//!
//! It promises:
//! - **A call ends.** Each has [`Settings::fuel`], about one unit an instruction; what uses it up is stopped. Fuel is counted, not
//!   timed, so a run with the same packets ends the same.
//! - **Memory is bounded**: a module has at most [`MAX_MODULE`] bytes, an instance [`Settings::memory`], and a registry has
//!   [`MAX_PLUGINS`] plugins.
//! - **A failure is the plugin's own.** Who traps or exceeds the budget loses its instance and gets a fresh one; after
//!   [`Settings::failures`] of them the plugin is off. Packets then pass or drop as its [`Policy`] says.
//! - **Replacing waits for nobody.** Control compiles and makes the instances of all workers; a worker exchanges its own between
//!   two calls, which is one load of a counter that has not changed else.
//! - **What a plugin costs is counted for it** ([`Counts`]): calls, fuel, sampled time, failures, answers. Each worker counts in
//!   memory of its own.
//!
//! It knows neither P4 nor a data path: who calls says what words and which bytes.

pub mod area;
mod caller;
mod code;
mod counts;
mod instance;
mod registry;
mod settings;

pub use caller::{Called, Caller, Splice};
pub use code::LoadError;
pub use counts::Counts;
pub use registry::{Registry, Snapshot, State};
pub use settings::{Grants, Policy, Settings, SettingsError};

/// The most bytes of a module.
pub const MAX_MODULE: usize = 4 << 20;
/// The most plugins of a registry.
pub const MAX_PLUGINS: usize = 64;
/// The most bytes of a plugin's name.
pub const MAX_NAME: usize = 64;
/// The most numbers that a call takes, and the most that it gives.
pub const MAX_WORDS: usize = 32;
/// The most bytes of a packet that a plugin answers with, and of a payload that it has changed.
pub const MAX_BYTES: usize = 16 << 10;
/// The most memory of an instance, in bytes.
pub const MAX_MEMORY: usize = 256 << 20;
/// The most fuel of a call.
pub const MAX_FUEL: u64 = 1 << 32;
/// The most elements of a module's table of functions.
const MAX_TABLE: usize = 10_000;
/// The stack that a call may take, in bytes.
const MAX_STACK: usize = 256 << 10;
/// One in so many calls is timed.
const TIMED: u64 = 64;
