//! What a running switch tells of itself over HTTP: the [`Status`] of one moment, as JSON has it, and a [`Client`] that asks
//! for it and switches captures and the log.
//!
//! ```no_run
//! let client = millrace_observe_api::Client::new(([127, 0, 0, 1], 9560).into());
//! println!("{} runs", client.status().unwrap().program);
//! ```
//!
//! A device with many switches tells [`ChassisStatus`]; [`Client::of_switch`] asks for one of them.
//!
//! The server is in `millrace_observe`, the terminal view in `millrace_top`.
//!
//! It never links a switch: a client needs neither a data path nor a code generator.

mod chassis;
mod client;
mod management;
mod status;

pub use chassis::{ChassisStatus, OutsideStatus, PhysicalStatus};
pub use client::{Client, ClientError};
pub use management::{
    AfdxPortStatus, AfdxStatus, ConfigurationStatus, ModeStatus, OwnEndSystemStatus, VirtualLinkStatus,
};
pub use status::{
    CaptureStatus, DeviceDirection, DeviceStatus, Distribution, DropSiteStatus, FlowStatus, IntakeStatus,
    KindsStatus, LogStatus, PlanQueueStatus, PlanStatus, PluginStatus, PortStatus, Process, QueuePairStatus,
    QueueStatus, Status, StepStatus, TableStatus, WorkerStatus,
};
