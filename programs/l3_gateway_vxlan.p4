// SPDX-License-Identifier: Apache-2.0
//
// A data-centre gateway with VXLAN (RFC 7348): bridges hosts of one segment, routes between segments of one tenant and
// to the outside, over an IP fabric between tunnel endpoints (VTEPs).
//
// A bridge domain is a segment here; ports and VXLAN network identifiers (VNIs) belong to one, and it belongs to the
// VRF of a tenant. What is sent to the router's address in a domain is routed, the rest bridged, and flooded when
// nobody knows the station. The control plane (EVPN, say) makes the entries, answers ARP for the router and speaks the
// routing protocols of the fabric. The fabric has to carry 50 bytes more than hosts send.

#include <core.p4>
#include <v1model.p4>

typedef bit<48> mac_t;
typedef bit<32> address_t;
typedef bit<9>  port_t;
typedef bit<24> vni_t;
typedef bit<16> domain_t;
typedef bit<16> vrf_t;
typedef bit<16> group_t;
typedef bit<16> next_hop_t;

const int     MAX_DOMAINS = 1 << 14;
const int     MAX_STATIONS = 1 << 18;
const int     MAX_ROUTES = 1 << 18;
const int     MAX_NEXT_HOPS = 1 << 16;
const int     MAX_VTEPS = 1 << 12;
const int     MAX_REPLICAS = 1 << 16;
const int     MAX_PORTS = 1 << 9;           // as many as port_t counts
const bit<32> CONTROLLER_SESSION = 100;     // the clone session that leads to the control plane
const bit<32> INGRESS_CLONE = 1;            // of instance_type
const bit<32> REPLICATED = 5;
const bit<16> ETHERNET_BYTES = 14;
const bit<16> IPV4_BYTES = 20;
const bit<16> UDP_VXLAN_BYTES = 16;
const bit<16> TUNNEL_BYTES = 50;            // all that stands in front of the frame
const bit<8>  DEFAULT_TTL = 64;

// What the cells of the counter `drops` count.
enum bit<32> DropReason {
    TRUNCATED        = 0,   // shorter than its headers
    BAD_CHECKSUM     = 1,   // outside, or of what is routed
    UNKNOWN_PORT     = 2,
    BAD_LENGTH       = 3,   // lengths that contradict each other
    FRAGMENT         = 4,   // of a tunnelled frame
    NOT_FOR_US       = 5,   // VXLAN to somebody else or from a host; a frame to somebody else where none is bridged
    UNKNOWN_PEER     = 6,
    BAD_VXLAN        = 7,   // without a VNI
    UNKNOWN_VNI      = 8,
    TAGGED           = 9,   // a VLAN tag in a domain
    NO_DOMAIN        = 10,
    SPLIT_HORIZON    = 11,  // from one VTEP to another
    NOT_IPV4         = 12,  // to be routed
    BAD_HEADER       = 13,  // another version, options
    TTL_EXPIRED      = 14,
    NO_ROUTE         = 15,
    NO_NEXT_HOP      = 16,
    UNREACHABLE_PEER = 17
}
const bit<32> DROP_REASONS = 18;

enum bit<16> EtherType {
    IPV4  = 0x0800,
    ARP   = 0x0806,
    C_TAG = 0x8100,
    S_TAG = 0x88a8
}

const bit<8>  PROTOCOL_TCP = 6;
const bit<8>  PROTOCOL_UDP = 17;
const bit<16> VXLAN_PORT = 4789;
const bit<8>  VNI_VALID = 0x08;             // the flag I

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

// RFC 7348
header vxlan_t {
    bit<8>  flags;
    bit<24> reserved;
    vni_t   vni;
    bit<8>  reserved2;
}

struct headers_t {
    ethernet_t outer_ethernet;
    ipv4_t     outer_ipv4;
    udp_t      outer_udp;
    vxlan_t    vxlan;
    ethernet_t ethernet;        // the host's frame
    ipv4_t     ipv4;
}

struct metadata_t {
    // of the host's frame
    bit<16>    frame_bytes;
    bit<8>     tos;
    bit<8>     protocol;
    address_t  src;
    address_t  dst;
    bit<32>    l4_ports;        // 0 unless TCP or UDP and a first fragment
    bit<16>    flow_port;       // the port of UDP that makes the fabric keep a flow on one way
    // where it is
    bool       from_fabric;
    domain_t   domain;
    vrf_t      vrf;
    group_t    flood_group;     // 0: this domain is routed only
    // where it goes
    bool       routed;
    next_hop_t next_hop;
    bool       tunnelled;
    vni_t      vni;
    address_t  local;
    address_t  peer;
    mac_t      outer_smac;
    mac_t      outer_dmac;
}

parser GatewayParser(packet_in packet,
                     out headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    // Tunnel or host's frame? Type, protocol and port tell, before anything is extracted.
    state start {
        bit<112> head = packet.lookahead<bit<112>>();
        transition select(head[15:0]) {
            (bit<16>) EtherType.IPV4: look_for_udp;
            default: frame;
        }
    }

    state look_for_udp {
        bit<192> head = packet.lookahead<bit<192>>();
        // version and header length, fragment offset, protocol
        transition select(head[79:72], head[28:16], head[7:0]) {
            (0x45, 0, PROTOCOL_UDP): look_for_vxlan;
            default: frame;
        }
    }

    state look_for_vxlan {
        bit<304> head = packet.lookahead<bit<304>>();
        transition select(head[15:0]) {
            VXLAN_PORT: tunnel;
            default: frame;
        }
    }

    state tunnel {
        packet.extract(hdr.outer_ethernet);
        packet.extract(hdr.outer_ipv4);
        packet.extract(hdr.outer_udp);
        packet.extract(hdr.vxlan);
        transition frame;
    }

    state frame {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            EtherType.IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        meta.tos = hdr.ipv4.tos;
        meta.protocol = hdr.ipv4.protocol;
        meta.src = hdr.ipv4.src;
        meta.dst = hdr.ipv4.dst;
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): l4_ports;
            (5, 0, PROTOCOL_UDP): l4_ports;
            default: accept;
        }
    }

    state l4_ports {
        meta.l4_ports = packet.lookahead<bit<32>>();
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
    }
}

control GatewayIngress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    counter(DROP_REASONS, CounterType.packets) drops;

    action discard(DropReason reason) {
        drops.count(reason);
        mark_to_drop(standard_metadata);
        exit;
    }

    // The clone is the packet as it came.
    action copy_to_controller() {
        clone(CloneType.I2E, CONTROLLER_SESSION);
    }

    action to_controller() {
        copy_to_controller();
        mark_to_drop(standard_metadata);
        exit;
    }

    // ---- Where the frame is ----

    action set_fabric() {
        meta.from_fabric = true;
    }

    action set_domain(domain_t domain) {
        meta.domain = domain;
    }

    table port_role {
        key = { standard_metadata.ingress_port: exact; }
        actions = { set_fabric; set_domain; discard; }
        default_action = discard(DropReason.UNKNOWN_PORT);
        size = MAX_PORTS;
    }

    action permit() {}

    table own_vteps {
        key = { hdr.outer_ipv4.dst: exact; }
        actions = { permit; discard; }
        default_action = discard(DropReason.NOT_FOR_US);
        size = MAX_VTEPS;
    }

    table peers {
        key = { hdr.outer_ipv4.src: exact; }
        actions = { permit; discard; }
        default_action = discard(DropReason.UNKNOWN_PEER);
        size = MAX_VTEPS;
    }

    table vnis {
        key = { hdr.vxlan.vni: exact; }
        actions = { set_domain; discard; }
        default_action = discard(DropReason.UNKNOWN_VNI);
        size = MAX_DOMAINS;
    }

    action decapsulate() {
        hdr.outer_ethernet.setInvalid();
        hdr.outer_ipv4.setInvalid();
        hdr.outer_udp.setInvalid();
        hdr.vxlan.setInvalid();
        meta.frame_bytes = meta.frame_bytes - TUNNEL_BYTES;
    }

    action set_bridged(vrf_t vrf, group_t flood_group) {
        meta.vrf = vrf;
        meta.flood_group = flood_group;
    }

    // The outside, and VNIs between routers: nothing is bridged there.
    action set_routed(vrf_t vrf) {
        meta.vrf = vrf;
    }

    table domains {
        key = { meta.domain: exact; }
        actions = { set_bridged; set_routed; discard; }
        default_action = discard(DropReason.NO_DOMAIN);
        size = MAX_DOMAINS;
    }

    // ---- Where it goes ----

    action route() {
        meta.routed = true;
    }

    action bridge() {
        meta.routed = false;
    }

    table router_macs {
        key = {
            meta.domain:      exact;
            hdr.ethernet.dst: exact;
        }
        actions = { route; bridge; }
        default_action = bridge();
        size = MAX_DOMAINS;
    }

    action to_port(port_t port) {
        standard_metadata.egress_spec = port;
    }

    action to_vtep(vni_t vni, address_t peer) {
        meta.tunnelled = true;
        meta.vni = vni;
        meta.peer = peer;
    }

    action flood() {
        standard_metadata.mcast_grp = meta.flood_group;
    }

    table stations {
        key = {
            meta.domain:      exact;
            hdr.ethernet.dst: exact;
        }
        actions = { to_port; to_vtep; flood; }
        default_action = flood();
        size = MAX_STATIONS;
    }

    action set_next_hop(next_hop_t next_hop) {
        meta.next_hop = next_hop;
    }

    table ipv4_lpm {
        key = {
            meta.vrf:     exact;
            hdr.ipv4.dst: lpm;
        }
        actions = { set_next_hop; to_controller; discard; }
        default_action = discard(DropReason.NO_ROUTE);
        size = MAX_ROUTES;
    }

    action next_hop_at_port(port_t port, mac_t smac, mac_t dmac) {
        to_port(port);
        hdr.ethernet.src = smac;
        hdr.ethernet.dst = dmac;
    }

    action next_hop_at_vtep(vni_t vni, address_t peer, mac_t smac, mac_t dmac) {
        to_vtep(vni, peer);
        hdr.ethernet.src = smac;
        hdr.ethernet.dst = dmac;
    }

    table next_hops {
        key = { meta.next_hop: exact; }
        actions = { next_hop_at_port; next_hop_at_vtep; discard; }
        default_action = discard(DropReason.NO_NEXT_HOP);
        size = MAX_NEXT_HOPS;
    }

    action through_fabric(port_t port, mac_t smac, mac_t dmac, address_t local) {
        standard_metadata.egress_spec = port;
        meta.outer_smac = smac;
        meta.outer_dmac = dmac;
        meta.local = local;
    }

    table fabric_routes {
        key = { meta.peer: lpm; }
        actions = { through_fabric; discard; }
        default_action = discard(DropReason.UNREACHABLE_PEER);
        size = MAX_VTEPS;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            discard(DropReason.TRUNCATED);
        }
        if (standard_metadata.checksum_error == 1) {
            discard(DropReason.BAD_CHECKSUM);
        }
        meta.frame_bytes = (bit<16>) standard_metadata.packet_length;

        port_role.apply();
        if (hdr.vxlan.isValid()) {
            if (!meta.from_fabric) {
                discard(DropReason.NOT_FOR_US);     // hosts do not choose their segment
            }
            if (hdr.outer_ipv4.total_length != meta.frame_bytes - ETHERNET_BYTES
                    || hdr.outer_udp.len != hdr.outer_ipv4.total_length - IPV4_BYTES) {
                discard(DropReason.BAD_LENGTH);
            }
            if (hdr.outer_ipv4.more_fragments == 1) {
                discard(DropReason.FRAGMENT);
            }
            own_vteps.apply();
            peers.apply();
            if ((hdr.vxlan.flags & VNI_VALID) == 0) {
                discard(DropReason.BAD_VXLAN);
            }
            vnis.apply();
            decapsulate();
        } else if (meta.from_fabric) {
            to_controller();                        // ARP, routing protocols, pings
        }
        domains.apply();
        if (hdr.ethernet.ether_type == EtherType.C_TAG || hdr.ethernet.ether_type == EtherType.S_TAG) {
            discard(DropReason.TAGGED);
        }

        // By the frame as it came. Ports from 49152 on are for such use (RFC 7348, section 5).
        hash(meta.flow_port, HashAlgorithm.crc16, 16w49152,
             { hdr.ethernet.dst, hdr.ethernet.src, meta.src, meta.dst, meta.protocol, meta.l4_ports }, 32w16384);

        router_macs.apply();
        if (hdr.ethernet.ether_type == EtherType.ARP) {
            // For the router's addresses the control plane answers; hosts must hear of each other all the same.
            if (meta.routed || meta.flood_group == 0) {
                to_controller();
            }
            copy_to_controller();
        }
        if (meta.routed) {
            if (!hdr.ipv4.isValid()) {
                discard(DropReason.NOT_IPV4);
            }
            if (hdr.ipv4.version != 4 || hdr.ipv4.ihl != 5) {
                discard(DropReason.BAD_HEADER);
            }
            // A bridge does not look, so this is not for the block that verifies.
            bit<16> sum;
            hash(sum, HashAlgorithm.csum16, 16w0,
                 { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
                   hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments,
                   hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst }, 32w65536);
            if (sum != hdr.ipv4.checksum) {
                discard(DropReason.BAD_CHECKSUM);
            }
            if (hdr.ipv4.total_length < IPV4_BYTES
                    || hdr.ipv4.total_length > meta.frame_bytes - ETHERNET_BYTES) {
                discard(DropReason.BAD_LENGTH);
            }
            if (hdr.ipv4.ttl <= 1) {
                discard(DropReason.TTL_EXPIRED);
            }
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            ipv4_lpm.apply();
            next_hops.apply();
        } else {
            if (meta.flood_group == 0) {
                discard(DropReason.NOT_FOR_US);
            }
            stations.apply();
            // Every VTEP reaches every other one itself.
            if (meta.tunnelled && meta.from_fabric) {
                discard(DropReason.SPLIT_HORIZON);
            }
        }
        if (meta.tunnelled) {
            fabric_routes.apply();
        }
    }
}

control GatewayEgress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    action prune() {
        mark_to_drop(standard_metadata);
    }

    action copy_to_port() {}

    action copy_to_vtep(vni_t vni, address_t local, address_t peer, mac_t smac, mac_t dmac) {
        meta.tunnelled = true;
        meta.vni = vni;
        meta.local = local;
        meta.peer = peer;
        meta.outer_smac = smac;
        meta.outer_dmac = dmac;
    }

    // Copies of a flooded frame, told apart by the identifier of their node in the multicast group.
    table replicas {
        key = { standard_metadata.egress_rid: exact; }
        actions = { copy_to_port; copy_to_vtep; prune; }
        default_action = prune();
        size = MAX_REPLICAS;
    }

    action encapsulate() {
        hdr.outer_ethernet.setValid();
        hdr.outer_ethernet.dst = meta.outer_dmac;
        hdr.outer_ethernet.src = meta.outer_smac;
        hdr.outer_ethernet.ether_type = EtherType.IPV4;
        hdr.outer_ipv4.setValid();
        hdr.outer_ipv4.version = 4;
        hdr.outer_ipv4.ihl = 5;
        hdr.outer_ipv4.tos = meta.tos;
        hdr.outer_ipv4.total_length = meta.frame_bytes + UDP_VXLAN_BYTES + IPV4_BYTES;
        hdr.outer_ipv4.identification = 0;      // never fragmented, so it needs none (RFC 6864)
        hdr.outer_ipv4.reserved = 0;
        hdr.outer_ipv4.dont_fragment = 1;
        hdr.outer_ipv4.more_fragments = 0;
        hdr.outer_ipv4.fragment_offset = 0;
        hdr.outer_ipv4.ttl = DEFAULT_TTL;
        hdr.outer_ipv4.protocol = PROTOCOL_UDP;
        hdr.outer_ipv4.src = meta.local;
        hdr.outer_ipv4.dst = meta.peer;
        hdr.outer_udp.setValid();
        hdr.outer_udp.src_port = meta.flow_port;
        hdr.outer_udp.dst_port = VXLAN_PORT;
        hdr.outer_udp.len = meta.frame_bytes + UDP_VXLAN_BYTES;
        hdr.outer_udp.checksum = 0;
        hdr.vxlan.setValid();
        hdr.vxlan.flags = VNI_VALID;
        hdr.vxlan.reserved = 0;
        hdr.vxlan.vni = meta.vni;
        hdr.vxlan.reserved2 = 0;
    }

    apply {
        if (standard_metadata.instance_type == INGRESS_CLONE) {
            return;
        }
        if (standard_metadata.instance_type == REPLICATED) {
            replicas.apply();
            if (meta.tunnelled && meta.from_fabric) {
                prune();
            }
        }
        // Who shares the port with the sender has the frame already.
        if (!meta.routed && standard_metadata.egress_port == standard_metadata.ingress_port) {
            prune();
        }
        if (meta.tunnelled) {
            encapsulate();
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
        update_checksum(meta.routed && hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment,
              hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control GatewayDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.outer_ethernet);
        packet.emit(hdr.outer_ipv4);
        packet.emit(hdr.outer_udp);
        packet.emit(hdr.vxlan);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(GatewayParser(),
         GatewayVerifyChecksum(),
         GatewayIngress(),
         GatewayEgress(),
         GatewayComputeChecksum(),
         GatewayDeparser()) main;
