//! From one file to another: the smallest changes that take a running device there, in an order in which nothing refers to
//! what is not there.
//!
//! What only names the same again is no change: the order of things in a file, a default that is written out. Files that are
//! named are not looked at: an image that has another content under the same name is for `millrace ctl swap`.

mod difference;
mod made;
mod show;

pub use made::Missing;

use crate::model::*;
use serde::Serialize;

/// What takes a running device from one file to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Changes {
    /// The changes, to be done in this order.
    pub list: Vec<Change>,
    /// What stays.
    pub kept: Vec<Kept>,
}

/// One change of a running device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The device has to start again, for these keys of `[device]`. First, or last if it will have fewer workers.
    Restart {
        /// The keys whose values are others.
        keys: Vec<&'static str>,
        /// The device as it will be.
        device: Box<Device>,
    },
    /// Most links that a packet takes, of a device that goes on.
    SetHops(u16),
    /// A link goes.
    RemoveLink([End; 2]),
    /// A switch takes no packets any more.
    Stop(String),
    /// A virtual port is no longer connected to physical ports.
    DetachPort {
        /// The switch.
        switch: String,
        /// The number of the virtual port.
        number: u16,
    },
    /// A switch goes, with all that it has. It has no links.
    RemoveSwitch {
        /// Its name.
        name: String,
        /// The keys for which it is made again later; empty if it goes for good.
        made_again_for: Vec<&'static str>,
    },
    /// A physical port is closed. No virtual port is connected to it.
    RemovePort {
        /// Its name.
        name: String,
        /// The keys for which it is opened again later; empty if it goes for good.
        opened_again_for: Vec<&'static str>,
    },
    /// The rate of a physical port.
    SetPortRate {
        /// Its name.
        port: String,
        /// The rate, in bit/s.
        rate: Option<u64>,
    },
    /// The program that says which virtual port a frame belongs to.
    SetClassify(Option<Program>),
    /// Another tenant.
    AddTenant(Tenant),
    /// What a tenant may do, and who it is.
    SetTenant(Tenant),
    /// A tenant goes. No switch belongs to it.
    RemoveTenant(String),
    /// A physical port is opened.
    AddPort(Port),
    /// A program takes over from the one that runs, with what is the same of its state.
    SwapProgram {
        /// The switch.
        switch: String,
        /// The program.
        source: Source,
        /// What runs it.
        engine: Engine,
    },
    /// Other files of entries.
    SetEntries {
        /// The switch.
        switch: String,
        /// The files.
        entries: Vec<String>,
    },
    /// A switch belongs to another tenant, or to none.
    SetOwner {
        /// The switch.
        switch: String,
        /// The tenant.
        tenant: Option<String>,
    },
    /// A switch is pinned to another worker, or to none.
    SetWorker {
        /// The switch.
        switch: String,
        /// The worker.
        worker: Option<u16>,
    },
    /// The Thrift server of a switch.
    SetThrift {
        /// The switch.
        switch: String,
        /// Where it listens; none: it ends.
        address: Option<String>,
        /// Whom its clients act as.
        acts_as: Option<String>,
        /// Whether other machines may reach it.
        allow_remote: bool,
    },
    /// A virtual port is connected to physical ports.
    AttachPort {
        /// The switch.
        switch: String,
        /// The virtual port.
        port: VirtualPort,
    },
    /// Tag, broadcast and rates of a virtual port, whose claim stays.
    SetPort {
        /// The switch.
        switch: String,
        /// The virtual port.
        port: VirtualPort,
    },
    /// What a switch cannot exceed.
    SetQuota {
        /// The switch.
        switch: String,
        /// Its quota.
        quota: Box<Quota>,
    },
    /// Another switch, with its virtual ports.
    AddSwitch(Box<Switch>),
    /// Another link.
    AddLink(Link),
    /// Delay, rate, loss and waiting packets of a link.
    SetLink(Link),
    /// A switch takes packets.
    Start(String),
}

/// What stays when a device changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// A tenant.
    Tenant(String),
    /// A physical port, open.
    Port(String),
    /// A switch.
    Switch {
        /// Its name.
        name: String,
        /// Whether another program takes over, with what is the same of the state; else all of it stays.
        is_swapped: bool,
    },
    /// A link.
    Link([End; 2]),
}

/// The smallest changes that take a running device from one file to another.
pub fn changes(old: &DeviceFile, new: &DeviceFile) -> Changes {
    difference::between(old, new)
}
