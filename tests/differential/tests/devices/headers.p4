// SPDX-License-Identifier: Apache-2.0
//
// New headers whose bytes are known at different times: as they came, one less than they were, from a table, and from a second table that
// is asked for what the first one found.

#include <core.p4>
#include <sume_switch.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header hop_t {
    bit<8>  left;
    bit<32> to;
    bit<16> flow;
}

struct headers_t {
    ethernet_t ethernet;
    hop_t      hop;
}

struct user_metadata_t {
    bit<8> next;
}

struct digest_data_t {
    bit<256> unused;
}

parser TopParser(packet_in packet, out headers_t hdr, out user_metadata_t user, out digest_data_t digest_data,
                 inout sume_metadata_t sume) {
    state start {
        user.next = 0;
        digest_data.unused = 0;
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0900: hop;
            default: reject;
        }
    }
    state hop {
        packet.extract(hdr.hop);
        transition accept;
    }
}

control TopPipe(inout headers_t hdr, inout user_metadata_t user, inout digest_data_t digest_data,
                inout sume_metadata_t sume) {
    action forward(port_t ports, bit<8> next, bit<48> src) {
        sume.dst_port = ports;
        user.next = next;
        hdr.ethernet.src = src;
    }
    table hops {
        key = { hdr.hop.to: exact; }
        actions = { forward; }
    }
    action address(bit<48> dst) {
        hdr.ethernet.dst = dst;
    }
    table stations {
        key = { user.next: exact; }
        actions = { address; NoAction; }
    }
    apply {
        hops.apply();
        stations.apply();
        hdr.hop.left = hdr.hop.left - 1;
        if (hdr.hop.left == 0) {
            sume.drop = 1;
        }
    }
}

control TopDeparser(packet_out packet, in headers_t hdr, in user_metadata_t user, inout digest_data_t digest_data,
                    inout sume_metadata_t sume) {
    apply {
        packet.emit(hdr);
    }
}

SimpleSumeSwitch(TopParser(), TopPipe(), TopDeparser()) main;
