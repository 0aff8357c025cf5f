//! The contract between a program and the switch that runs it.
//!
//! An architecture's metadata (`standard_metadata_t`, `psa_ingress_output_metadata_t`, ...) is ordinary metadata of the
//! program; the code that `lower` puts before and after the program's blocks moves values between it and these slots.
//! So the switch, the JIT and the RTL know this list and no architecture.

use crate::*;

macro_rules! intrinsics {
    ($($(#[$doc:meta])* $variant:ident $field:ident : $ty:expr;)*) => {
        /// A role that a slot can have. The type of the slot is [`Intrinsic::ty`], its home is metadata.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Intrinsic { $($(#[$doc])* $variant,)* }

        impl Intrinsic {
            /// All roles.
            pub const ALL: &[Intrinsic] = &[$(Intrinsic::$variant,)*];

            /// The type of the slot with this role.
            pub fn ty(self) -> Type {
                match self { $(Intrinsic::$variant => $ty,)* }
            }

            /// The name in the text form.
            pub fn name(self) -> &'static str {
                match self { $(Intrinsic::$variant => stringify!($field),)* }
            }
        }

        /// Which slot has which role.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Intrinsics { $($(#[$doc])* pub $field: Option<SlotId>,)* }

        impl Intrinsics {
            /// The slot with this role.
            pub fn get(&self, role: Intrinsic) -> Option<SlotId> {
                match role { $(Intrinsic::$variant => self.$field,)* }
            }

            /// Gives a slot a role.
            pub fn set(&mut self, role: Intrinsic, slot: Option<SlotId>) {
                match role { $(Intrinsic::$variant => self.$field = slot,)* }
            }
        }
    };
}

intrinsics! {
    // Written by the switch before ingress.
    /// The port that the packet came in on.
    IngressPort ingress_port: Type::Bits(32);
    /// When it came in, in nanoseconds.
    IngressTimestamp ingress_timestamp: Type::Bits(64);
    /// The length of the packet in bytes, before ingress and again before egress.
    PacketLength packet_length: Type::Bits(32);
    /// How this copy came to be: a [`PacketPath`].
    PacketPath packet_path: Type::Bits(32);
    /// The error code of the parser; an index in [`Program::errors`]. Reset to 0 before each parser.
    ParserError parser_error: Type::Bits(16);

    // Written by the program in ingress, read by the switch after it. All are 0 or false before ingress.
    /// Drop the packet (clones and digests are still made).
    Drop drop: Type::Bool;
    /// The port to send to, when there is no multicast group.
    EgressSpec egress_spec: Type::Bits(32);
    /// Replicate to this multicast group; 0: none.
    MulticastGroup multicast_group: Type::Bits(32);
    /// Send a copy to each of these ports, when there is no multicast group: bit n is port n. 0: to
    /// [`Intrinsic::EgressSpec`].
    EgressPorts egress_ports: Type::Bits(64);
    /// The class of service; 0 is the lowest. Before egress the switch writes that of this copy.
    Priority priority: Type::Bits(8);
    /// Which queue of those of its class, where a port has several: the remainder by their number. 0: by a hash of its flow.
    Queue queue: Type::Bits(16);
    /// Wait before egress until then, in nanoseconds of the clock of the switch; 0, or a time that has passed: do not.
    SendTime send_time: Type::Bits(64);
    /// Start again at ingress with the packet as it came in.
    Resubmit resubmit: Type::Bool;
    /// The field list kept.
    ResubmitList resubmit_list: Type::Bits(32);

    // Written by the program in ingress or egress.
    /// Make a clone: of the packet as it came in (ingress) or as it now is (egress).
    Clone clone: Type::Bool;
    /// The clone session.
    CloneSession clone_session: Type::Bits(32);
    /// The field list kept; 0: none unless a list 0 exists.
    CloneList clone_list: Type::Bits(32);
    /// Send at most that many bytes; 0: all.
    Truncate truncate: Type::Bits(32);
    /// Where the program asked for a drop: a number in [`Program::drop_sites`]. It is read of packets that are dropped
    /// alone, and means nothing of others. 0 before ingress; egress finds what ingress left.
    DropSite drop_site: Type::Bits(16);

    // Written by the switch before egress.
    /// The port that this copy is for.
    EgressPort egress_port: Type::Bits(32);
    /// The replica number of multicast and clones.
    EgressRid egress_rid: Type::Bits(16);
    /// When the packet was enqueued, in nanoseconds.
    EnqueueTimestamp enqueue_timestamp: Type::Bits(64);
    /// The packets before it in the queue then.
    EnqueueDepth enqueue_depth: Type::Bits(32);
    /// The time in the queue, in nanoseconds.
    QueueDelay queue_delay: Type::Bits(64);
    /// The packets after it in the queue when it left.
    DequeueDepth dequeue_depth: Type::Bits(32);
    /// The queue of its port that it left, counted from that of the highest class.
    QueueId queue_id: Type::Bits(32);
    /// When egress starts, in nanoseconds.
    EgressTimestamp egress_timestamp: Type::Bits(64);

    // Written by the program in egress, read by the switch after it. `Drop` is false again before egress.
    /// Send the packet back to ingress after the deparser.
    Recirculate recirculate: Type::Bool;
    /// The field list kept.
    RecirculateList recirculate_list: Type::Bits(32);
}

/// How a copy of a packet came to be: the values of [`Intrinsic::PacketPath`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum PacketPath {
    /// From a port; in egress: unicast.
    #[default]
    Normal = 0,
    /// Cloned in ingress.
    IngressClone = 1,
    /// Cloned in egress.
    EgressClone = 2,
    /// Sent back by recirculation.
    Recirculate = 4,
    /// A replica of a multicast group.
    Replication = 5,
    /// Sent back by resubmission.
    Resubmit = 6,
}
