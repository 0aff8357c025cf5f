// SPDX-License-Identifier: Apache-2.0
//
// A network card that counts tunnels in: packets from the network lose their tag and go to the host's port of that
// number, packets from the host get one, and a packet with several tags goes round until one is left.
//
// Uses: the blocks of PNA with both directions, recirculation with its passes, mirroring, dropping by default.

#include <core.p4>
#include <pna.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header tag_t {
    bit<8>  number;
    bit<8>  passes;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
    tag_t      tag;
}

struct pre_metadata_t {
    bool seen;
}

struct metadata_t { }

parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta, in pna_main_parser_input_metadata_t istd) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x88b5: tag;
            default: accept;
        }
    }
    state tag {
        packet.extract(hdr.tag);
        transition accept;
    }
}

control Pre(in headers_t hdr, inout pre_metadata_t meta, in pna_pre_input_metadata_t istd,
            inout pna_pre_output_metadata_t ostd) {
    apply { meta.seen = istd.direction == PNA_Direction_t.NET_TO_HOST; }
}

control Main(inout headers_t hdr, inout metadata_t meta, in pna_main_input_metadata_t istd,
             inout pna_main_output_metadata_t ostd) {
    Counter<bit<32>, bit<1>>(2, PNA_CounterType_t.PACKETS) by_direction;

    action deliver(PortId_t port) { send_to_port(port); }
    action refuse() { drop_packet(); }
    table hosts {
        key = { hdr.tag.number: exact; }
        actions = { deliver; refuse; }
        default_action = refuse();
    }

    apply {
        by_direction.count(SelectByDirection(istd.direction, 1w1, 1w0));
        if (istd.parser_error != error.NoError) {
            drop_packet();
        } else if (istd.direction == PNA_Direction_t.NET_TO_HOST) {
            if (hdr.tag.isValid()) {
                hdr.ethernet.type = hdr.tag.type;
                if (hdr.tag.type == 0x88b5) {
                    send_to_port((PortId_t) 32w1);
                    recirculate();
                } else {
                    mirror_packet((MirrorSlotId_t) 8w0, (MirrorSessionId_t) 16w3);
                    hosts.apply();
                    hdr.ethernet.src[7:0] = (bit<8>) (PassNumberUint_t) istd.pass;
                }
                hdr.tag.setInvalid();
            }
            // A packet without a tag goes nowhere.
        } else {
            hdr.tag.setValid();
            hdr.tag.number = (bit<8>) ((PortIdUint_t) istd.input_port - 256);
            hdr.tag.type = hdr.ethernet.type;
            hdr.ethernet.type = 0x88b5;
            send_to_port((PortId_t) 32w1);
        }
    }
}

control MainDeparser(packet_out packet, in headers_t hdr, in metadata_t meta, in pna_main_output_metadata_t ostd) {
    apply { packet.emit(hdr); }
}

PNA_NIC(MainParser(), Pre(), Main(), MainDeparser()) main;
