// SPDX-License-Identifier: Apache-2.0
//
// XDP: answers for one port, redirects by a table, and takes the rest apart.
//
// Uses: all actions, the checksum of an IPv4 header, an incremental one, a perf event.

#include <core.p4>
#include <xdp_model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> length;
    bit<16> ident;
    bit<3>  flags;
    bit<13> offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

parser prs(packet_in packet, out headers_t hdr) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control sw(inout headers_t hdr, in xdp_input input, out xdp_output output) {
    action redirect(bit<32> port) {
        output.output_action = xdp_action.XDP_REDIRECT;
        output.output_port = port;
    }
    action to_host() { output.output_action = xdp_action.XDP_PASS; }
    action back() { output.output_action = xdp_action.XDP_TX; }
    action drop() { output.output_action = xdp_action.XDP_DROP; }
    action undecided() { }
    table routes {
        key = { hdr.ipv4.dst: exact; }
        actions = { redirect; to_host; back; drop; undecided; }
        default_action = undecided();
        implementation = hash_table(16);
    }
    apply {
        routes.apply();
        if (output.output_action == xdp_action.XDP_TX) {
            // Written anew, byte by byte, since the addresses change places.
            bit<32> address = hdr.ipv4.src;
            hdr.ipv4.src = hdr.ipv4.dst;
            hdr.ipv4.dst = address;
            hdr.ipv4.tos = 0x10;
            hdr.ipv4.checksum = ebpf_ipv4_checksum(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length,
                hdr.ipv4.ident, hdr.ipv4.flags, hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src,
                hdr.ipv4.dst);
        } else if (output.output_action == xdp_action.XDP_REDIRECT) {
            bit<16> before = hdr.ipv4.ttl ++ hdr.ipv4.protocol;
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            hdr.ipv4.checksum = csum_replace2(hdr.ipv4.checksum, before, hdr.ipv4.ttl ++ hdr.ipv4.protocol);
        } else {
            BPF_PERF_EVENT_OUTPUT();
        }
    }
}

control dprs(in headers_t hdr, packet_out packet) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

xdp(prs(), sw(), dprs()) main;
