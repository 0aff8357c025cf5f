// SPDX-License-Identifier: Apache-2.0
//
// A packet gateway of a mobile network (user plane): routes between user equipment (UE), reached through GTP-U tunnels
// (3GPP TS 29.281) to base stations, and the packet data network.
//
// A tunnel is known by its endpoint identifier (TEID); a bearer is what a user has bought, a number that indexes meters
// and counters. The control plane (GTP-C) makes the entries and answers echo requests, unknown tunnels and extensions
// that nobody knows: such messages go there as they came. A UE may send from its own address only, and GTP-U that is
// not for this gateway is not carried, so that no user speaks GTP with the network.

#include <core.p4>
#include <v1model.p4>

typedef bit<48> mac_t;
typedef bit<32> address_t;
typedef bit<9>  port_t;
typedef bit<32> teid_t;
typedef bit<32> bearer_t;

const int     MAX_BEARERS = 1 << 18;
const int     MAX_ROUTES = 1 << 16;
const int     MAX_OWN_ADDRESSES = 1 << 8;
const int     MAX_PORTS = 1 << 9;           // as many as port_t counts
const bit<32> CONTROLLER_SESSION = 100;     // the clone session that leads to the control plane
const bit<32> INGRESS_CLONE = 1;            // of instance_type
const bit<2>  RED = 2;                      // of meters
const bit<32> ETHERNET_BYTES = 14;
const bit<16> IPV4_BYTES = 20;
const bit<16> UDP_BYTES = 8;
const bit<16> GTPU_BYTES = 8;
const bit<16> USER_MTU = 1464;              // 1500 on the way to base stations, less the tunnel
const bit<8>  DEFAULT_TTL = 64;

// What the cells of the counter `drops` count.
enum bit<32> DropReason {
    TRUNCATED    = 0,   // shorter than its headers
    BAD_CHECKSUM = 1,
    NOT_IPV4     = 2,
    BAD_HEADER   = 3,   // another version, options
    BAD_LENGTH   = 4,   // lengths that contradict each other
    FRAGMENT     = 5,   // of a tunnelled packet
    TTL_EXPIRED  = 6,
    NOT_FOR_US   = 7,   // GTP-U to somebody else
    BAD_GTPU     = 8,   // another version, or GTP'
    UNKNOWN_TEID = 9,   // the control plane is told
    SPOOFED      = 10,  // not the UE's address
    POLICED      = 11,  // more than was bought
    TOO_BIG      = 12,
    NO_ROUTE     = 13
}
const bit<32> DROP_REASONS = 14;

enum bit<16> EtherType {
    IPV4 = 0x0800,
    ARP  = 0x0806
}

const bit<8>  PROTOCOL_UDP = 17;
const bit<16> GTPU_PORT = 2152;
const bit<8>  G_PDU = 255;                  // the message that carries a user's packet
const bit<8>  PDU_SESSION_CONTAINER = 0x85;

header ethernet_t {
    mac_t     dst;
    mac_t     src;
    EtherType ether_type;
}

// RFC 791
header ipv4_t {
    bit<4>    version;
    bit<4>    ihl;
    bit<8>    tos;
    bit<16>   total_length;
    bit<16>   identification;
    bit<1>    reserved;
    bit<1>    dont_fragment;
    bit<1>    more_fragments;
    bit<13>   fragment_offset;
    bit<8>    ttl;
    bit<8>    protocol;
    bit<16>   checksum;
    address_t src;
    address_t dst;
}

// RFC 768
header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> len;
    bit<16> checksum;
}

// TS 29.281, 5.1; `len` counts what follows.
header gtpu_t {
    bit<3>  version;
    bit<1>  protocol_type;      // 1 is GTP, 0 is GTP'
    bit<1>  reserved;
    bit<1>  e;                  // an extension header follows,
    bit<1>  s;                  // the sequence number counts,
    bit<1>  pn;                 // the N-PDU number counts
    bit<8>  message_type;
    bit<16> len;
    teid_t  teid;
}

// There as a whole when any of E, S and PN is set.
header gtpu_options_t {
    bit<16> sequence;
    bit<8>  n_pdu;
    bit<8>  next_extension;
}

// `len` counts words of 4 bytes; all that this gateway reads past have one.
header gtpu_extension_t {
    bit<8>  len;
    bit<16> content;
    bit<8>  next_extension;
}

struct headers_t {
    ethernet_t          ethernet;
    ipv4_t              outer_ipv4;
    udp_t               outer_udp;
    gtpu_t              gtpu;
    gtpu_options_t      gtpu_options;
    gtpu_extension_t[3] gtpu_extension;
    ipv4_t              ipv4;               // the user's
}

struct metadata_t {
    bit<16>   option_bytes;                 // of GTP-U, with extensions
    bool      unknown_extension;
    bearer_t  bearer;
    address_t ue_address;
    bool      tunnelled;                    // leaves through a tunnel
    address_t destination;                  // where the packet is routed to: a host, or a base station
    bit<2>    colour;
}

parser GatewayParser(packet_in packet,
                     out headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    state start {
        meta.option_bytes = 0;
        meta.unknown_extension = false;
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            EtherType.IPV4: look_for_udp;
            default: accept;
        }
    }

    // Tunnel or user's packet? The protocol and the port tell, before anything is extracted.
    state look_for_udp {
        bit<80> head = packet.lookahead<bit<80>>();
        // version and header length, fragment offset, protocol
        transition select(head[79:72], head[28:16], head[7:0]) {
            (0x45, 0, PROTOCOL_UDP): look_for_gtpu;
            default: ipv4;
        }
    }

    state look_for_gtpu {
        bit<192> head = packet.lookahead<bit<192>>();
        transition select(head[15:0]) {
            GTPU_PORT: tunnel;
            default: ipv4;
        }
    }

    state tunnel {
        packet.extract(hdr.outer_ipv4);
        packet.extract(hdr.outer_udp);
        packet.extract(hdr.gtpu);
        transition select(hdr.gtpu.message_type, hdr.gtpu.e, hdr.gtpu.s, hdr.gtpu.pn) {
            (G_PDU, 0, 0, 0): payload;
            (G_PDU, _, _, _): options;
            default: accept;
        }
    }

    state options {
        packet.extract(hdr.gtpu_options);
        meta.option_bytes = 4;
        // Without E the type of the next extension says nothing.
        transition select(hdr.gtpu.e, hdr.gtpu_options.next_extension) {
            (0, _): payload;
            (1, 0): payload;
            (1, PDU_SESSION_CONTAINER): extension;
            (1, 0x00 &&& 0x80): extension;  // need not be understood
            default: unknown_extension;
        }
    }

    state extension {
        packet.extract(hdr.gtpu_extension.next);
        meta.option_bytes = meta.option_bytes + 4;
        transition select(hdr.gtpu_extension.last.len, hdr.gtpu_extension.last.next_extension) {
            (1, 0): payload;
            (1, PDU_SESSION_CONTAINER): extension;
            (1, 0x00 &&& 0x80): extension;
            default: unknown_extension;
        }
    }

    state unknown_extension {
        meta.unknown_extension = true;
        transition accept;
    }

    state payload {
        transition select(packet.lookahead<bit<4>>()) {
            4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control GatewayVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.outer_ipv4.isValid(),
            { hdr.outer_ipv4.version, hdr.outer_ipv4.ihl, hdr.outer_ipv4.tos, hdr.outer_ipv4.total_length,
              hdr.outer_ipv4.identification, hdr.outer_ipv4.reserved, hdr.outer_ipv4.dont_fragment,
              hdr.outer_ipv4.more_fragments, hdr.outer_ipv4.fragment_offset,
              hdr.outer_ipv4.ttl, hdr.outer_ipv4.protocol, hdr.outer_ipv4.src, hdr.outer_ipv4.dst },
            hdr.outer_ipv4.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment,
              hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control GatewayIngress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    counter(DROP_REASONS, CounterType.packets) drops;
    // By bearer: what was forwarded, for charging, and what may be.
    counter(MAX_BEARERS, CounterType.packets_and_bytes) uplink;
    counter(MAX_BEARERS, CounterType.packets_and_bytes) downlink;
    meter(MAX_BEARERS, MeterType.bytes) uplink_rate;
    meter(MAX_BEARERS, MeterType.bytes) downlink_rate;

    action discard(DropReason reason) {
        drops.count(reason);
        mark_to_drop(standard_metadata);
        exit;
    }

    // The clone is the packet as it came.
    action to_controller() {
        clone(CloneType.I2E, CONTROLLER_SESSION);
        mark_to_drop(standard_metadata);
        exit;
    }

    // The control plane answers with an error indication (TS 29.281, 7.3.1).
    action unknown_teid() {
        drops.count(DropReason.UNKNOWN_TEID);
        to_controller();
    }

    action permit() {}

    table own_addresses {
        key = { hdr.outer_ipv4.dst: exact; }
        actions = { permit; discard; }
        default_action = discard(DropReason.NOT_FOR_US);
        size = MAX_OWN_ADDRESSES;
    }

    action set_bearer(bearer_t bearer, address_t ue_address) {
        meta.bearer = bearer;
        meta.ue_address = ue_address;
    }

    table uplink_tunnels {
        key = { hdr.gtpu.teid: exact; }
        actions = { set_bearer; unknown_teid; }
        default_action = unknown_teid();
        size = MAX_BEARERS;
    }

    action decapsulate() {
        hdr.outer_ipv4.setInvalid();
        hdr.outer_udp.setInvalid();
        hdr.gtpu.setInvalid();
        hdr.gtpu_options.setInvalid();
        hdr.gtpu_extension[0].setInvalid();
        hdr.gtpu_extension[1].setInvalid();
        hdr.gtpu_extension[2].setInvalid();
    }

    action set_tunnel(bearer_t bearer, teid_t teid, address_t local, address_t peer) {
        meta.bearer = bearer;
        meta.tunnelled = true;
        meta.destination = peer;
        hdr.outer_ipv4.setValid();
        hdr.outer_ipv4.version = 4;
        hdr.outer_ipv4.ihl = 5;
        hdr.outer_ipv4.tos = hdr.ipv4.tos;
        hdr.outer_ipv4.total_length = hdr.ipv4.total_length + IPV4_BYTES + UDP_BYTES + GTPU_BYTES;
        hdr.outer_ipv4.identification = 0;      // never fragmented, so it needs none (RFC 6864)
        hdr.outer_ipv4.reserved = 0;
        hdr.outer_ipv4.dont_fragment = 1;
        hdr.outer_ipv4.more_fragments = 0;
        hdr.outer_ipv4.fragment_offset = 0;
        hdr.outer_ipv4.ttl = DEFAULT_TTL;
        hdr.outer_ipv4.protocol = PROTOCOL_UDP;
        hdr.outer_ipv4.src = local;
        hdr.outer_ipv4.dst = peer;
        hdr.outer_udp.setValid();
        hdr.outer_udp.src_port = GTPU_PORT;
        hdr.outer_udp.dst_port = GTPU_PORT;
        hdr.outer_udp.len = hdr.ipv4.total_length + UDP_BYTES + GTPU_BYTES;
        hdr.outer_udp.checksum = 0;
        hdr.gtpu.setValid();
        hdr.gtpu.version = 1;
        hdr.gtpu.protocol_type = 1;
        hdr.gtpu.reserved = 0;
        hdr.gtpu.e = 0;
        hdr.gtpu.s = 0;
        hdr.gtpu.pn = 0;
        hdr.gtpu.message_type = G_PDU;
        hdr.gtpu.len = hdr.ipv4.total_length;
        hdr.gtpu.teid = teid;
    }

    // A UE without a tunnel sleeps; the control plane wakes it.
    action page() {
        to_controller();
    }

    // No UE's address: the packet goes where it says.
    action set_destination() {
        meta.destination = hdr.ipv4.dst;
    }

    table downlink_tunnels {
        key = { hdr.ipv4.dst: exact; }
        actions = { set_tunnel; page; set_destination; }
        default_action = set_destination();
        size = MAX_BEARERS;
    }

    action set_nhop(mac_t dmac, port_t port) {
        hdr.ethernet.dst = dmac;
        standard_metadata.egress_spec = port;
    }

    table ipv4_lpm {
        key = { meta.destination: lpm; }
        actions = { set_nhop; to_controller; discard; }
        default_action = discard(DropReason.NO_ROUTE);
        size = MAX_ROUTES;
    }

    apply {
        if (standard_metadata.parser_error == error.StackOutOfBounds) {
            meta.unknown_extension = true;      // more than the stack holds
        } else if (standard_metadata.parser_error != error.NoError) {
            discard(DropReason.TRUNCATED);
        }
        if (standard_metadata.checksum_error == 1) {
            discard(DropReason.BAD_CHECKSUM);
        }

        bit<32> room = standard_metadata.packet_length - ETHERNET_BYTES;
        if (hdr.gtpu.isValid()) {
            if ((bit<32>) hdr.outer_ipv4.total_length > room
                    || hdr.outer_udp.len != hdr.outer_ipv4.total_length - IPV4_BYTES
                    || hdr.outer_udp.len < UDP_BYTES + GTPU_BYTES
                    || hdr.gtpu.len != hdr.outer_udp.len - (UDP_BYTES + GTPU_BYTES)
                    || hdr.gtpu.len < meta.option_bytes) {
                discard(DropReason.BAD_LENGTH);
            }
            if (hdr.outer_ipv4.more_fragments == 1) {
                discard(DropReason.FRAGMENT);
            }
            own_addresses.apply();
            if (hdr.gtpu.version != 1 || hdr.gtpu.protocol_type != 1) {
                discard(DropReason.BAD_GTPU);
            }
            // Echo requests and replies, error indications, end markers; and what asks for a notification.
            if (hdr.gtpu.message_type != G_PDU || meta.unknown_extension) {
                to_controller();
            }
            uplink_tunnels.apply();
            room = (bit<32>) (hdr.gtpu.len - meta.option_bytes);
        } else if (hdr.ethernet.ether_type == EtherType.ARP) {
            to_controller();
        }

        if (!hdr.ipv4.isValid()) {
            discard(DropReason.NOT_IPV4);
        }
        if (hdr.ipv4.version != 4 || hdr.ipv4.ihl != 5) {
            discard(DropReason.BAD_HEADER);
        }
        if (hdr.ipv4.total_length < IPV4_BYTES || (bit<32>) hdr.ipv4.total_length > room) {
            discard(DropReason.BAD_LENGTH);
        }
        if (hdr.ipv4.ttl <= 1) {
            discard(DropReason.TTL_EXPIRED);
        }

        if (hdr.gtpu.isValid()) {
            if (hdr.ipv4.src != meta.ue_address) {
                discard(DropReason.SPOOFED);
            }
            uplink_rate.execute_meter(meta.bearer, meta.colour);
            if (meta.colour == RED) {
                discard(DropReason.POLICED);
            }
            uplink.count(meta.bearer);
            decapsulate();
        }

        // From here on a packet of a UE is as one from outside; it may go to another UE.
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        downlink_tunnels.apply();
        if (meta.tunnelled && hdr.ipv4.total_length > USER_MTU) {
            discard(DropReason.TOO_BIG);
        }
        ipv4_lpm.apply();
        if (meta.tunnelled) {
            downlink_rate.execute_meter(meta.bearer, meta.colour);
            if (meta.colour == RED) {
                discard(DropReason.POLICED);
            }
            downlink.count(meta.bearer);
        }
    }
}

control GatewayEgress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    action drop_frame() {
        mark_to_drop(standard_metadata);
    }

    action rewrite_smac(mac_t smac) {
        hdr.ethernet.src = smac;
    }

    // A port without an address of its own must not speak with the sender's.
    table send_frame {
        key = { standard_metadata.egress_port: exact; }
        actions = { rewrite_smac; drop_frame; }
        default_action = drop_frame();
        size = MAX_PORTS;
    }

    apply {
        if (standard_metadata.instance_type != INGRESS_CLONE) {
            send_frame.apply();
        }
    }
}

control GatewayComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.outer_ipv4.isValid(),
            { hdr.outer_ipv4.version, hdr.outer_ipv4.ihl, hdr.outer_ipv4.tos, hdr.outer_ipv4.total_length,
              hdr.outer_ipv4.identification, hdr.outer_ipv4.reserved, hdr.outer_ipv4.dont_fragment,
              hdr.outer_ipv4.more_fragments, hdr.outer_ipv4.fragment_offset,
              hdr.outer_ipv4.ttl, hdr.outer_ipv4.protocol, hdr.outer_ipv4.src, hdr.outer_ipv4.dst },
            hdr.outer_ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment,
              hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control GatewayDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.outer_ipv4);
        packet.emit(hdr.outer_udp);
        packet.emit(hdr.gtpu);
        packet.emit(hdr.gtpu_options);
        packet.emit(hdr.gtpu_extension);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(GatewayParser(),
         GatewayVerifyChecksum(),
         GatewayIngress(),
         GatewayEgress(),
         GatewayComputeChecksum(),
         GatewayDeparser()) main;
