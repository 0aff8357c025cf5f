//! One running switch: a program, its state, its ports, and what is between ingress and egress.
//!
//! ```text
//! rx batch -> ingress bodies -> traffic manager -> egress bodies -> tx
//!    ^            |  clone, resubmit, multicast,      |  clone, recirculate
//!    |            |  unicast, drop; queues            |
//!    +------------+-----------------------------------+
//! ```
//!
//! It has two forms. [`Switch::inject`] is the library form: bytes in, an [`Outcome`] out, with a simulated
//! clock deterministic to the byte and the nanosecond. [`Worker`] runs live ports over it.
//!
//! It promises:
//! - **What happens after ingress** is, in this order: a clone of the packet as it came in, then resubmission, else
//!   multicast, else drop, else unicast. After egress: a clone, then drop, else recirculation, else transmission.
//!   (P4_16 v1model as bmv2's simple_switch, and the Portable Switch Architecture with its drop folded into the others
//!   by the lowering of its programs.)
//! - **Every packet that does not leave has a [`DropReason`]**, counted.
//! - **Everything is bounded**: passes of a packet, copies of it, steps of all of them, copies of a batch, bytes of packets
//!   that wait, depth of queues; see [`SwitchConfig`].
//!
//! It never knows a port driver by name, nor an architecture.

mod arrival;
mod attached;
mod budget;
mod buffers;
mod burst;
mod clock;
mod copies;
mod counters;
mod drops;
mod ecn;
mod egress;
mod flight;
mod forwarder;
mod histogram;
mod ingress;
mod ledger;
mod links;
mod migration;
mod mode;
mod outcome;
mod profile;
mod queues;
mod quotas;
mod replication;
mod replicator;
mod requests;
mod switch;
mod timed;
mod trace;
mod tracer;
mod traffic;
mod turns;
mod worker;

pub use attached::{Attachment, DeviceMoment, HardwareConfig, device_groups, device_sessions};
pub use budget::{DEFAULT_PACKET_MEMORY, MAX_BATCH_COPIES, MIN_PACKET_MEMORY};
pub use burst::Output;
pub use clock::{Clock, ClockError, ClockSpec, Followed};
pub use counters::{Counters, PortCounters};
pub use drops::DropReason;
pub use histogram::{Histogram, RANGES};
pub use migration::{Keep, SwapError, SwapFailed, Swapped, swap_at_rest};
pub use mode::{Conduct, MODES, Mode};
pub use outcome::{Dropped, Outcome, Sent};
pub use queues::{
    DEFAULT_QUEUE_DEPTH, MAX_PRIORITIES, MAX_QUEUE_DEPTH, MAX_QUEUED, QueueConfig, QueueError, QueueReport,
};
pub use quotas::Quotas;
pub use replication::{
    Group, MAX_GROUP_COPIES, MAX_GROUPS, MAX_LAGS, MAX_NODES, MAX_SESSIONS, Node, NodeHandle, Replica,
    Replication, ReplicationError, Session,
};
pub use requests::{
    Answer, Answered, GroupWrite, MeterCell, Moment, NodeWrite, ObjectError, ObjectRequest, Pause,
    QueueSetting, QueueWrite, Reply, Request, RequestError, Written, answer,
};
pub use switch::{KnownPorts, MAX_COPIES, MAX_PORTS, Switch, SwitchConfig, SwitchError};
pub use timed::{MAX_AHEAD_NS, MAX_TIMED};
pub use trace::{
    BlockKind, Fate, Field, Journey, JourneyId, JourneyKind, KeyField, StageCycles, StartCycles, Step,
    StepCycles, Trace,
};
pub use worker::{
    BurstReport, Control, DEFAULT_QUANTUM, Doorbell, INTAKE_CLASSES, Intake, IntakeError, MAX_DRAIN_TIME,
    MAX_DRIVEN_NOTICES, MAX_NOTICES, MAX_QUANTUM, MAX_REQUESTS, MAX_SCHEDULED, MAX_WORKERS, MIN_QUANTUM,
    MoveError, Notice, POLL_TIME, Pending, PlannedPort, Polling, PortReport, PortsError, PostError, Progress,
    Report, ReportError, Ringer, RunError, ScheduleError, Spread, Summary, Supplies, Worker, WorkerReport,
    prepare_thread,
};

pub use millrace_engine::{Compiler, Described, EngineKind, Mark, Sampler, Samples, described, mark};
pub use millrace_midend::Cancel;
pub use millrace_pipeline::DropSite;
pub use millrace_state::{BuildError, Carried, DigestMessage, Digests, Held, LookupCounts, Migration, State};

/// The number of a port. Drivers have numbers up to 65535; architectures use larger ones for what is no cable.
pub type PortId = u32;
