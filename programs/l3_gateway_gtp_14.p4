// SPDX-License-Identifier: Apache-2.0
//
// l3_gateway_gtp.p4 in P4_14: the same tables, actions and counters, so entries and tests serve both. Language: P4_14,
// for v1model.
//
// Each check is a table without a key, and `meta.discarded` tells that a packet is done with.

#define MAX_BEARERS 262144
#define MAX_ROUTES 65536
#define MAX_OWN_ADDRESSES 256
#define MAX_PORTS 512
#define CONTROLLER_SESSION 100
#define INGRESS_CLONE 1
#define RED 2
#define ETHERNET_BYTES 14
#define IPV4_BYTES 20
#define UDP_GTPU_BYTES 16
#define TUNNEL_BYTES 36
// 1500 on the way to base stations, less the tunnel
#define USER_MTU 1464
#define DEFAULT_TTL 64

// What the cells of the counter `drops` count.
#define TRUNCATED 0
#define BAD_CHECKSUM 1
#define NOT_IPV4 2
#define BAD_HEADER 3
#define BAD_LENGTH 4
#define FRAGMENT 5
#define TTL_EXPIRED 6
#define NOT_FOR_US 7
#define BAD_GTPU 8
#define UNKNOWN_TEID 9
#define SPOOFED 10
#define POLICED 11
#define TOO_BIG 12
#define NO_ROUTE 13
#define DROP_REASONS 14

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP 0x0806
#define PROTOCOL_UDP 17
#define GTPU_PORT 2152
#define G_PDU 255

header_type ethernet_t {
    fields {
        dst        : 48;
        src        : 48;
        ether_type : 16;
    }
}

// RFC 791
header_type ipv4_t {
    fields {
        version         : 4;
        ihl             : 4;
        tos             : 8;
        total_length    : 16;
        identification  : 16;
        reserved        : 1;
        dont_fragment   : 1;
        more_fragments  : 1;
        fragment_offset : 13;
        ttl             : 8;
        protocol        : 8;
        checksum        : 16;
        src             : 32;
        dst             : 32;
    }
}

// RFC 768
header_type udp_t {
    fields {
        src_port : 16;
        dst_port : 16;
        len      : 16;
        checksum : 16;
    }
}

// TS 29.281, 5.1; `len` counts what follows.
header_type gtpu_t {
    fields {
        version       : 3;
        protocol_type : 1;      // 1 is GTP, 0 is GTP'
        reserved      : 1;
        e             : 1;      // an extension header follows,
        s             : 1;      // the sequence number counts,
        pn            : 1;      // the N-PDU number counts
        message_type  : 8;
        len           : 16;
        teid          : 32;
    }
}

// There as a whole when any of E, S and PN is set.
header_type gtpu_options_t {
    fields {
        sequence       : 16;
        n_pdu          : 8;
        next_extension : 8;
    }
}

// `len` counts words of 4 bytes; all that this gateway reads past have one.
header_type gtpu_extension_t {
    fields {
        len            : 8;
        content        : 16;
        next_extension : 8;
    }
}

header_type metadata_t {
    fields {
        discarded         : 1;
        unknown_extension : 1;
        tunnelled         : 1;      // leaves through a tunnel
        colour            : 2;
        option_bytes      : 16;     // of GTP-U, with extensions
        udp_bytes         : 16;     // by the outer IPv4 header
        gtpu_bytes        : 16;     // by the outer UDP header
        room              : 32;     // bytes that the user's packet may have
        bearer            : 32;
        ue_address        : 32;
        destination       : 32;     // where the packet is routed to: a host, or a base station
    }
}

header ethernet_t ethernet;
header ipv4_t outer_ipv4;
header udp_t outer_udp;
header gtpu_t gtpu;
header gtpu_options_t gtpu_options;
header gtpu_extension_t gtpu_extension[3];
header ipv4_t ipv4;                 // the user's
metadata metadata_t meta;

parser start {
    extract(ethernet);
    return select(latest.ether_type) {
        ETHERTYPE_IPV4 : look_for_udp;
        default : ingress;
    }
}

// Tunnel or user's packet? The protocol and the port tell, before anything is extracted: version and header length
// (8 bits), fragment offset (13), protocol (8), compared as one number; here 0x45, 0 and 17.
parser look_for_udp {
    return select(current(0, 8), current(51, 13), current(72, 8)) {
        0x8a00011 : look_for_gtpu;
        default : parse_ipv4;
    }
}

parser look_for_gtpu {
    return select(current(176, 16)) {
        GTPU_PORT : parse_tunnel;
        default : parse_ipv4;
    }
}

parser parse_tunnel {
    extract(outer_ipv4);
    extract(outer_udp);
    extract(gtpu);
    return select(latest.message_type, latest.e, latest.s, latest.pn) {
        0x7f8 : parse_payload;                // G_PDU without options
        0x7f8 mask 0x7f8 : parse_options;
        default : ingress;
    }
}

// Without E the type of the next extension says nothing. 0x85 is the PDU session container; types below 0x80 need not
// be understood.
parser parse_options {
    extract(gtpu_options);
    set_metadata(meta.option_bytes, 4);
    return select(gtpu.e, latest.next_extension) {
        0x000 mask 0x100 : parse_payload;
        0x100 : parse_payload;
        0x185 : parse_extension_0;
        0x100 mask 0x180 : parse_extension_0;
        default : parse_unknown_extension;
    }
}

// One state for each, for a parser counts nothing in P4_14.
parser parse_extension_0 {
    extract(gtpu_extension[0]);
    set_metadata(meta.option_bytes, 8);
    return select(latest.len, latest.next_extension) {
        0x0100 : parse_payload;
        0x0185 : parse_extension_1;
        0x0100 mask 0xff80 : parse_extension_1;
        default : parse_unknown_extension;
    }
}

parser parse_extension_1 {
    extract(gtpu_extension[1]);
    set_metadata(meta.option_bytes, 12);
    return select(latest.len, latest.next_extension) {
        0x0100 : parse_payload;
        0x0185 : parse_extension_2;
        0x0100 mask 0xff80 : parse_extension_2;
        default : parse_unknown_extension;
    }
}

parser parse_extension_2 {
    extract(gtpu_extension[2]);
    set_metadata(meta.option_bytes, 16);
    return select(latest.len, latest.next_extension) {
        0x0100 : parse_payload;
        default : parse_unknown_extension;
    }
}

parser parse_unknown_extension {
    set_metadata(meta.unknown_extension, 1);
    return ingress;
}

parser parse_payload {
    return select(current(0, 4)) {
        4 : parse_ipv4;
        default : ingress;
    }
}

parser parse_ipv4 {
    extract(ipv4);
    return ingress;
}

parser_exception p4_pe_out_of_packet { return truncated_packet; }
parser_exception p4_pe_checksum { return wrong_checksum; }

field_list outer_ipv4_header {
    outer_ipv4.version;
    outer_ipv4.ihl;
    outer_ipv4.tos;
    outer_ipv4.total_length;
    outer_ipv4.identification;
    outer_ipv4.reserved;
    outer_ipv4.dont_fragment;
    outer_ipv4.more_fragments;
    outer_ipv4.fragment_offset;
    outer_ipv4.ttl;
    outer_ipv4.protocol;
    outer_ipv4.src;
    outer_ipv4.dst;
}
field_list_calculation outer_ipv4_sum {
    input { outer_ipv4_header; }
    algorithm : csum16;
    output_width : 16;
}
calculated_field outer_ipv4.checksum {
    verify outer_ipv4_sum;
    update outer_ipv4_sum;
}

field_list ipv4_header {
    ipv4.version;
    ipv4.ihl;
    ipv4.tos;
    ipv4.total_length;
    ipv4.identification;
    ipv4.reserved;
    ipv4.dont_fragment;
    ipv4.more_fragments;
    ipv4.fragment_offset;
    ipv4.ttl;
    ipv4.protocol;
    ipv4.src;
    ipv4.dst;
}
field_list_calculation ipv4_sum {
    input { ipv4_header; }
    algorithm : csum16;
    output_width : 16;
}
calculated_field ipv4.checksum {
    verify ipv4_sum if (ipv4.ihl == 5);
    update ipv4_sum if (ipv4.ihl == 5);
}

// ---- Drops ----

counter drops {
    type : packets;
    instance_count : DROP_REASONS;
}

action discard(reason) {
    count(drops, reason);
    drop();
    modify_field(meta.discarded, 1);
}

// The clone is the packet as it came.
action to_controller() {
    clone_ingress_pkt_to_egress(CONTROLLER_SESSION);
    drop();
    modify_field(meta.discarded, 1);
}

table truncated { actions { discard; } default_action : discard(TRUNCATED); }
table bad_checksum { actions { discard; } default_action : discard(BAD_CHECKSUM); }
table not_ipv4 { actions { discard; } default_action : discard(NOT_IPV4); }
table bad_header { actions { discard; } default_action : discard(BAD_HEADER); }
table bad_tunnel_length { actions { discard; } default_action : discard(BAD_LENGTH); }
table bad_length { actions { discard; } default_action : discard(BAD_LENGTH); }
table fragment { actions { discard; } default_action : discard(FRAGMENT); }
table ttl_expired { actions { discard; } default_action : discard(TTL_EXPIRED); }
table bad_gtpu { actions { discard; } default_action : discard(BAD_GTPU); }
table spoofed { actions { discard; } default_action : discard(SPOOFED); }
table uplink_policed { actions { discard; } default_action : discard(POLICED); }
table downlink_policed { actions { discard; } default_action : discard(POLICED); }
table too_big { actions { discard; } default_action : discard(TOO_BIG); }
table arp { actions { to_controller; } default_action : to_controller(); }
table signalling { actions { to_controller; } default_action : to_controller(); }

// ---- Tables ----

action permit() { no_op(); }

table own_addresses {
    reads { outer_ipv4.dst : exact; }
    actions { permit; discard; }
    default_action : discard(NOT_FOR_US);
    size : MAX_OWN_ADDRESSES;
}

action set_bearer(bearer, ue_address) {
    modify_field(meta.bearer, bearer);
    modify_field(meta.ue_address, ue_address);
    subtract(meta.room, gtpu.len, meta.option_bytes);
}

// The control plane answers with an error indication (TS 29.281, 7.3.1).
action unknown_teid() {
    count(drops, UNKNOWN_TEID);
    to_controller();
}

table uplink_tunnels {
    reads { gtpu.teid : exact; }
    actions { set_bearer; unknown_teid; }
    default_action : unknown_teid();
    size : MAX_BEARERS;
}

action measure_frame() {
    subtract(meta.room, standard_metadata.packet_length, ETHERNET_BYTES);
}
table frame { actions { measure_frame; } default_action : measure_frame(); }

action measure_tunnel() {
    subtract(meta.udp_bytes, outer_ipv4.total_length, IPV4_BYTES);
    subtract(meta.gtpu_bytes, outer_udp.len, UDP_GTPU_BYTES);
}
table tunnel { actions { measure_tunnel; } default_action : measure_tunnel(); }

action decapsulate() {
    remove_header(outer_ipv4);
    remove_header(outer_udp);
    remove_header(gtpu);
    remove_header(gtpu_options);
    remove_header(gtpu_extension[0]);
    remove_header(gtpu_extension[1]);
    remove_header(gtpu_extension[2]);
}
table decapsulation { actions { decapsulate; } default_action : decapsulate(); }

action one_hop_less() { subtract_from_field(ipv4.ttl, 1); }
table hop { actions { one_hop_less; } default_action : one_hop_less(); }

// What a new header does not mention is 0.
action set_tunnel(bearer, teid, local, peer) {
    modify_field(meta.bearer, bearer);
    modify_field(meta.tunnelled, 1);
    modify_field(meta.destination, peer);
    add_header(outer_ipv4);
    modify_field(outer_ipv4.version, 4);
    modify_field(outer_ipv4.ihl, 5);
    modify_field(outer_ipv4.tos, ipv4.tos);
    add(outer_ipv4.total_length, ipv4.total_length, TUNNEL_BYTES);
    modify_field(outer_ipv4.dont_fragment, 1);
    modify_field(outer_ipv4.ttl, DEFAULT_TTL);
    modify_field(outer_ipv4.protocol, PROTOCOL_UDP);
    modify_field(outer_ipv4.src, local);
    modify_field(outer_ipv4.dst, peer);
    add_header(outer_udp);
    modify_field(outer_udp.src_port, GTPU_PORT);
    modify_field(outer_udp.dst_port, GTPU_PORT);
    add(outer_udp.len, ipv4.total_length, UDP_GTPU_BYTES);
    add_header(gtpu);
    modify_field(gtpu.version, 1);
    modify_field(gtpu.protocol_type, 1);
    modify_field(gtpu.message_type, G_PDU);
    modify_field(gtpu.len, ipv4.total_length);
    modify_field(gtpu.teid, teid);
}

// A UE without a tunnel sleeps; the control plane wakes it.
action page() { to_controller(); }

// No UE's address: the packet goes where it says.
action set_destination() { modify_field(meta.destination, ipv4.dst); }

table downlink_tunnels {
    reads { ipv4.dst : exact; }
    actions { set_tunnel; page; set_destination; }
    default_action : set_destination();
    size : MAX_BEARERS;
}

action set_nhop(dmac, port) {
    modify_field(ethernet.dst, dmac);
    modify_field(standard_metadata.egress_spec, port);
}

table ipv4_lpm {
    reads { meta.destination : lpm; }
    actions { set_nhop; to_controller; discard; }
    default_action : discard(NO_ROUTE);
    size : MAX_ROUTES;
}

// ---- By bearer: what was forwarded, for charging, and what may be ----

counter uplink {
    type : packets_and_bytes;
    instance_count : MAX_BEARERS;
}
counter downlink {
    type : packets_and_bytes;
    instance_count : MAX_BEARERS;
}
meter uplink_rate {
    type : bytes;
    instance_count : MAX_BEARERS;
}
meter downlink_rate {
    type : bytes;
    instance_count : MAX_BEARERS;
}

action meter_uplink() { execute_meter(uplink_rate, meta.bearer, meta.colour); }
action meter_downlink() { execute_meter(downlink_rate, meta.bearer, meta.colour); }
action count_uplink() { count(uplink, meta.bearer); }
action count_downlink() { count(downlink, meta.bearer); }

table uplink_metering { actions { meter_uplink; } default_action : meter_uplink(); }
table downlink_metering { actions { meter_downlink; } default_action : meter_downlink(); }
table uplink_accounting { actions { count_uplink; } default_action : count_uplink(); }
table downlink_accounting { actions { count_downlink; } default_action : count_downlink(); }

// ---- Ingress ----

control truncated_packet { apply(truncated); }
control wrong_checksum { apply(bad_checksum); }

control ingress {
    apply(frame);
    if (valid(gtpu)) {
        terminate();
    } else if (ethernet.ether_type == ETHERTYPE_ARP) {
        apply(arp);
    }
    if (meta.discarded == 0) {
        check_ipv4();
    }
    if (meta.discarded == 0 and valid(gtpu)) {
        from_ue();
    }
    if (meta.discarded == 0) {
        forward();
    }
}

control terminate {
    apply(tunnel);
    if (outer_ipv4.total_length > meta.room
            or outer_udp.len != meta.udp_bytes
            or outer_udp.len < UDP_GTPU_BYTES
            or gtpu.len != meta.gtpu_bytes
            or gtpu.len < meta.option_bytes) {
        apply(bad_tunnel_length);
    } else if (outer_ipv4.more_fragments == 1) {
        apply(fragment);
    } else {
        apply(own_addresses);
        if (meta.discarded == 0) {
            if (gtpu.version != 1 or gtpu.protocol_type != 1) {
                apply(bad_gtpu);
            } else if (gtpu.message_type != G_PDU or meta.unknown_extension == 1) {
                // Echo requests and replies, error indications, end markers; and what asks for a notification.
                apply(signalling);
            } else {
                apply(uplink_tunnels);
            }
        }
    }
}

control check_ipv4 {
    if (not valid(ipv4)) {
        apply(not_ipv4);
    } else if (ipv4.version != 4 or ipv4.ihl != 5) {
        apply(bad_header);
    } else if (ipv4.total_length < IPV4_BYTES or ipv4.total_length > meta.room) {
        apply(bad_length);
    } else if (ipv4.ttl <= 1) {
        apply(ttl_expired);
    }
}

control from_ue {
    if (ipv4.src != meta.ue_address) {
        apply(spoofed);
    } else {
        apply(uplink_metering);
        if (meta.colour == RED) {
            apply(uplink_policed);
        } else {
            apply(uplink_accounting);
            apply(decapsulation);
        }
    }
}

// From here on a packet of a UE is as one from outside; it may go to another UE.
control forward {
    apply(hop);
    apply(downlink_tunnels);
    if (meta.tunnelled == 1 and ipv4.total_length > USER_MTU) {
        apply(too_big);
    } else if (meta.discarded == 0) {
        apply(ipv4_lpm);
    }
    if (meta.discarded == 0 and meta.tunnelled == 1) {
        apply(downlink_metering);
        if (meta.colour == RED) {
            apply(downlink_policed);
        } else {
            apply(downlink_accounting);
        }
    }
}

// ---- Egress ----

action drop_frame() { drop(); }
action rewrite_smac(smac) { modify_field(ethernet.src, smac); }

// A port without an address of its own must not speak with the sender's.
table send_frame {
    reads { standard_metadata.egress_port : exact; }
    actions { rewrite_smac; drop_frame; }
    default_action : drop_frame();
    size : MAX_PORTS;
}

control egress {
    if (standard_metadata.instance_type != INGRESS_CLONE) {
        apply(send_frame);
    }
}
