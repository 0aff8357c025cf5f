//! An AFDX end system (ARINC 664 part 7), without a clock: every function is told what time it is, in nanoseconds.
//!
//! AFDX is Ethernet on which each flow has a contract. A **virtual link** (VL) goes from one end system to others on fixed paths. Its
//! sender leaves a gap of at least **BAG** from the first bit of a frame to the first bit of the next, and makes no frame longer than
//! **Lmax**. So switches can police it, and its delay has a bound. Each end system sends every frame to two networks, A and B, and
//! the receiver takes the first valid one.
//!
//! ```text
//!   port -> frames -> sub-VL -> regulator -> multiplexer -> line A   line A -> integrity \
//!                                                        -> line B   line B -> integrity -> redundancy -> reassembly -> port
//! ```
//!
//! The transmitting side alone, which a simulation of a network uses with numbers in place of frames:
//!
//! ```
//! use millrace_afdx::{Bag, LineRate, Networks, Regulator, Scheduler};
//!
//! let mut es = Scheduler::with_lmax(LineRate::from_bps(100_000_000)?, [200]);
//! let vl = es.add(Regulator::new(Bag::from_ns(1_000_000)?, 1, 16)?, Networks::Both);
//! for frame in 1..=3 {
//!     es.offer(0, vl, 0, 200, frame).expect("16 frames may wait");
//! }
//! let mut left = Vec::new();
//! while let Some(now_ns) = es.next_ns() {
//!     es.step(now_ns, |network, leaves| left.push((leaves.start_ns, network.index(), leaves.frame.frame)));
//! }
//! // One frame each millisecond, to both networks.
//! assert_eq!(left, [(0, 0, 1), (0, 1, 1), (1_000_000, 0, 2), (1_000_000, 1, 2), (2_000_000, 0, 3), (2_000_000, 1, 3)]);
//! # Ok::<(), millrace_afdx::LimitError>(())
//! ```
//!
//! The text of the standard is not public. What is here rests on tutorials and papers; what these leave open is a setting, and
//! docs/afdx.md says which.

mod address;
mod config;
mod echo;
mod faults;
mod frame;
mod integrity;
mod limits;
mod line;
mod misbehaviour;
mod multiplexer;
mod ports;
mod reassembly;
mod receiver;
mod redundancy;
mod regulator;
mod scheduler;
mod sequence;
mod traffic;
mod transmitter;
mod verdict;

pub use address::{Addressing, EndSystemId, MAX_PARTITION, Mac, Partition, VlId};
pub use config::{
    ConfigError, EndSystem, EndSystemConfig, MAX_PORTS, MAX_QUEUE_BYTES, MAX_VLS, ReceiveVl, TransmitVl,
};
pub use echo::{EchoRequest, MAX_ECHOES};
pub use frame::{FCS_BYTES, MAX_MESSAGE, UDP_HEADER, UdpEnd, frames_of, unfragmented};
pub use integrity::{Integrity, IntegrityChecker, IntegrityCounters, IntegrityRule, MAX_WINDOW, Previous};
pub use limits::LimitError;
pub use line::{
    FRAME_LIMITS, JitterError, JitterLimits, LINE_OVERHEAD, LineRate, MAX_OUTPUT_JITTER_NS, RATE_LIMITS,
    TECHNOLOGY_JITTER_NS, check_output, output_jitter_ns,
};
pub use misbehaviour::{BABBLE_LIMITS_US, DEFAULT_BABBLE_US, FAULTS, Fault, MAX_MISBEHAVIOURS, Misbehaviour};
pub use multiplexer::{Departure, LineCounters, MAX_LINE_FRAMES, Multiplexer};
pub use ports::{
    MAX_PORT_BYTES, MAX_PORT_DEPTH, PortCounters, PortKind, ReceivePort, ReceivedMessage, Sample,
    TransmitPort,
};
pub use reassembly::{MAX_REASSEMBLIES, REASSEMBLY_GAPS};
pub use receiver::{ReceiveCounters, Receiver};
pub use redundancy::{
    MAX_SKEW_NS, NEWER_NUMBERS, Order, Redundancy, RedundancyCounters, RedundancyManager, RedundancyRule,
    max_skew_ns,
};
pub use regulator::{
    BAG_LIMITS_NS, Bag, DEFAULT_QUEUE_FRAMES, MAX_QUEUE_FRAMES, MAX_SUB_VLS, Refused, Regulator,
    RegulatorCounters,
};
pub use scheduler::{Network, Networks, Released, Scheduler};
pub use sequence::{RESET_NUMBER, SEQUENCE_CYCLE, next_number, steps_between};
pub use traffic::{METER_WINDOW, Meter, MeterCounts, PERIOD_LIMITS_NS, STAMP_BYTES, Source};
pub use transmitter::{SendCounters, SendError, Transmission, Transmitter};
pub use verdict::{Discard, DiscardCounters, Verdict};
