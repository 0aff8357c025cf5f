//! The traffic manager of a port: queues, buffer, and the tree of schedulers over them.
//!
//! A [`Plan`] says what a port is to do: its link, its buffer, and a tree whose leaves are queues and whose inner nodes order what is
//! below them. [`Plan::new`] refuses what cannot be. An [`Egress`] does it: packets are offered to it with class, flow number and
//! length ([`Egress::offer`]), and leave it in the order that the tree says ([`Egress::next`]).
//!
//! A packet is whatever the caller holds: nothing here looks into it. There is no clock, no lock and no thread; times are nanoseconds
//! that the caller gives, so what leaves depends on nothing but what was offered and when. No packet is lost: it leaves, or is given
//! back with the reason, and each is counted once.
//!
//! The parts: `plan`, `check` and `error` (what is to be), `layout` (the plan laid out flat), `tree` with `disciplines` (whose turn it
//! is), `admission` and `red` (what may wait), `store` (where it waits), `egress` and `replace` (all of it together). [`tokens`],
//! [`credit`], [`gates`], [`asynchronous`] and [`wheel`] are arithmetic of time, and know nothing of the rest.

mod admission;
pub mod asynchronous;
mod check;
pub mod credit;
mod disciplines;
mod egress;
mod error;
pub mod gates;
mod layout;
mod link;
mod passing;
mod plan;
mod red;
mod replace;
mod report;
pub mod setting;
mod store;
pub mod tokens;
mod tree;
pub mod wheel;
pub mod words;

pub use egress::Egress;
pub use error::PlanError;
pub use plan::{
    Among, Asynchronous, CLASSES, Curve, Flows, Gated, Handle, Kind, MAX_BYTES, MAX_DEPTH, MAX_FRAME,
    MAX_NODES, MAX_OVERHEAD, MAX_PACKETS, MAX_QUANTUM, MAX_QUEUES, MAX_STREAMS, MAX_WEIGHT, Node, Plan, Port,
    Queue, Red, Share,
};
pub use report::{Admitted, Arrival, Departed, Discard, Next, QueueReport, Refused};
