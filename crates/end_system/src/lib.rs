//! End systems of a network file: as a process on two interfaces, and as a port of a switch.
//!
//! A [`Plan`] takes an end system out of the file of a network. A [`Node`] adds applications that measure: each port sends messages with a
//! counter and a time, each message that comes is counted and timed. A [`Process`] runs a node in real time on interfaces of the machine;
//! an [`EndSystemPort`] is a node as a port of a switch, in real or in virtual time, and may be the switch's own, which answers whoever
//! manages it ([`Requests`]). A [`Gateway`] lets programs that know UDP alone talk to end systems.

mod gateway;
mod management;
mod node;
mod plan;
mod port;
mod process;
pub mod report;

pub use gateway::{Gateway, GatewayCounters, GatewaySpec, MAX_CLIENTS, MAX_GATEWAYS};
pub use management::{MAX_REQUESTS, ManagementCounters, ManagementCounts, Requests, SNMP_PORT, Service};
pub use node::{Node, Sent, Traffic};
pub use plan::{FIRST_UDP_PORT, Plan, PlanError, PlannedPort, Receiving};
pub use port::{EndSystemPort, MAX_VIRTUAL_SECONDS, PortArguments, PortTime};
pub use process::{LINGER, LineReport, Process, WallClock};
