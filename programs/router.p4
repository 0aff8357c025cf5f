// SPDX-License-Identifier: Apache-2.0
//
// An IPv4 and IPv6 router: longest prefix match, a next hop, a source address of the port it leaves by.
//
// It is the small program of two lookups whose speed is measured and compared; for a network of stations that it does not
// know take ip_router.p4, which looks at who frames are for, has a host answer ARP, and more.
//
// It forwards what a router may forward without thinking and drops the rest: other protocols, headers with
// options, a wrong checksum, a packet whose time to live ends here. It answers nothing itself (ARP, neighbour
// discovery, ICMP); hosts get their neighbours by configuration.

#include <core.p4>
#include <v1model.p4>

typedef bit<48> mac_t;
typedef bit<9>  port_t;

const int MAX_ROUTES = 1 << 20;     // of each family: a full Internet table
const int MAX_PORTS = 1 << 9;       // as many as port_t counts

enum bit<16> EtherType {
    IPV4 = 0x0800,
    IPV6 = 0x86dd
}

header ethernet_t {
    mac_t     dst;
    mac_t     src;
    EtherType type;
}

// RFC 791
header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

// RFC 8200
header ipv6_t {
    bit<4>   version;
    bit<8>   traffic_class;
    bit<20>  flow_label;
    bit<16>  payload_length;
    bit<8>   next_header;
    bit<8>   hop_limit;
    bit<128> src;
    bit<128> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ipv6_t     ipv6;
}

struct metadata_t {}

parser RouterParser(packet_in packet,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            EtherType.IPV4: ipv4;
            EtherType.IPV6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        transition accept;
    }
}

control RouterVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action set_nhop(mac_t dmac, port_t port) {
        hdr.ethernet.dst = dmac;
        standard_metadata.egress_spec = port;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm; }
        actions = { set_nhop; drop; }
        default_action = drop();
        size = MAX_ROUTES;
    }

    table ipv6_lpm {
        key = { hdr.ipv6.dst: lpm; }
        actions = { set_nhop; drop; }
        default_action = drop();
        size = MAX_ROUTES;
    }

    apply {
        // A truncated header is invalid, so it ends in the last branch like any other protocol.
        if (hdr.ipv4.isValid()
                && hdr.ipv4.version == 4
                && hdr.ipv4.ihl == 5
                && hdr.ipv4.ttl > 1
                && standard_metadata.checksum_error == 0) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            ipv4_lpm.apply();
        } else if (hdr.ipv6.isValid()
                && hdr.ipv6.version == 6
                && hdr.ipv6.hop_limit > 1) {
            hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
            ipv6_lpm.apply();
        } else {
            drop();
        }
    }
}

control RouterEgress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action rewrite_smac(mac_t smac) {
        hdr.ethernet.src = smac;
    }

    // A port without an address of its own must not speak with the sender's.
    table send_frame {
        key = { standard_metadata.egress_port: exact; }
        actions = { rewrite_smac; drop; }
        default_action = drop();
        size = MAX_PORTS;
    }

    apply {
        send_frame.apply();
    }
}

control RouterComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
    }
}

V1Switch(RouterParser(),
         RouterVerifyChecksum(),
         RouterIngress(),
         RouterEgress(),
         RouterComputeChecksum(),
         RouterDeparser()) main;
