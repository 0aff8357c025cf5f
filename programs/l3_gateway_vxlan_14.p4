// SPDX-License-Identifier: Apache-2.0
//
// l3_gateway_vxlan.p4 in P4_14: the same tables, actions and counters, so entries and tests serve both. Language:
// P4_14, for v1model.
//
// Each check is a table without a key, and `meta.discarded` tells that a packet is done with.

#define MAX_DOMAINS 16384
#define MAX_STATIONS 262144
#define MAX_ROUTES 262144
#define MAX_NEXT_HOPS 65536
#define MAX_VTEPS 4096
#define MAX_REPLICAS 65536
#define MAX_PORTS 512
#define CONTROLLER_SESSION 100
#define INGRESS_CLONE 1
#define REPLICATED 5
#define ETHERNET_BYTES 14
#define IPV4_BYTES 20
#define UDP_VXLAN_BYTES 16
#define IPV4_UDP_VXLAN_BYTES 36
#define TUNNEL_BYTES 50
#define DEFAULT_TTL 64

// What the cells of the counter `drops` count.
#define TRUNCATED 0
#define BAD_CHECKSUM 1
#define UNKNOWN_PORT 2
#define BAD_LENGTH 3
#define FRAGMENT 4
#define NOT_FOR_US 5
#define UNKNOWN_PEER 6
#define BAD_VXLAN 7
#define UNKNOWN_VNI 8
#define TAGGED 9
#define NO_DOMAIN 10
#define SPLIT_HORIZON 11
#define NOT_IPV4 12
#define BAD_HEADER 13
#define TTL_EXPIRED 14
#define NO_ROUTE 15
#define NO_NEXT_HOP 16
#define UNREACHABLE_PEER 17
#define DROP_REASONS 18

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP 0x0806
#define ETHERTYPE_C_TAG 0x8100
#define ETHERTYPE_S_TAG 0x88a8
#define PROTOCOL_UDP 17
#define VXLAN_PORT 4789
// the flag I
#define VNI_VALID 0x08

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

// RFC 7348
header_type vxlan_t {
    fields {
        flags     : 8;
        reserved  : 24;
        vni       : 24;
        reserved2 : 8;
    }
}

header_type metadata_t {
    fields {
        discarded      : 1;
        // of the host's frame
        frame_bytes    : 16;
        payload_bytes  : 16;    // behind its Ethernet header
        tos            : 8;
        protocol       : 8;
        src            : 32;
        dst            : 32;
        l4_ports       : 32;    // 0 unless TCP or UDP and a first fragment
        flow_port      : 16;    // the port of UDP that makes the fabric keep a flow on one way
        sum            : 16;
        udp_bytes      : 16;    // by the outer IPv4 header
        // where it is
        from_fabric    : 1;
        domain         : 16;
        vrf            : 16;
        flood_group    : 16;    // 0: this domain is routed only
        // where it goes
        routed         : 1;
        next_hop       : 16;
        tunnelled      : 1;
        vni            : 24;
        local          : 32;
        peer           : 32;
        outer_smac     : 48;
        outer_dmac     : 48;
    }
}

header_type intrinsic_metadata_t {
    fields {
        mcast_grp  : 16;
        egress_rid : 16;
    }
}

header ethernet_t outer_ethernet;
header ipv4_t outer_ipv4;
header udp_t outer_udp;
header vxlan_t vxlan;
header ethernet_t ethernet;         // the host's frame
header ipv4_t ipv4;
metadata metadata_t meta;
metadata intrinsic_metadata_t intrinsic_metadata;

// Tunnel or host's frame? Type, protocol and port tell, before anything is extracted.
parser start {
    return select(current(96, 16)) {
        ETHERTYPE_IPV4 : look_for_udp;
        default : parse_frame;
    }
}

// Version and header length (8 bits), fragment offset (13), protocol (8), compared as one number; here 0x45, 0 and 17.
parser look_for_udp {
    return select(current(112, 8), current(163, 13), current(184, 8)) {
        0x8a00011 : look_for_vxlan;
        default : parse_frame;
    }
}

parser look_for_vxlan {
    return select(current(288, 16)) {
        VXLAN_PORT : parse_tunnel;
        default : parse_frame;
    }
}

parser parse_tunnel {
    extract(outer_ethernet);
    extract(outer_ipv4);
    extract(outer_udp);
    extract(vxlan);
    return parse_frame;
}

parser parse_frame {
    extract(ethernet);
    return select(latest.ether_type) {
        ETHERTYPE_IPV4 : parse_ipv4;
        default : ingress;
    }
}

// 5 words of header (4 bits), fragment offset 0 (13 bits), and TCP (6) or UDP (17)
parser parse_ipv4 {
    extract(ipv4);
    set_metadata(meta.tos, latest.tos);
    set_metadata(meta.protocol, latest.protocol);
    set_metadata(meta.src, latest.src);
    set_metadata(meta.dst, latest.dst);
    return select(latest.ihl, latest.fragment_offset, latest.protocol) {
        0xa00006, 0xa00011 : parse_l4_ports;
        default : ingress;
    }
}

parser parse_l4_ports {
    set_metadata(meta.l4_ports, current(0, 32));
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
// A bridge neither looks nor changes; where it is routed, ingress verifies.
calculated_field ipv4.checksum {
    update ipv4_sum if (meta.routed == 1);
}

field_list flow {
    ethernet.dst;
    ethernet.src;
    meta.src;
    meta.dst;
    meta.protocol;
    meta.l4_ports;
}
field_list_calculation flow_hash {
    input { flow; }
    algorithm : crc16;
    output_width : 16;
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
action copy_to_controller() { clone_ingress_pkt_to_egress(CONTROLLER_SESSION); }

action to_controller() {
    copy_to_controller();
    drop();
    modify_field(meta.discarded, 1);
}

table truncated { actions { discard; } default_action : discard(TRUNCATED); }
table bad_outer_checksum { actions { discard; } default_action : discard(BAD_CHECKSUM); }
table bad_checksum { actions { discard; } default_action : discard(BAD_CHECKSUM); }
table bad_tunnel_length { actions { discard; } default_action : discard(BAD_LENGTH); }
table bad_length { actions { discard; } default_action : discard(BAD_LENGTH); }
table fragment { actions { discard; } default_action : discard(FRAGMENT); }
table tunnel_of_host { actions { discard; } default_action : discard(NOT_FOR_US); }
table not_bridged { actions { discard; } default_action : discard(NOT_FOR_US); }
table bad_vxlan { actions { discard; } default_action : discard(BAD_VXLAN); }
table tagged { actions { discard; } default_action : discard(TAGGED); }
table split_horizon { actions { discard; } default_action : discard(SPLIT_HORIZON); }
table not_ipv4 { actions { discard; } default_action : discard(NOT_IPV4); }
table bad_header { actions { discard; } default_action : discard(BAD_HEADER); }
table ttl_expired { actions { discard; } default_action : discard(TTL_EXPIRED); }
table fabric_control { actions { to_controller; } default_action : to_controller(); }
table arp_for_router { actions { to_controller; } default_action : to_controller(); }
table arp_of_hosts { actions { copy_to_controller; } default_action : copy_to_controller(); }

// ---- Where the frame is ----

action set_fabric() { modify_field(meta.from_fabric, 1); }
action set_domain(domain) { modify_field(meta.domain, domain); }

table port_role {
    reads { standard_metadata.ingress_port : exact; }
    actions { set_fabric; set_domain; discard; }
    default_action : discard(UNKNOWN_PORT);
    size : MAX_PORTS;
}

action permit() { no_op(); }

table own_vteps {
    reads { outer_ipv4.dst : exact; }
    actions { permit; discard; }
    default_action : discard(NOT_FOR_US);
    size : MAX_VTEPS;
}

table peers {
    reads { outer_ipv4.src : exact; }
    actions { permit; discard; }
    default_action : discard(UNKNOWN_PEER);
    size : MAX_VTEPS;
}

table vnis {
    reads { vxlan.vni : exact; }
    actions { set_domain; discard; }
    default_action : discard(UNKNOWN_VNI);
    size : MAX_DOMAINS;
}

action measure_frame() {
    modify_field(meta.frame_bytes, standard_metadata.packet_length);
    subtract(meta.payload_bytes, meta.frame_bytes, ETHERNET_BYTES);
    subtract(meta.udp_bytes, outer_ipv4.total_length, IPV4_BYTES);
}
table frame { actions { measure_frame; } default_action : measure_frame(); }

action decapsulate() {
    remove_header(outer_ethernet);
    remove_header(outer_ipv4);
    remove_header(outer_udp);
    remove_header(vxlan);
    subtract_from_field(meta.frame_bytes, TUNNEL_BYTES);
    subtract_from_field(meta.payload_bytes, TUNNEL_BYTES);
}
table decapsulation { actions { decapsulate; } default_action : decapsulate(); }

action set_bridged(vrf, flood_group) {
    modify_field(meta.vrf, vrf);
    modify_field(meta.flood_group, flood_group);
}

// The outside, and VNIs between routers: nothing is bridged there.
action set_routed(vrf) { modify_field(meta.vrf, vrf); }

table domains {
    reads { meta.domain : exact; }
    actions { set_bridged; set_routed; discard; }
    default_action : discard(NO_DOMAIN);
    size : MAX_DOMAINS;
}

// ---- Where it goes ----

// By the frame as it came. Ports from 49152 on are for such use (RFC 7348, section 5).
action hash_flow() { modify_field_with_hash_based_offset(meta.flow_port, 49152, flow_hash, 16384); }
table flows { actions { hash_flow; } default_action : hash_flow(); }

action sum_header() { modify_field_with_hash_based_offset(meta.sum, 0, ipv4_sum, 65536); }
table header_sum { actions { sum_header; } default_action : sum_header(); }

action route() { modify_field(meta.routed, 1); }
action bridge() { modify_field(meta.routed, 0); }

table router_macs {
    reads {
        meta.domain : exact;
        ethernet.dst : exact;
    }
    actions { route; bridge; }
    default_action : bridge();
    size : MAX_DOMAINS;
}

action to_port(port) { modify_field(standard_metadata.egress_spec, port); }

action to_vtep(vni, peer) {
    modify_field(meta.tunnelled, 1);
    modify_field(meta.vni, vni);
    modify_field(meta.peer, peer);
}

action flood() { modify_field(intrinsic_metadata.mcast_grp, meta.flood_group); }

table stations {
    reads {
        meta.domain : exact;
        ethernet.dst : exact;
    }
    actions { to_port; to_vtep; flood; }
    default_action : flood();
    size : MAX_STATIONS;
}

action one_hop_less() { subtract_from_field(ipv4.ttl, 1); }
table hop { actions { one_hop_less; } default_action : one_hop_less(); }

action set_next_hop(next_hop) { modify_field(meta.next_hop, next_hop); }

table ipv4_lpm {
    reads {
        meta.vrf : exact;
        ipv4.dst : lpm;
    }
    actions { set_next_hop; to_controller; discard; }
    default_action : discard(NO_ROUTE);
    size : MAX_ROUTES;
}

action next_hop_at_port(port, smac, dmac) {
    to_port(port);
    modify_field(ethernet.src, smac);
    modify_field(ethernet.dst, dmac);
}

action next_hop_at_vtep(vni, peer, smac, dmac) {
    to_vtep(vni, peer);
    modify_field(ethernet.src, smac);
    modify_field(ethernet.dst, dmac);
}

table next_hops {
    reads { meta.next_hop : exact; }
    actions { next_hop_at_port; next_hop_at_vtep; discard; }
    default_action : discard(NO_NEXT_HOP);
    size : MAX_NEXT_HOPS;
}

action through_fabric(port, smac, dmac, local) {
    to_port(port);
    modify_field(meta.outer_smac, smac);
    modify_field(meta.outer_dmac, dmac);
    modify_field(meta.local, local);
}

table fabric_routes {
    reads { meta.peer : lpm; }
    actions { through_fabric; discard; }
    default_action : discard(UNREACHABLE_PEER);
    size : MAX_VTEPS;
}

// ---- Ingress ----

control truncated_packet { apply(truncated); }
control wrong_checksum { apply(bad_outer_checksum); }

control ingress {
    apply(frame);
    apply(port_role);
    if (meta.discarded == 0) {
        if (valid(vxlan)) {
            terminate();
        } else if (meta.from_fabric == 1) {
            apply(fabric_control);              // ARP, routing protocols, pings
        }
    }
    if (meta.discarded == 0) {
        apply(domains);
    }
    if (meta.discarded == 0) {
        if (ethernet.ether_type == ETHERTYPE_C_TAG or ethernet.ether_type == ETHERTYPE_S_TAG) {
            apply(tagged);
        } else {
            forward();
        }
    }
}

control terminate {
    if (meta.from_fabric == 0) {
        apply(tunnel_of_host);                  // hosts do not choose their segment
    } else if (outer_ipv4.total_length != meta.payload_bytes or outer_udp.len != meta.udp_bytes) {
        apply(bad_tunnel_length);
    } else if (outer_ipv4.more_fragments == 1) {
        apply(fragment);
    } else {
        apply(own_vteps);
        if (meta.discarded == 0) {
            apply(peers);
        }
        if (meta.discarded == 0) {
            if ((vxlan.flags & VNI_VALID) == 0) {
                apply(bad_vxlan);
            } else {
                apply(vnis);
            }
        }
        if (meta.discarded == 0) {
            apply(decapsulation);
        }
    }
}

control forward {
    apply(flows);
    apply(router_macs);
    if (ethernet.ether_type == ETHERTYPE_ARP) {
        // For the router's addresses the control plane answers; hosts must hear of each other all the same.
        if (meta.routed == 1 or meta.flood_group == 0) {
            apply(arp_for_router);
        } else {
            apply(arp_of_hosts);
        }
    }
    if (meta.discarded == 0) {
        if (meta.routed == 1) {
            route_packet();
        } else {
            bridge_frame();
        }
    }
    if (meta.discarded == 0 and meta.tunnelled == 1) {
        apply(fabric_routes);
    }
}

control route_packet {
    if (not valid(ipv4)) {
        apply(not_ipv4);
    } else if (ipv4.version != 4 or ipv4.ihl != 5) {
        apply(bad_header);
    } else {
        apply(header_sum);
        if (meta.sum != ipv4.checksum) {
            apply(bad_checksum);
        } else if (ipv4.total_length < IPV4_BYTES or ipv4.total_length > meta.payload_bytes) {
            apply(bad_length);
        } else if (ipv4.ttl <= 1) {
            apply(ttl_expired);
        } else {
            apply(hop);
            apply(ipv4_lpm);
            if (meta.discarded == 0) {
                apply(next_hops);
            }
        }
    }
}

control bridge_frame {
    if (meta.flood_group == 0) {
        apply(not_bridged);
    } else {
        apply(stations);
        // Every VTEP reaches every other one itself.
        if (meta.tunnelled == 1 and meta.from_fabric == 1) {
            apply(split_horizon);
        }
    }
}

// ---- Egress ----

action prune() { drop(); }
action copy_to_port() { no_op(); }

action copy_to_vtep(vni, local, peer, smac, dmac) {
    modify_field(meta.tunnelled, 1);
    modify_field(meta.vni, vni);
    modify_field(meta.local, local);
    modify_field(meta.peer, peer);
    modify_field(meta.outer_smac, smac);
    modify_field(meta.outer_dmac, dmac);
}

// Copies of a flooded frame, told apart by the identifier of their node in the multicast group.
table replicas {
    reads { intrinsic_metadata.egress_rid : exact; }
    actions { copy_to_port; copy_to_vtep; prune; }
    default_action : prune();
    size : MAX_REPLICAS;
}

// What a new header does not mention is 0.
action encapsulate() {
    add_header(outer_ethernet);
    modify_field(outer_ethernet.dst, meta.outer_dmac);
    modify_field(outer_ethernet.src, meta.outer_smac);
    modify_field(outer_ethernet.ether_type, ETHERTYPE_IPV4);
    add_header(outer_ipv4);
    modify_field(outer_ipv4.version, 4);
    modify_field(outer_ipv4.ihl, 5);
    modify_field(outer_ipv4.tos, meta.tos);
    add(outer_ipv4.total_length, meta.frame_bytes, IPV4_UDP_VXLAN_BYTES);
    modify_field(outer_ipv4.dont_fragment, 1);
    modify_field(outer_ipv4.ttl, DEFAULT_TTL);
    modify_field(outer_ipv4.protocol, PROTOCOL_UDP);
    modify_field(outer_ipv4.src, meta.local);
    modify_field(outer_ipv4.dst, meta.peer);
    add_header(outer_udp);
    modify_field(outer_udp.src_port, meta.flow_port);
    modify_field(outer_udp.dst_port, VXLAN_PORT);
    add(outer_udp.len, meta.frame_bytes, UDP_VXLAN_BYTES);
    add_header(vxlan);
    modify_field(vxlan.flags, VNI_VALID);
    modify_field(vxlan.vni, meta.vni);
}

table encapsulation { actions { encapsulate; } default_action : encapsulate(); }
table split_horizon_prune { actions { prune; } default_action : prune(); }
table sender_prune { actions { prune; } default_action : prune(); }

control egress {
    if (standard_metadata.instance_type != INGRESS_CLONE) {
        if (standard_metadata.instance_type == REPLICATED) {
            apply(replicas);
            if (meta.tunnelled == 1 and meta.from_fabric == 1) {
                apply(split_horizon_prune);
            }
        }
        // Who shares the port with the sender has the frame already.
        if (meta.routed == 0 and standard_metadata.egress_port == standard_metadata.ingress_port) {
            apply(sender_prune);
        }
        if (meta.tunnelled == 1) {
            apply(encapsulation);
        }
    }
}
