// SPDX-License-Identifier: Apache-2.0
//
// A packet filter: it lets TCP pass to allowed ports and from allowed networks, follows connections otherwise, and
// counts.
//
// Uses: a parser that rejects, hash and array tables, prefixes, sparse and dense counters, the sample extern functions
// for eBPF.

#include <core.p4>
#include <ebpf_model.p4>

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
    bit<32> srcAddr;
    bit<32> dstAddr;
}

header tcp_t {
    bit<16> srcPort;
    bit<16> dstPort;
    bit<32> seq;
    bit<32> acked;
    bit<4>  data_offset;
    bit<6>  spare;
    bit<1>  urg;
    bit<1>  ack;
    bit<1>  psh;
    bit<1>  rst;
    bit<1>  syn;
    bit<1>  fin;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    tcp_t      tcp;
}

extern bool verify_ipv4_checksum(in ipv4_t ip);
extern bool tcp_conntrack(in headers_t headers);

parser prs(packet_in packet, out headers_t hdr) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            0x0806: accept;
            default: reject;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            6: tcp;
            default: reject;
        }
    }
    state tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }
}

control pipe(inout headers_t hdr, out bool pass) {
    CounterArray(32w4, false) verdicts;     // 0: refused, 1: by a table, 2: by its connection, 3: ARP
    CounterArray(32w256, true) bytes;       // by source address

    action allow() { pass = true; }
    action deny() { pass = false; }
    table ports {
        key = { hdr.tcp.dstPort: exact; }
        actions = { allow; deny; NoAction; }
        implementation = hash_table(64);
    }
    table networks {
        key = { hdr.ipv4.srcAddr: lpm; }
        actions = { allow; deny; NoAction; }
        default_action = NoAction();
        implementation = hash_table(64);
    }
    apply {
        if (!hdr.ipv4.isValid()) {
            pass = true;
            verdicts.increment(3);
            return;
        }
        bytes.add(hdr.ipv4.srcAddr, (bit<32>) hdr.ipv4.length);
        if (!verify_ipv4_checksum(hdr.ipv4)) {
            verdicts.increment(0);
            exit;
        }
        bit<32> verdict = 1;
        if (!ports.apply().hit && !networks.apply().hit) {
            pass = tcp_conntrack(hdr);
            verdict = 2;
        }
        // A filter cannot change the packet.
        hdr.ipv4.ttl = 0;
        hdr.tcp.setInvalid();
        verdicts.increment(pass ? verdict : 0);
    }
}

ebpfFilter(prs(), pipe()) main;
