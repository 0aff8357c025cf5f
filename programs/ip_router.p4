// SPDX-License-Identifier: Apache-2.0
//
// An IPv4 and IPv6 router to put on a network: it looks at frames that are addressed to it, forwards what a router may
// forward (RFC 1812, RFC 4291, RFC 6890), and leaves to a host what needs one.
//
// The host is behind the CPU port. It gets, with a header that says where from and why: ARP, neighbour discovery, what is
// for the router's own addresses, what has options or is at its last hop, and what waits for a neighbour's address. What
// the host sends there leaves by the port that it names. Each packet counts for one cause, and drops say where.

#include <core.p4>
#include <v1model.p4>

typedef bit<48>  mac_t;
typedef bit<9>   port_t;
typedef bit<32>  ipv4_address_t;
typedef bit<128> ipv6_address_t;

const port_t CPU_PORT = 510;

const int MAX_ROUTES = 1 << 18;     // of each family
const int MAX_NEIGHBOURS = 1 << 16; // of each family
const int MAX_ADDRESSES = 1024;     // of the router, of each family
const int MAX_PORTS = 1 << 9;       // as many as port_t counts
const int MAX_PATHS = 1 << 14;      // of all groups of paths of a family

const bit<16> ETHERNET_BYTES = 14;

enum bit<16> EtherType {
    IPV4 = 0x0800,
    ARP  = 0x0806,
    IPV6 = 0x86dd
}

enum bit<8> Protocol {
    TCP    = 6,
    UDP    = 17,
    ICMPV6 = 58
}

// What became of a packet: the cells of the counter `causes`, and the reasons of packets for the host.
enum bit<7> Cause {
    FORWARDED           = 0,
    FROM_HOST           = 1,
    // to the host
    ARP                 = 2,
    NEIGHBOUR_DISCOVERY = 3,
    OWN_ADDRESS         = 4,
    TIME_EXCEEDED       = 5,
    OPTIONS             = 6,
    NEIGHBOUR_UNKNOWN   = 7,
    TOO_BIG             = 8,
    ROUTE_TO_HOST       = 9,
    // dropped
    NO_INTERFACE        = 16,
    NOT_FOR_ROUTER      = 17,
    BAD_SENDER          = 18,
    BROADCAST           = 19,
    OTHER_PROTOCOL      = 20,
    BAD_HEADER          = 21,
    BAD_CHECKSUM        = 22,
    MARTIAN_SOURCE      = 23,
    MARTIAN_DESTINATION = 24,
    NO_ROUTE            = 25,
    DISCARD_ROUTE       = 26,
    NO_PATH             = 27,
    NO_LINK             = 28
}

@controller_header("packet_in")
header packet_in_t {
    port_t ingress_port;
    Cause  reason;
}

@controller_header("packet_out")
header packet_out_t {
    port_t egress_port;
    bit<7> padding;
}

header ethernet_t {
    mac_t     dst;
    mac_t     src;
    EtherType type;
}

// RFC 791
header ipv4_t {
    bit<4>         version;
    bit<4>         ihl;
    bit<8>         tos;
    bit<16>        total_length;
    bit<16>        identification;
    bit<3>         flags;
    bit<13>        fragment_offset;
    bit<8>         ttl;
    Protocol       protocol;
    bit<16>        checksum;
    ipv4_address_t src;
    ipv4_address_t dst;
}

header ipv4_options_t {
    varbit<320> all;
}

// RFC 8200
header ipv6_t {
    bit<4>         version;
    bit<8>         traffic_class;
    bit<20>        flow_label;
    bit<16>        payload_length;
    Protocol       next_header;
    bit<8>         hop_limit;
    ipv6_address_t src;
    ipv6_address_t dst;
}

struct headers_t {
    packet_in_t    packet_in;
    packet_out_t   packet_out;
    ethernet_t     ethernet;
    ipv4_t         ipv4;
    ipv4_options_t ipv4_options;
    ipv6_t         ipv6;
}

struct metadata_t {
    bit<8>         icmpv6_type;
    bit<16>        source_port;         // of TCP and UDP, else 0
    bit<16>        destination_port;
    mac_t          own_mac;             // of the port that the packet came in by
    port_t         port;                // that it is to leave by
    bit<16>        length;              // of the IP packet
    bit<16>        mtu;                 // of the port that it is to leave by
    mac_t          out_mac;             // and its address
    mac_t          next_mac;            // of the neighbour
    ipv4_address_t gateway_ipv4;
    ipv6_address_t gateway_ipv6;
    bit<16>        group;               // of paths
    bit<16>        path;                // in the group
}

// The first words behind IP, where they are wanted.
struct ports_t {
    bit<16> source;
    bit<16> destination;
}

parser RouterParser(packet_in packet,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: from_host;
            default:  ethernet;
        }
    }

    state from_host {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            EtherType.IPV4: ipv4;
            EtherType.IPV6: ipv6;
            default:        accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0 .. 4, _, _):         accept;
            (5, 0, Protocol.TCP):   ports;
            (5, 0, Protocol.UDP):   ports;
            (5, _, _):              accept;
            default:                ipv4_options;
        }
    }

    state ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>) hdr.ipv4.ihl - 5) * 32);
        transition accept;
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            Protocol.TCP:    ports;
            Protocol.UDP:    ports;
            Protocol.ICMPV6: icmpv6;
            default:         accept;
        }
    }

    state ports {
        ports_t ports = packet.lookahead<ports_t>();
        meta.source_port = ports.source;
        meta.destination_port = ports.destination;
        transition accept;
    }

    state icmpv6 {
        meta.icmpv6_type = packet.lookahead<bit<8>>();
        transition accept;
    }
}

control RouterVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && !hdr.ipv4_options.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.ipv4_options.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4_options.all },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    counter((bit<32>) 32, CounterType.packets_and_bytes) causes;

    action drop(Cause cause) {
        causes.count((bit<32>) (bit<7>) cause);
        mark_to_drop(standard_metadata);
    }

    action to_host(Cause cause) {
        causes.count((bit<32>) (bit<7>) cause);
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        hdr.packet_in.reason = cause;
        standard_metadata.egress_spec = CPU_PORT;
    }

    // ---- Interfaces ----

    action interface(mac_t mac) {
        meta.own_mac = mac;
    }

    // The router's address on each port.
    table interfaces {
        key = { standard_metadata.ingress_port: exact @name("port"); }
        actions = { interface; @defaultonly NoAction; }
        const default_action = NoAction();
        size = MAX_PORTS;
    }

    action link(mac_t mac, bit<16> mtu) {
        meta.out_mac = mac;
        meta.mtu = mtu;
    }

    // The router's address on the port that a packet leaves by, and the longest IP packet there in bytes.
    table links {
        key = { meta.port: exact @name("port"); }
        actions = { link; @defaultonly NoAction; }
        const default_action = NoAction();
        size = MAX_PORTS;
    }

    // ---- Addresses ----

    // Addresses that the host answers for: the router's own, and those of groups that it is a member of.
    table own_ipv4 {
        key = { hdr.ipv4.dst: exact @name("address"); }
        actions = { NoAction; }
        const default_action = NoAction();
        size = MAX_ADDRESSES;
    }

    table own_ipv6 {
        key = { hdr.ipv6.dst: exact @name("address"); }
        actions = { NoAction; }
        const default_action = NoAction();
        size = MAX_ADDRESSES;
    }

    // Addresses that no packet on the wire may come from or that no router forwards to (RFC 6890, RFC 1812 5.3.7).
    table ipv4_martian_sources {
        key = { hdr.ipv4.src: lpm @name("address"); }
        actions = { NoAction; }
        const default_action = NoAction();
        const entries = {
            0x00000000 &&& 0xff000000: NoAction();  // 0.0.0.0/8, this network
            0x7f000000 &&& 0xff000000: NoAction();  // 127.0.0.0/8, loopback
            0xa9fe0000 &&& 0xffff0000: NoAction();  // 169.254.0.0/16, link-local
            0xc0000000 &&& 0xffffff00: NoAction();  // 192.0.0.0/24, protocol assignments
            0xe0000000 &&& 0xe0000000: NoAction();  // 224.0.0.0/4 multicast, 240.0.0.0/4 reserved, broadcast
        }
    }

    table ipv4_martian_destinations {
        key = { hdr.ipv4.dst: lpm @name("address"); }
        actions = { NoAction; }
        const default_action = NoAction();
        const entries = {
            0x00000000 &&& 0xff000000: NoAction();
            0x7f000000 &&& 0xff000000: NoAction();
            0xa9fe0000 &&& 0xffff0000: NoAction();
            0xc0000000 &&& 0xffffff00: NoAction();
            0xe0000000 &&& 0xe0000000: NoAction();
        }
    }

    table ipv6_martian_sources {
        key = { hdr.ipv6.src: lpm @name("address"); }
        actions = { NoAction; }
        const default_action = NoAction();
        const entries = {
            128w0 &&& ~128w0: NoAction();                                       // ::, unspecified
            128w1 &&& ~128w0: NoAction();                                       // ::1, loopback
            0xffff00000000 &&& ~128w0xffffffff: NoAction();                     // ::ffff:0:0/96, IPv4-mapped
            (0xfe80 << 112) &&& (0xffc0 << 112): NoAction();                    // fe80::/10, link-local
            (0xff << 120) &&& (0xff << 120): NoAction();                        // ff00::/8, multicast
        }
    }

    table ipv6_martian_destinations {
        key = { hdr.ipv6.dst: lpm @name("address"); }
        actions = { NoAction; }
        const default_action = NoAction();
        const entries = {
            128w0 &&& ~128w0: NoAction();
            128w1 &&& ~128w0: NoAction();
            0xffff00000000 &&& ~128w0xffffffff: NoAction();
            (0xfe80 << 112) &&& (0xffc0 << 112): NoAction();
            (0xff << 120) &&& (0xff << 120): NoAction();
        }
    }

    // ---- Routes ----

    // The destination is a neighbour on that port.
    action connected_ipv4(port_t port) {
        meta.port = port;
        meta.gateway_ipv4 = hdr.ipv4.dst;
    }

    action via_ipv4(port_t port, ipv4_address_t gateway) {
        meta.port = port;
        meta.gateway_ipv4 = gateway;
    }

    action connected_ipv6(port_t port) {
        meta.port = port;
        meta.gateway_ipv6 = hdr.ipv6.dst;
    }

    action via_ipv6(port_t port, ipv6_address_t gateway) {
        meta.port = port;
        meta.gateway_ipv6 = gateway;
    }

    // One of `paths` paths of the group, the same for all packets of a flow.
    action ecmp_ipv4(bit<16> group, bit<16> paths) {
        meta.group = group;
        hash(meta.path, HashAlgorithm.crc32, 16w0,
             { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.source_port, meta.destination_port },
             (bit<32>) paths);
    }

    action ecmp_ipv6(bit<16> group, bit<16> paths) {
        meta.group = group;
        hash(meta.path, HashAlgorithm.crc32, 16w0,
             { hdr.ipv6.src, hdr.ipv6.dst, hdr.ipv6.flow_label, 4w0, hdr.ipv6.next_header,
               meta.source_port, meta.destination_port },
             (bit<32>) paths);
    }

    action discard() {
        drop(Cause.DISCARD_ROUTE);
    }

    action no_route() {
        drop(Cause.NO_ROUTE);
    }

    // The host answers that there is no way, or routes itself.
    action route_to_host() {
        to_host(Cause.ROUTE_TO_HOST);
    }

    table ipv4_routes {
        key = { hdr.ipv4.dst: lpm @name("prefix"); }
        actions = { connected_ipv4; via_ipv4; ecmp_ipv4; discard; route_to_host; no_route; }
        default_action = no_route();
        size = MAX_ROUTES;
    }

    table ipv6_routes {
        key = { hdr.ipv6.dst: lpm @name("prefix"); }
        actions = { connected_ipv6; via_ipv6; ecmp_ipv6; discard; route_to_host; no_route; }
        default_action = no_route();
        size = MAX_ROUTES;
    }

    action no_path() {
        drop(Cause.NO_PATH);
    }

    table ipv4_paths {
        key = {
            meta.group: exact @name("group");
            meta.path:  exact @name("path");
        }
        actions = { via_ipv4; no_path; }
        default_action = no_path();
        size = MAX_PATHS;
    }

    table ipv6_paths {
        key = {
            meta.group: exact @name("group");
            meta.path:  exact @name("path");
        }
        actions = { via_ipv6; no_path; }
        default_action = no_path();
        size = MAX_PATHS;
    }

    // ---- Neighbours ----

    action neighbour(mac_t mac) {
        meta.next_mac = mac;
    }

    table ipv4_neighbours {
        key = {
            meta.port:         exact @name("port");
            meta.gateway_ipv4: exact @name("address");
        }
        actions = { neighbour; @defaultonly NoAction; }
        const default_action = NoAction();
        size = MAX_NEIGHBOURS;
    }

    table ipv6_neighbours {
        key = {
            meta.port:         exact @name("port");
            meta.gateway_ipv6: exact @name("address");
        }
        actions = { neighbour; @defaultonly NoAction; }
        const default_action = NoAction();
        size = MAX_NEIGHBOURS;
    }

    // ---- One family after the other ----

    // A frame for all, or for a group, is not forwarded (RFC 1812 5.3.4).
    action drop_broadcast() {
        drop(Cause.BROADCAST);
    }

    apply {
        if (standard_metadata.ingress_port == CPU_PORT) {
            if (hdr.packet_out.isValid() && hdr.packet_out.egress_port != CPU_PORT) {
                causes.count((bit<32>) (bit<7>) Cause.FROM_HOST);
                standard_metadata.egress_spec = hdr.packet_out.egress_port;
                hdr.packet_out.setInvalid();
            } else {
                drop(Cause.BAD_HEADER);
            }
            return;
        }

        // RFC 1812 5.2.1: is the frame good, and for this router?
        if (!hdr.ethernet.isValid()) {
            drop(Cause.BAD_HEADER);
            return;
        }
        if (!interfaces.apply().hit) {
            drop(Cause.NO_INTERFACE);
            return;
        }
        bool for_group = hdr.ethernet.dst[40:40] == 1;
        if (!for_group && hdr.ethernet.dst != meta.own_mac) {
            drop(Cause.NOT_FOR_ROUTER);
            return;
        }
        if (hdr.ethernet.src[40:40] == 1 || hdr.ethernet.src == 0) {
            drop(Cause.BAD_SENDER);
            return;
        }

        bit<16> frame_length = (bit<16>) standard_metadata.packet_length - ETHERNET_BYTES;
        bool resolved = false;
        if (hdr.ethernet.type == EtherType.ARP) {
            to_host(Cause.ARP);
            return;
        } else if (hdr.ethernet.type == EtherType.IPV4) {
            // RFC 1812 5.2.2
            bit<16> header_length = (bit<16>) hdr.ipv4.ihl << 2;
            if (!hdr.ipv4.isValid() || hdr.ipv4.version != 4 || hdr.ipv4.ihl < 5
                    || standard_metadata.parser_error == error.PacketTooShort && hdr.ipv4.ihl > 5
                    || hdr.ipv4.total_length < header_length || hdr.ipv4.total_length > frame_length) {
                drop(Cause.BAD_HEADER);
                return;
            }
            if (standard_metadata.checksum_error == 1) {
                drop(Cause.BAD_CHECKSUM);
                return;
            }
            if (own_ipv4.apply().hit) {
                to_host(Cause.OWN_ADDRESS);
                return;
            }
            if (for_group) {
                drop_broadcast();
                return;
            }
            if (ipv4_martian_sources.apply().hit) {
                drop(Cause.MARTIAN_SOURCE);
                return;
            }
            if (ipv4_martian_destinations.apply().hit) {
                drop(Cause.MARTIAN_DESTINATION);
                return;
            }
            if (hdr.ipv4.ttl <= 1) {
                to_host(Cause.TIME_EXCEEDED);
                return;
            }
            if (hdr.ipv4_options.isValid()) {
                to_host(Cause.OPTIONS);
                return;
            }
            switch (ipv4_routes.apply().action_run) {
                ecmp_ipv4: {
                    if (!ipv4_paths.apply().hit) {
                        return;
                    }
                }
                discard:
                route_to_host:
                no_route: { return; }
            }
            meta.length = hdr.ipv4.total_length;
            resolved = ipv4_neighbours.apply().hit;
        } else if (hdr.ethernet.type == EtherType.IPV6) {
            if (!hdr.ipv6.isValid() || hdr.ipv6.version != 6 || hdr.ipv6.payload_length > frame_length |-| 40) {
                drop(Cause.BAD_HEADER);
                return;
            }
            // RFC 4861 6.1, 7.1, 8.1: what has been forwarded once is none.
            if (hdr.ipv6.next_header == Protocol.ICMPV6 && hdr.ipv6.hop_limit == 255
                    && meta.icmpv6_type >= 133 && meta.icmpv6_type <= 137) {
                to_host(Cause.NEIGHBOUR_DISCOVERY);
                return;
            }
            if (own_ipv6.apply().hit) {
                to_host(Cause.OWN_ADDRESS);
                return;
            }
            if (for_group) {
                drop_broadcast();
                return;
            }
            if (ipv6_martian_sources.apply().hit) {
                drop(Cause.MARTIAN_SOURCE);
                return;
            }
            if (ipv6_martian_destinations.apply().hit) {
                drop(Cause.MARTIAN_DESTINATION);
                return;
            }
            if (hdr.ipv6.hop_limit <= 1) {
                to_host(Cause.TIME_EXCEEDED);
                return;
            }
            switch (ipv6_routes.apply().action_run) {
                ecmp_ipv6: {
                    if (!ipv6_paths.apply().hit) {
                        return;
                    }
                }
                discard:
                route_to_host:
                no_route: { return; }
            }
            meta.length = hdr.ipv6.payload_length |+| 40;
            resolved = ipv6_neighbours.apply().hit;
        } else {
            drop(Cause.OTHER_PROTOCOL);
            return;
        }

        if (!links.apply().hit) {
            drop(Cause.NO_LINK);
        } else if (meta.length > meta.mtu) {
            // The host fragments it, or answers that it is too big.
            to_host(Cause.TOO_BIG);
        } else if (!resolved) {
            to_host(Cause.NEIGHBOUR_UNKNOWN);
        } else {
            causes.count((bit<32>) (bit<7>) Cause.FORWARDED);
            hdr.ethernet.src = meta.out_mac;
            hdr.ethernet.dst = meta.next_mac;
            // One of them is invalid, and loses this.
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
            standard_metadata.egress_spec = meta.port;
        }
    }
}

control RouterEgress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    apply {}
}

control RouterComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        // What goes to the host goes as it came.
        update_checksum(hdr.ipv4.isValid() && !hdr.packet_in.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.packet_out);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ipv6);
    }
}

V1Switch(RouterParser(),
         RouterVerifyChecksum(),
         RouterIngress(),
         RouterEgress(),
         RouterComputeChecksum(),
         RouterDeparser()) main;
