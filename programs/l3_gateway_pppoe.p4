// SPDX-License-Identifier: Apache-2.0
//
// A broadband network gateway: routes between subscribers, who speak PPPoE (RFC 2516) in two VLAN tags of their own
// line (IEEE 802.1ad), and the IP core.
//
// The control plane does discovery and the PPP protocols (LCP, authentication, IPCP) and makes the entries: a session
// when discovery is over, the addresses that a subscriber may send from when IPCP has assigned them. A subscriber is
// a number; meters and counters of both directions are indexed by it. What the core sends is IPv4 in plain Ethernet.

#include <core.p4>
#include <v1model.p4>

typedef bit<48> mac_t;
typedef bit<32> address_t;
typedef bit<9>  port_t;
typedef bit<12> vlan_t;
typedef bit<32> subscriber_t;

const int     MAX_SUBSCRIBERS = 1 << 16;
const int     MAX_ROUTES = 1 << 20;
const int     MAX_PORTS = 1 << 9;           // as many as port_t counts
const bit<32> CONTROLLER_SESSION = 100;     // the clone session that leads to the control plane
const bit<32> INGRESS_CLONE = 1;            // of instance_type
const bit<2>  RED = 2;                      // of meters
const bit<32> ETHERNET_BYTES = 14;
const bit<32> PPPOE_OFFSET = 28;            // Ethernet, two tags, PPPoE: where the payload that PPPoE counts begins
const bit<16> PPP_BYTES = 2;
const bit<16> PPPOE_MTU = 1492;

// What the cells of the counter `drops` count.
enum bit<32> DropReason {
    TRUNCATED       = 0,    // shorter than its headers
    BAD_CHECKSUM    = 1,
    UNKNOWN_PORT    = 2,    // neither access nor core
    UNTAGGED        = 3,    // on an access port without two tags
    NOT_PPPOE       = 4,
    BAD_PPPOE       = 5,    // version, type, code or length
    UNKNOWN_SESSION = 6,
    NOT_IPV4        = 7,
    BAD_HEADER      = 8,    // another version, options
    BAD_LENGTH      = 9,
    TTL_EXPIRED     = 10,
    SPOOFED         = 11,   // not the subscriber's address
    NO_ROUTE        = 12,
    TOO_BIG         = 13,   // for PPPoE
    NO_LINE         = 14,   // the subscriber is not there
    POLICED         = 15    // more than was bought
}
const bit<32> DROP_REASONS = 16;

enum bit<16> EtherType {
    IPV4            = 0x0800,
    ARP             = 0x0806,
    C_TAG           = 0x8100,
    S_TAG           = 0x88a8,
    PPPOE_DISCOVERY = 0x8863,
    PPPOE_SESSION   = 0x8864
}

const bit<16> PPP_IPV4 = 0x0021;
const bit<16> PPP_CONTROL = 0x8000;         // from here on, protocols control the link (RFC 1661)

header ethernet_t {
    mac_t     dst;
    mac_t     src;
    EtherType ether_type;
}

header vlan_tag_t {
    bit<3>    pcp;
    bit<1>    dei;
    vlan_t    vid;
    EtherType ether_type;
}

// RFC 2516; `len` counts what follows.
header pppoe_t {
    bit<4>  version;
    bit<4>  pppoe_type;
    bit<8>  code;
    bit<16> session_id;
    bit<16> len;
}

header ppp_t {
    bit<16> protocol;
}

// RFC 791
header ipv4_t {
    bit<4>    version;
    bit<4>    ihl;
    bit<8>    tos;
    bit<16>   total_length;
    bit<16>   identification;
    bit<3>    flags;
    bit<13>   fragment_offset;
    bit<8>    ttl;
    bit<8>    protocol;
    bit<16>   checksum;
    address_t src;
    address_t dst;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_tag_t s_tag;       // the operator's: which access node
    vlan_tag_t c_tag;       // the customer's: which line of it
    pppoe_t    pppoe;
    ppp_t      ppp;
    ipv4_t     ipv4;
}

struct metadata_t {
    bool         from_access;
    bool         to_access;
    subscriber_t sender;    // if from_access
    subscriber_t receiver;  // if to_access
    bit<32>      room;      // bytes that the IPv4 packet may have
    bit<2>       colour;
}

parser BngParser(packet_in packet,
                 out headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            EtherType.S_TAG: s_tag;
            EtherType.IPV4: ipv4;
            default: accept;
        }
    }

    state s_tag {
        packet.extract(hdr.s_tag);
        transition select(hdr.s_tag.ether_type) {
            EtherType.C_TAG: c_tag;
            default: accept;
        }
    }

    state c_tag {
        packet.extract(hdr.c_tag);
        transition select(hdr.c_tag.ether_type) {
            EtherType.PPPOE_SESSION: pppoe;
            default: accept;
        }
    }

    state pppoe {
        packet.extract(hdr.pppoe);
        packet.extract(hdr.ppp);
        transition select(hdr.ppp.protocol) {
            PPP_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control BngVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control BngIngress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    counter(DROP_REASONS, CounterType.packets) drops;
    // By subscriber: what was forwarded, for accounting, and what may be.
    counter(MAX_SUBSCRIBERS, CounterType.packets_and_bytes) upstream;
    counter(MAX_SUBSCRIBERS, CounterType.packets_and_bytes) downstream;
    meter(MAX_SUBSCRIBERS, MeterType.bytes) upstream_rate;
    meter(MAX_SUBSCRIBERS, MeterType.bytes) downstream_rate;

    action discard(DropReason reason) {
        drops.count(reason);
        mark_to_drop(standard_metadata);
        exit;
    }

    // The clone is the frame as it came, with the tags that tell the line.
    action to_controller() {
        clone(CloneType.I2E, CONTROLLER_SESSION);
        mark_to_drop(standard_metadata);
        exit;
    }

    action set_access() {
        meta.from_access = true;
    }

    action set_core() {
        meta.from_access = false;
    }

    table port_role {
        key = { standard_metadata.ingress_port: exact; }
        actions = { set_access; set_core; discard; }
        default_action = discard(DropReason.UNKNOWN_PORT);
        size = MAX_PORTS;
    }

    action set_session(subscriber_t subscriber) {
        meta.sender = subscriber;
    }

    // All that discovery has fixed: a session is not to be had with another line or another host's number.
    table sessions {
        key = {
            standard_metadata.ingress_port: exact;
            hdr.s_tag.vid:                  exact;
            hdr.c_tag.vid:                  exact;
            hdr.pppoe.session_id:           exact;
            hdr.ethernet.src:               exact;
        }
        actions = { set_session; discard; }
        default_action = discard(DropReason.UNKNOWN_SESSION);
        size = MAX_SUBSCRIBERS;
    }

    action permit() {}

    // The address of a subscriber, and the networks behind.
    table subscriber_sources {
        key = {
            meta.sender:  exact;
            hdr.ipv4.src: lpm;
        }
        actions = { permit; discard; }
        default_action = discard(DropReason.SPOOFED);
        size = MAX_SUBSCRIBERS * 2;
    }

    action to_core(mac_t dmac, port_t port) {
        hdr.ethernet.dst = dmac;
        standard_metadata.egress_spec = port;
    }

    action to_subscriber(subscriber_t subscriber) {
        meta.to_access = true;
        meta.receiver = subscriber;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm; }
        actions = { to_core; to_subscriber; discard; }
        default_action = discard(DropReason.NO_ROUTE);
        size = MAX_ROUTES;
    }

    action encapsulate(port_t port, mac_t dmac, vlan_t s_vid, vlan_t c_vid, bit<16> session_id) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.dst = dmac;
        hdr.ethernet.ether_type = EtherType.S_TAG;
        // Access nodes know nothing of IP: the three bits of precedence become the priority of both tags.
        hdr.s_tag.setValid();
        hdr.s_tag.pcp = hdr.ipv4.tos[7:5];
        hdr.s_tag.vid = s_vid;
        hdr.s_tag.ether_type = EtherType.C_TAG;
        hdr.s_tag.dei = 0;
        hdr.c_tag.setValid();
        hdr.c_tag.pcp = hdr.ipv4.tos[7:5];
        hdr.c_tag.vid = c_vid;
        hdr.c_tag.ether_type = EtherType.PPPOE_SESSION;
        hdr.c_tag.dei = 0;
        hdr.pppoe.setValid();
        hdr.pppoe.version = 1;
        hdr.pppoe.pppoe_type = 1;
        hdr.pppoe.code = 0;
        hdr.pppoe.session_id = session_id;
        hdr.pppoe.len = hdr.ipv4.total_length + PPP_BYTES;
        hdr.ppp.setValid();
        hdr.ppp.protocol = PPP_IPV4;
    }

    table subscriber_lines {
        key = { meta.receiver: exact; }
        actions = { encapsulate; discard; }
        default_action = discard(DropReason.NO_LINE);
        size = MAX_SUBSCRIBERS;
    }

    action decapsulate() {
        hdr.s_tag.setInvalid();
        hdr.c_tag.setInvalid();
        hdr.pppoe.setInvalid();
        hdr.ppp.setInvalid();
        hdr.ethernet.ether_type = EtherType.IPV4;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            discard(DropReason.TRUNCATED);
        }
        if (standard_metadata.checksum_error == 1) {
            discard(DropReason.BAD_CHECKSUM);
        }
        port_role.apply();
        if (meta.from_access) {
            if (!hdr.c_tag.isValid()) {
                discard(DropReason.UNTAGGED);
            }
            if (hdr.c_tag.ether_type == EtherType.PPPOE_DISCOVERY) {
                to_controller();
            }
            if (!hdr.pppoe.isValid()) {
                discard(DropReason.NOT_PPPOE);
            }
            if (hdr.pppoe.version != 1 || hdr.pppoe.pppoe_type != 1 || hdr.pppoe.code != 0
                    || hdr.pppoe.len < PPP_BYTES
                    || (bit<32>) hdr.pppoe.len > standard_metadata.packet_length - PPPOE_OFFSET) {
                discard(DropReason.BAD_PPPOE);
            }
            sessions.apply();
            if (hdr.ppp.protocol >= PPP_CONTROL) {
                to_controller();
            }
            meta.room = (bit<32>) (hdr.pppoe.len - PPP_BYTES);
        } else {
            if (hdr.ethernet.ether_type == EtherType.ARP) {
                to_controller();
            }
            if (hdr.s_tag.isValid()) {
                discard(DropReason.NOT_IPV4);       // tags are for access ports
            }
            meta.room = standard_metadata.packet_length - ETHERNET_BYTES;
        }

        if (!hdr.ipv4.isValid()) {
            discard(DropReason.NOT_IPV4);
        }
        if (hdr.ipv4.version != 4 || hdr.ipv4.ihl != 5) {
            discard(DropReason.BAD_HEADER);
        }
        if (hdr.ipv4.total_length < 20 || (bit<32>) hdr.ipv4.total_length > meta.room) {
            discard(DropReason.BAD_LENGTH);
        }
        if (hdr.ipv4.ttl <= 1) {
            discard(DropReason.TTL_EXPIRED);
        }

        if (meta.from_access) {
            subscriber_sources.apply();
            upstream_rate.execute_meter(meta.sender, meta.colour);
            if (meta.colour == RED) {
                discard(DropReason.POLICED);
            }
            upstream.count(meta.sender);
            decapsulate();
        }
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        ipv4_lpm.apply();
        if (meta.to_access) {
            if (hdr.ipv4.total_length > PPPOE_MTU) {
                discard(DropReason.TOO_BIG);
            }
            subscriber_lines.apply();
            downstream_rate.execute_meter(meta.receiver, meta.colour);
            if (meta.colour == RED) {
                discard(DropReason.POLICED);
            }
            downstream.count(meta.receiver);
        }
    }
}

control BngEgress(inout headers_t hdr,
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

control BngComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control BngDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.s_tag);
        packet.emit(hdr.c_tag);
        packet.emit(hdr.pppoe);
        packet.emit(hdr.ppp);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(BngParser(),
         BngVerifyChecksum(),
         BngIngress(),
         BngEgress(),
         BngComputeChecksum(),
         BngDeparser()) main;
