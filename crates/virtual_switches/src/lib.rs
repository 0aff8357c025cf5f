//! A running device with many virtual switches: what its file says, done, and changed while packets pass.
//!
//! ```text
//!  DeviceFile --changes--> Device --> backplane: lanes that run the switches, routes, exits, links
//!                            |  \---> P4Runtime: a device for each switch; Thrift: a server for each that asks for it
//!                            |
//!   millrace ctl --socket----+  who may do what: the access list
//!        the same over gRPC--+
//!   metrics, captures --HTTP-+
//! ```
//!
//! There is one path for every change: the model of the device as it is ([`DeviceFile`](millrace_device_file::DeviceFile)), the model as it is
//! to be, and the smallest changes between them, done one after the other. Start, `apply`, `load`, `remove`, `stop` and `unlink` all take it.
//! Programs, entries and ports that a change needs are made before the first change is done, so most of what can be wrong changes nothing;
//! when a change fails that was begun, those before it stay, the answer says so, and the model is what runs.
//!
//! It promises that what runs stays when something is refused; that a client sees what it may see and no more; that whatever was changed is in
//! the log of changes. It never touches a packet, and it knows no P4.

#![forbid(unsafe_code)]

mod acts_as;
mod answers;
mod by_program;
mod claims;
mod clients;
mod conversation;
mod cpu;
mod device;
mod doing;
mod entered;
mod failure;
mod installed;
mod links;
mod physical;
mod places;
mod probation;
mod programs;
mod published;
mod remote;
mod room;
mod seen;
mod shadow;
mod snapshot;
mod socket;
mod uploads;

pub use clients::Client;
pub use device::{Device, Done};
pub use failure::Failure;
pub use physical::OpenPorts;
pub use places::{MAX_CONNECTIONS, MAX_CONNECTIONS_OF_TENANT, MAX_CONNECTIONS_OF_TENANTS};
pub use probation::MAX_PROBATION;
pub use room::{ALLOWANCE, MAX_UNDER_WAY, MAX_UNDER_WAY_OF_TENANT, MAX_UNDER_WAY_OF_TENANTS, ROOM_TIME};
pub use shadow::{MAX_DIFFERENCES, MAX_SHADOW_PACKETS};
pub use socket::ControlSocket;
pub use uploads::{MAX_UPLOAD_BYTES, MAX_UPLOADS};
