// SPDX-License-Identifier: Apache-2.0
//
// l3_gateway_pppoe.p4 in P4_14: the same tables, actions and counters, so entries and tests serve both. Language:
// P4_14, for v1model.
//
// Each check is a table without a key, and `meta.discarded` tells that a packet is done with.

#define MAX_SUBSCRIBERS 65536
#define MAX_SOURCES 131072
#define MAX_ROUTES 1048576
#define MAX_PORTS 512
#define CONTROLLER_SESSION 100
#define INGRESS_CLONE 1
#define RED 2
#define ETHERNET_BYTES 14
#define PPPOE_OFFSET 28
#define PPP_BYTES 2
#define PPPOE_MTU 1492

// What the cells of the counter `drops` count.
#define TRUNCATED 0
#define BAD_CHECKSUM 1
#define UNKNOWN_PORT 2
#define UNTAGGED 3
#define NOT_PPPOE 4
#define BAD_PPPOE 5
#define UNKNOWN_SESSION 6
#define NOT_IPV4 7
#define BAD_HEADER 8
#define BAD_LENGTH 9
#define TTL_EXPIRED 10
#define SPOOFED 11
#define NO_ROUTE 12
#define TOO_BIG 13
#define NO_LINE 14
#define POLICED 15
#define DROP_REASONS 16

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP 0x0806
#define ETHERTYPE_C_TAG 0x8100
#define ETHERTYPE_S_TAG 0x88a8
#define ETHERTYPE_PPPOE_DISCOVERY 0x8863
#define ETHERTYPE_PPPOE_SESSION 0x8864
#define PPP_IPV4 0x0021
// From here on, protocols control the link (RFC 1661).
#define PPP_CONTROL 0x8000

header_type ethernet_t {
    fields {
        dst        : 48;
        src        : 48;
        ether_type : 16;
    }
}

header_type vlan_tag_t {
    fields {
        pcp        : 3;
        dei        : 1;
        vid        : 12;
        ether_type : 16;
    }
}

// RFC 2516; `len` counts what follows.
header_type pppoe_t {
    fields {
        version    : 4;
        pppoe_type : 4;
        code       : 8;
        session_id : 16;
        len        : 16;
    }
}

header_type ppp_t {
    fields {
        protocol : 16;
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
        flags           : 3;
        fragment_offset : 13;
        ttl             : 8;
        protocol        : 8;
        checksum        : 16;
        src             : 32;
        dst             : 32;
    }
}

header_type metadata_t {
    fields {
        discarded   : 1;
        from_access : 1;
        to_access   : 1;
        colour      : 2;
        sender      : 32;   // if from_access
        receiver    : 32;   // if to_access
        room        : 32;   // bytes that the IPv4 packet may have
    }
}

header ethernet_t ethernet;
header vlan_tag_t s_tag;
header vlan_tag_t c_tag;
header pppoe_t pppoe;
header ppp_t ppp;
header ipv4_t ipv4;
metadata metadata_t meta;

parser start {
    extract(ethernet);
    return select(latest.ether_type) {
        ETHERTYPE_S_TAG : parse_s_tag;
        ETHERTYPE_IPV4 : parse_ipv4;
        default : ingress;
    }
}

parser parse_s_tag {
    extract(s_tag);
    return select(latest.ether_type) {
        ETHERTYPE_C_TAG : parse_c_tag;
        default : ingress;
    }
}

parser parse_c_tag {
    extract(c_tag);
    return select(latest.ether_type) {
        ETHERTYPE_PPPOE_SESSION : parse_pppoe;
        default : ingress;
    }
}

parser parse_pppoe {
    extract(pppoe);
    extract(ppp);
    return select(latest.protocol) {
        PPP_IPV4 : parse_ipv4;
        default : ingress;
    }
}

parser parse_ipv4 {
    extract(ipv4);
    return ingress;
}

parser_exception p4_pe_out_of_packet { return truncated_packet; }
parser_exception p4_pe_checksum { return wrong_checksum; }

field_list ipv4_header {
    ipv4.version;
    ipv4.ihl;
    ipv4.tos;
    ipv4.total_length;
    ipv4.identification;
    ipv4.flags;
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

// The clone is the frame as it came, with the tags that tell the line.
action to_controller() {
    clone_ingress_pkt_to_egress(CONTROLLER_SESSION);
    drop();
    modify_field(meta.discarded, 1);
}

table truncated { actions { discard; } default_action : discard(TRUNCATED); }
table bad_checksum { actions { discard; } default_action : discard(BAD_CHECKSUM); }
table untagged { actions { discard; } default_action : discard(UNTAGGED); }
table not_pppoe { actions { discard; } default_action : discard(NOT_PPPOE); }
table bad_pppoe { actions { discard; } default_action : discard(BAD_PPPOE); }
table not_ipv4 { actions { discard; } default_action : discard(NOT_IPV4); }
table bad_header { actions { discard; } default_action : discard(BAD_HEADER); }
table bad_length { actions { discard; } default_action : discard(BAD_LENGTH); }
table ttl_expired { actions { discard; } default_action : discard(TTL_EXPIRED); }
table too_big { actions { discard; } default_action : discard(TOO_BIG); }
table upstream_policed { actions { discard; } default_action : discard(POLICED); }
table downstream_policed { actions { discard; } default_action : discard(POLICED); }
table discovery { actions { to_controller; } default_action : to_controller(); }
table ppp_control { actions { to_controller; } default_action : to_controller(); }
table arp { actions { to_controller; } default_action : to_controller(); }

// ---- Tables ----

action set_access() { modify_field(meta.from_access, 1); }
action set_core() { modify_field(meta.from_access, 0); }

table port_role {
    reads { standard_metadata.ingress_port : exact; }
    actions { set_access; set_core; discard; }
    default_action : discard(UNKNOWN_PORT);
    size : MAX_PORTS;
}

action set_session(subscriber) {
    modify_field(meta.sender, subscriber);
    subtract(meta.room, pppoe.len, PPP_BYTES);
}

// All that discovery has fixed: a session is not to be had with another line or another host's number.
table sessions {
    reads {
        standard_metadata.ingress_port : exact;
        s_tag.vid : exact;
        c_tag.vid : exact;
        pppoe.session_id : exact;
        ethernet.src : exact;
    }
    actions { set_session; discard; }
    default_action : discard(UNKNOWN_SESSION);
    size : MAX_SUBSCRIBERS;
}

action measure_frame() { subtract(meta.room, standard_metadata.packet_length, ETHERNET_BYTES); }
table core_frame { actions { measure_frame; } default_action : measure_frame(); }

action permit() { no_op(); }

// The address of a subscriber, and the networks behind.
table subscriber_sources {
    reads {
        meta.sender : exact;
        ipv4.src : lpm;
    }
    actions { permit; discard; }
    default_action : discard(SPOOFED);
    size : MAX_SOURCES;
}

action to_core(dmac, port) {
    modify_field(ethernet.dst, dmac);
    modify_field(standard_metadata.egress_spec, port);
}

action to_subscriber(subscriber) {
    modify_field(meta.to_access, 1);
    modify_field(meta.receiver, subscriber);
}

table ipv4_lpm {
    reads { ipv4.dst : lpm; }
    actions { to_core; to_subscriber; discard; }
    default_action : discard(NO_ROUTE);
    size : MAX_ROUTES;
}

action encapsulate(port, dmac, s_vid, c_vid, session_id) {
    modify_field(standard_metadata.egress_spec, port);
    modify_field(ethernet.dst, dmac);
    modify_field(ethernet.ether_type, ETHERTYPE_S_TAG);
    // Access nodes know nothing of IP: the three bits of precedence become the priority of both tags.
    add_header(s_tag);
    shift_right(s_tag.pcp, ipv4.tos, 5);
    modify_field(s_tag.vid, s_vid);
    modify_field(s_tag.ether_type, ETHERTYPE_C_TAG);
    add_header(c_tag);
    shift_right(c_tag.pcp, ipv4.tos, 5);
    modify_field(c_tag.vid, c_vid);
    modify_field(c_tag.ether_type, ETHERTYPE_PPPOE_SESSION);
    add_header(pppoe);
    modify_field(pppoe.version, 1);
    modify_field(pppoe.pppoe_type, 1);
    modify_field(pppoe.session_id, session_id);
    add(pppoe.len, ipv4.total_length, PPP_BYTES);
    add_header(ppp);
    modify_field(ppp.protocol, PPP_IPV4);
}

table subscriber_lines {
    reads { meta.receiver : exact; }
    actions { encapsulate; discard; }
    default_action : discard(NO_LINE);
    size : MAX_SUBSCRIBERS;
}

action decapsulate() {
    remove_header(s_tag);
    remove_header(c_tag);
    remove_header(pppoe);
    remove_header(ppp);
    modify_field(ethernet.ether_type, ETHERTYPE_IPV4);
}
table decapsulation { actions { decapsulate; } default_action : decapsulate(); }

action one_hop_less() { subtract_from_field(ipv4.ttl, 1); }
table hop { actions { one_hop_less; } default_action : one_hop_less(); }

// ---- By subscriber: what was forwarded, for accounting, and what may be ----

counter upstream {
    type : packets_and_bytes;
    instance_count : MAX_SUBSCRIBERS;
}
counter downstream {
    type : packets_and_bytes;
    instance_count : MAX_SUBSCRIBERS;
}
meter upstream_rate {
    type : bytes;
    instance_count : MAX_SUBSCRIBERS;
}
meter downstream_rate {
    type : bytes;
    instance_count : MAX_SUBSCRIBERS;
}

action meter_upstream() { execute_meter(upstream_rate, meta.sender, meta.colour); }
action meter_downstream() { execute_meter(downstream_rate, meta.receiver, meta.colour); }
action count_upstream() { count(upstream, meta.sender); }
action count_downstream() { count(downstream, meta.receiver); }

table upstream_metering { actions { meter_upstream; } default_action : meter_upstream(); }
table downstream_metering { actions { meter_downstream; } default_action : meter_downstream(); }
table upstream_accounting { actions { count_upstream; } default_action : count_upstream(); }
table downstream_accounting { actions { count_downstream; } default_action : count_downstream(); }

// ---- Ingress ----

control truncated_packet { apply(truncated); }
control wrong_checksum { apply(bad_checksum); }

control ingress {
    apply(port_role);
    if (meta.discarded == 0) {
        if (meta.from_access == 1) {
            check_session();
        } else if (ethernet.ether_type == ETHERTYPE_ARP) {
            apply(arp);
        } else {
            apply(core_frame);
        }
    }
    if (meta.discarded == 0) {
        check_ipv4();
    }
    if (meta.discarded == 0 and meta.from_access == 1) {
        from_subscriber();
    }
    if (meta.discarded == 0) {
        apply(hop);
        apply(ipv4_lpm);
    }
    if (meta.discarded == 0 and meta.to_access == 1) {
        towards_subscriber();
    }
}

control check_session {
    if (not valid(c_tag)) {
        apply(untagged);
    } else if (c_tag.ether_type == ETHERTYPE_PPPOE_DISCOVERY) {
        apply(discovery);
    } else if (not valid(pppoe)) {
        apply(not_pppoe);
    } else if (pppoe.version != 1 or pppoe.pppoe_type != 1 or pppoe.code != 0
            or pppoe.len < PPP_BYTES
            or pppoe.len > standard_metadata.packet_length - PPPOE_OFFSET) {
        apply(bad_pppoe);
    } else {
        apply(sessions);
        if (meta.discarded == 0 and ppp.protocol >= PPP_CONTROL) {
            apply(ppp_control);
        }
    }
}

control check_ipv4 {
    // Tags are for access ports.
    if (not valid(ipv4) or (meta.from_access == 0 and valid(s_tag))) {
        apply(not_ipv4);
    } else if (ipv4.version != 4 or ipv4.ihl != 5) {
        apply(bad_header);
    } else if (ipv4.total_length < 20 or ipv4.total_length > meta.room) {
        apply(bad_length);
    } else if (ipv4.ttl <= 1) {
        apply(ttl_expired);
    }
}

control from_subscriber {
    apply(subscriber_sources);
    if (meta.discarded == 0) {
        apply(upstream_metering);
        if (meta.colour == RED) {
            apply(upstream_policed);
        } else {
            apply(upstream_accounting);
            apply(decapsulation);
        }
    }
}

control towards_subscriber {
    if (ipv4.total_length > PPPOE_MTU) {
        apply(too_big);
    } else {
        apply(subscriber_lines);
        if (meta.discarded == 0) {
            apply(downstream_metering);
            if (meta.colour == RED) {
                apply(downstream_policed);
            } else {
                apply(downstream_accounting);
            }
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
