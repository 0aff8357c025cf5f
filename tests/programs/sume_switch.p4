// SPDX-License-Identifier: Apache-2.0
//
// A learning switch for P4->NetFPGA: known addresses go to their port, others to all ports but their own, and unknown
// sources are reported to the host.
//
// Uses: sets of ports, drop, digest data, the metadata of all blocks.

#include <core.p4>
#include <sume_switch.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

// In front of what goes to the host.
header host_t {
    bit<8>  source;
    bit<16> length;
}

struct headers_t {
    host_t     host;
    ethernet_t ethernet;
}

struct user_metadata_t {
    bit<16> length;
}

struct digest_data_t {
    bit<48> address;
    port_t  port;
}

const port_t NETWORK = 0b01010101;
const port_t HOST = 0b10101010;

parser TopParser(packet_in packet, out headers_t hdr, out user_metadata_t user, out digest_data_t digest_data,
                 inout sume_metadata_t sume) {
    state start {
        packet.extract(hdr.ethernet);
        user.length = sume.pkt_len;
        transition accept;
    }
}

control TopPipe(inout headers_t hdr, inout user_metadata_t user, inout digest_data_t digest_data,
                inout sume_metadata_t sume) {
    action forward(port_t ports) { sume.dst_port = ports; }
    action flood() { sume.dst_port = NETWORK & ~sume.src_port; }
    table destinations {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; flood; }
        default_action = flood();
    }
    table sources {
        key = { hdr.ethernet.src: exact; }
        actions = { NoAction; }
    }
    apply {
        destinations.apply();
        if (!sources.apply().hit) {
            digest_data.address = hdr.ethernet.src;
            digest_data.port = sume.src_port;
            sume.send_dig_to_cpu = 1;
        }
        if (sume.dst_port & HOST != 0) {
            hdr.host.setValid();
            hdr.host.source = sume.src_port;
            hdr.host.length = user.length;
        }
        if (hdr.ethernet.type == 0x88cc) {
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
