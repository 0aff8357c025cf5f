// SPDX-License-Identifier: Apache-2.0
//
// nat.p4 in P4_14: the same tables, actions and counters, so entries and tests serve both. Language: P4_14, for
// v1model.
//
// P4_14 has no constants, no expressions in the place of a statement and no way to leave a control function, so
// reasons are macros, each check is a table without a key, and `meta.discarded` tells that a packet is done with.

#define MAX_BINDINGS 1048576
#define MAX_STATIC 65536
#define MAX_ROUTES 65536
#define MAX_PORTS 512
#define CONTROLLER_SESSION 100
#define INGRESS_CLONE 1
#define ETHERNET_BYTES 14

// What the cells of the counter `drops` count.
#define TRUNCATED 0
#define NOT_IPV4 1
#define BAD_HEADER 2
#define BAD_CHECKSUM 3
#define BAD_LENGTH 4
#define TTL_EXPIRED 5
#define FRAGMENT 6
#define UNSUPPORTED 7
#define UNKNOWN_PORT 8
#define UNSOLICITED 9
#define NO_ROUTE 10
#define DROP_REASONS 11

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP 0x0806
#define PROTOCOL_ICMP 1
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17

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

// RFC 9293; options count as payload.
header_type tcp_t {
    fields {
        src_port        : 16;
        dst_port        : 16;
        sequence        : 32;
        acknowledgement : 32;
        data_offset     : 4;
        reserved        : 4;
        flags           : 8;
        window          : 16;
        checksum        : 16;
        urgent          : 16;
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

// RFC 792: an echo request (8) or reply (0)
header_type icmp_t {
    fields {
        icmp_type  : 8;
        code       : 8;
        checksum   : 16;
        identifier : 16;
        sequence   : 16;
    }
}

header_type metadata_t {
    fields {
        src_id              : 16;   // port, or identifier of an echo request
        dst_id              : 16;   // port, or identifier of an echo reply
        from_inside         : 1;
        to_outside          : 1;
        destination_changed : 1;
        discarded           : 1;
        segment             : 16;   // bytes behind the IPv4 header
        address_delta       : 32;   // what the changes add to sums over the addresses,
        id_delta            : 32;   // and to sums over ports or identifiers
        delta               : 32;
        inverted            : 16;
        inverted_address    : 32;
        word                : 32;
        sum                 : 32;
    }
}

header ethernet_t ethernet;
header ipv4_t ipv4;
header tcp_t tcp;
header udp_t udp;
header icmp_t icmp;
metadata metadata_t meta;

parser start {
    extract(ethernet);
    return select(latest.ether_type) {
        ETHERTYPE_IPV4 : parse_ipv4;
        default : ingress;
    }
}

parser parse_ipv4 {
    extract(ipv4);
    return select(latest.ihl) {
        5 : parse_transport;
        default : ingress;
    }
}

// Only the first fragment has a transport header. The offset stands above the protocol: 0 adds nothing.
parser parse_transport {
    return select(ipv4.fragment_offset, ipv4.protocol) {
        PROTOCOL_TCP : parse_tcp;
        PROTOCOL_UDP : parse_udp;
        PROTOCOL_ICMP : parse_icmp;
        default : ingress;
    }
}

parser parse_tcp {
    extract(tcp);
    set_metadata(meta.src_id, latest.src_port);
    set_metadata(meta.dst_id, latest.dst_port);
    return ingress;
}

parser parse_udp {
    extract(udp);
    set_metadata(meta.src_id, latest.src_port);
    set_metadata(meta.dst_id, latest.dst_port);
    return ingress;
}

// The identifier belongs to who asks: the source of a request, the destination of a reply.
parser parse_icmp {
    extract(icmp);
    return select(latest.icmp_type) {
        8 : parse_echo_request;
        0 : parse_echo_reply;
        default : ingress;
    }
}

parser parse_echo_request {
    set_metadata(meta.src_id, icmp.identifier);
    return ingress;
}

parser parse_echo_reply {
    set_metadata(meta.dst_id, icmp.identifier);
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
// Verified, but corrected by ingress: a router need not compute what it can adjust.
calculated_field ipv4.checksum {
    verify ipv4_sum if (ipv4.ihl == 5);
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

// The clone is the packet as it came, whatever has been translated so far.
action to_controller() {
    clone_ingress_pkt_to_egress(CONTROLLER_SESSION);
    drop();
    modify_field(meta.discarded, 1);
}

table truncated { actions { discard; } default_action : discard(TRUNCATED); }
table not_ipv4 { actions { discard; } default_action : discard(NOT_IPV4); }
table bad_header { actions { discard; } default_action : discard(BAD_HEADER); }
table bad_checksum { actions { discard; } default_action : discard(BAD_CHECKSUM); }
table bad_length { actions { discard; } default_action : discard(BAD_LENGTH); }
table bad_segment { actions { discard; } default_action : discard(BAD_LENGTH); }
table ttl_expired { actions { discard; } default_action : discard(TTL_EXPIRED); }
table fragment { actions { discard; } default_action : discard(FRAGMENT); }
table unsupported { actions { discard; } default_action : discard(UNSUPPORTED); }
table unsolicited { actions { discard; } default_action : discard(UNSOLICITED); }
table arp { actions { to_controller; } default_action : to_controller(); }

// ---- Checksums: RFC 1624, equation 3: what leaves a sum is added inverted, what enters it as it is ----

action add_address(address) {
    shift_right(meta.word, address, 16);
    add_to_field(meta.address_delta, meta.word);
    bit_and(meta.word, address, 0xffff);
    add_to_field(meta.address_delta, meta.word);
}

action change_of_address(old, new) {
    bit_not(meta.inverted_address, old);
    add_address(meta.inverted_address);
    add_address(new);
}

action change_of_id(old, new) {
    bit_not(meta.inverted, old);
    add_to_field(meta.id_delta, meta.inverted);
    add_to_field(meta.id_delta, new);
}

action fold() {
    shift_right(meta.word, meta.sum, 16);
    bit_and(meta.sum, meta.sum, 0xffff);
    add_to_field(meta.sum, meta.word);
}

action correct(checksum, delta) {
    bit_not(meta.inverted, checksum);
    add(meta.sum, meta.inverted, delta);
    fold();
    fold();
    bit_not(checksum, meta.sum);
}

// ---- Tables ----

action set_inside() { modify_field(meta.from_inside, 1); }
action set_outside() { modify_field(meta.from_inside, 0); }

table interface_side {
    reads { standard_metadata.ingress_port : exact; }
    actions { set_inside; set_outside; discard; }
    default_action : discard(UNKNOWN_PORT);
    size : MAX_PORTS;
}

action no_binding() { no_op(); }

action set_destination(address) {
    change_of_address(ipv4.dst, address);
    modify_field(ipv4.dst, address);
    modify_field(meta.destination_changed, 1);
}

action set_destination_and_id(address, id) {
    set_destination(address);
    change_of_id(meta.dst_id, id);
    modify_field(meta.dst_id, id);
}

table static_in {
    reads { ipv4.dst : exact; }
    actions { set_destination; no_binding; }
    default_action : no_binding();
    size : MAX_STATIC;
}

table binding_in {
    reads {
        ipv4.dst : exact;
        ipv4.protocol : exact;
        meta.dst_id : exact;
    }
    actions { set_destination_and_id; no_binding; }
    default_action : no_binding();
    size : MAX_BINDINGS;
}

action route_inside(dmac, port) {
    modify_field(ethernet.dst, dmac);
    modify_field(standard_metadata.egress_spec, port);
}

action route_outside(dmac, port) {
    route_inside(dmac, port);
    modify_field(meta.to_outside, 1);
}

table ipv4_lpm {
    reads { ipv4.dst : lpm; }
    actions { route_inside; route_outside; discard; }
    default_action : discard(NO_ROUTE);
    size : MAX_ROUTES;
}

action set_source(address) {
    change_of_address(ipv4.src, address);
    modify_field(ipv4.src, address);
}

action set_source_and_id(address, id) {
    set_source(address);
    change_of_id(meta.src_id, id);
    modify_field(meta.src_id, id);
}

table static_out {
    reads { ipv4.src : exact; }
    actions { set_source; no_binding; }
    default_action : no_binding();
    size : MAX_STATIC;
}

table binding_out {
    reads {
        ipv4.src : exact;
        ipv4.protocol : exact;
        meta.src_id : exact;
    }
    actions { set_source_and_id; to_controller; }
    default_action : to_controller();
    size : MAX_BINDINGS;
}

// For the control plane, to see which bindings are idle.
counter binding_out_use {
    type : packets_and_bytes;
    direct : binding_out;
}
counter binding_in_use {
    type : packets_and_bytes;
    direct : binding_in;
}

// ---- What leaves ----

// TTL and protocol are one word of the header: a hop less takes 0x0100 from it, and ~0x0100 is 0xfeff.
action rewrite_ipv4() {
    subtract_from_field(ipv4.ttl, 1);
    add(meta.delta, meta.address_delta, 0xfeff);
    correct(ipv4.checksum, meta.delta);
    add(meta.delta, meta.address_delta, meta.id_delta);
}

action rewrite_tcp() {
    modify_field(tcp.src_port, meta.src_id);
    modify_field(tcp.dst_port, meta.dst_id);
    correct(tcp.checksum, meta.delta);
}

action rewrite_udp_ports() {
    modify_field(udp.src_port, meta.src_id);
    modify_field(udp.dst_port, meta.dst_id);
}

action rewrite_udp_checksum() {
    correct(udp.checksum, meta.delta);
}

// 0 says that there is no checksum, so one that comes to 0 is sent as its other form.
action write_zero_checksum() {
    modify_field(udp.checksum, 0xffff);
}

// ICMP sums no addresses.
action rewrite_echo_request() {
    modify_field(icmp.identifier, meta.src_id);
    correct(icmp.checksum, meta.id_delta);
}

action rewrite_echo_reply() {
    modify_field(icmp.identifier, meta.dst_id);
    correct(icmp.checksum, meta.id_delta);
}

action measure_segment() { subtract(meta.segment, ipv4.total_length, 20); }

table segment { actions { measure_segment; } default_action : measure_segment(); }
table ipv4_rewrite { actions { rewrite_ipv4; } default_action : rewrite_ipv4(); }
table tcp_rewrite { actions { rewrite_tcp; } default_action : rewrite_tcp(); }
table udp_rewrite { actions { rewrite_udp_ports; } default_action : rewrite_udp_ports(); }
table udp_checksum { actions { rewrite_udp_checksum; } default_action : rewrite_udp_checksum(); }
table udp_zero { actions { write_zero_checksum; } default_action : write_zero_checksum(); }
table request_rewrite { actions { rewrite_echo_request; } default_action : rewrite_echo_request(); }
table reply_rewrite { actions { rewrite_echo_reply; } default_action : rewrite_echo_reply(); }

// ---- Ingress ----

control truncated_packet { apply(truncated); }
control wrong_checksum { apply(bad_checksum); }

control ingress {
    if (not valid(ipv4)) {
        if (ethernet.ether_type == ETHERTYPE_ARP) {
            apply(arp);
        } else {
            apply(not_ipv4);
        }
    } else if (ipv4.version != 4 or ipv4.ihl != 5) {
        apply(bad_header);
    } else if (ipv4.total_length < 20
            or ipv4.total_length > standard_metadata.packet_length - ETHERNET_BYTES) {
        apply(bad_length);
    } else if (ipv4.ttl <= 1) {
        apply(ttl_expired);
    } else if (ipv4.more_fragments == 1 or ipv4.fragment_offset != 0) {
        apply(fragment);
    } else {
        apply(segment);
        if ((valid(tcp) and (meta.segment < 20 or tcp.data_offset < 5))
                or (valid(udp) and (udp.len < 8 or udp.len > meta.segment))
                or (valid(icmp) and meta.segment < 8)) {
            apply(bad_segment);
        } else if (valid(tcp) or valid(udp)
                or (valid(icmp) and (icmp.icmp_type == 8 or icmp.icmp_type == 0))) {
            apply(interface_side);
            if (meta.discarded == 0) {
                translate();
            }
        } else {
            apply(unsupported);
        }
    }
}

// The destination first, for routes lead to private addresses; the source when it is known where to.
control translate {
    apply(static_in) {
        miss {
            apply(binding_in);
        }
    }
    if (meta.from_inside == 0 and meta.destination_changed == 0) {
        apply(unsolicited);
    } else {
        apply(ipv4_lpm);
        if (meta.discarded == 0) {
            // Who asked for a public address must be answered from it, also by a neighbour.
            if (meta.from_inside == 1 and (meta.to_outside == 1 or meta.destination_changed == 1)) {
                apply(static_out) {
                    miss {
                        apply(binding_out);
                    }
                }
            }
            if (meta.discarded == 0) {
                rewrite();
            }
        }
    }
}

control rewrite {
    apply(ipv4_rewrite);
    if (valid(tcp)) {
        apply(tcp_rewrite);
    } else if (valid(udp)) {
        apply(udp_rewrite);
        if (udp.checksum != 0) {
            apply(udp_checksum);
            if (udp.checksum == 0) {
                apply(udp_zero);
            }
        }
    } else if (icmp.icmp_type == 8) {
        apply(request_rewrite);
    } else {
        apply(reply_rewrite);
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
