// SPDX-License-Identifier: Apache-2.0
//
// Virtual links with the objects that the agent of SNMP knows by their names, without anything else of an AFDX switch: a frame is
// discarded for the reason that its first payload byte says, 0 to 7, or forwarded to port 1.

#include <core.p4>
#include <v1model.p4>

const bit<32> REASONS = 8;

header ethernet_t {
    bit<32> prefix;
    bit<16> vl;
    bit<48> src;
    bit<16> ether_type;
}

header payload_t {
    bit<8> reason;
}

struct headers_t {
    ethernet_t ethernet;
    payload_t payload;
}

struct metadata_t {
    bit<32> number;
    bit<3>  mode;
    bool    is_known;
}

parser VlParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.payload);
        transition accept;
    }
}

control VlVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control VlIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets_and_bytes) frames;
    counter(64 * 8, CounterType.packets) port_discards;
    counter((1 << 16) * 8, CounterType.packets) vl_discards;

    action forward(bit<32> number) {
        meta.number = number;
        meta.is_known = true;
        sm.egress_spec = 1;
    }
    table vls {
        key = {
            sm.ingress_port: exact;
            hdr.ethernet.vl: exact;
        }
        actions = { forward; NoAction; }
        default_action = NoAction();
        counters = frames;
        size = 1 << 16;
    }

    action set_mode(bit<3> mode) { meta.mode = mode; }
    table switch_mode {
        key = { }
        actions = { set_mode; }
        default_action = set_mode(1);
        size = 1;
    }

    apply {
        switch_mode.apply();
        vls.apply();
        bit<32> reason = (bit<32>)hdr.payload.reason;
        if (!meta.is_known) {
            reason = 2;
        } else if (meta.mode == 2) {
            reason = 6;
        }
        if (reason < REASONS) {
            port_discards.count((bit<32>)sm.ingress_port * REASONS + reason);
            if (meta.is_known) {
                vl_discards.count(meta.number * REASONS + reason);
            }
            mark_to_drop(sm);
        }
    }
}

control VlEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    counter(64, CounterType.packets) port_aged;
    counter(1 << 16, CounterType.packets) vl_aged;
    apply {
        if (hdr.payload.reason == 9) {
            port_aged.count((bit<32>)sm.egress_port);
            vl_aged.count(meta.number);
            mark_to_drop(sm);
        }
    }
}

control VlCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control VlDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.payload);
    }
}

V1Switch(VlParser(), VlVerify(), VlIngress(), VlEgress(), VlCompute(), VlDeparser()) main;
