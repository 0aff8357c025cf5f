// SPDX-License-Identifier: Apache-2.0
//
// One of each object that the package handles. The first byte behind the Ethernet header says what is to be done.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header probe_t {
    bit<8>   op;
    bit<8>   a;
    bit<16>  b;
    bit<32>  c;
    bit<128> d;
}

struct headers_t {
    ethernet_t ethernet;
    probe_t    probe;
}

struct metadata_t {
    bit<2> color;
}

struct seen_t {
    bit<48> src;
    bit<9>  port;
    bool    known;
}

parser ObjectsParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    value_set<bit<16>>(4) probe_types;

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x88b5: probe;
            probe_types: probe;
            default: accept;
        }
    }

    state probe {
        packet.extract(hdr.probe);
        transition accept;
    }
}

control ObjectsVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ObjectsIngress(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    counter(4, CounterType.packets_and_bytes) seen;
    direct_counter(CounterType.packets) kinds_hits;
    direct_meter<bit<2>>(MeterType.packets) rates;
    meter(2, MeterType.bytes) shared_rates;
    register<bit<40>>(8) cells;
    action_selector(HashAlgorithm.crc16, 16, 16) spread;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action send(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action flood(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }

    action copy_to(bit<32> session) {
        clone(CloneType.I2E, session);
    }

    action remember(bit<32> cell) {
        cells.write(cell, hdr.ethernet.src[39:0]);
        seen.count(cell);
    }

    action tell() {
        digest<seen_t>(1, { hdr.ethernet.src, standard_metadata.ingress_port, true });
        log_msg("a is {}", { hdr.probe.a });
    }

    action paint() {
        rates.read(meta.color);
        hdr.probe.a = (bit<8>) meta.color;
    }

    action paint_shared(bit<32> cell) {
        shared_rates.execute_meter(cell, meta.color);
        hdr.probe.a = (bit<8>) meta.color;
    }

    table kinds {
        key = {
            hdr.probe.op: exact;
            hdr.probe.a: ternary;
            hdr.probe.b: range;
            hdr.probe.c: lpm;
            hdr.probe.d: optional;
        }
        actions = { send; drop; @defaultonly NoAction; }
        default_action = NoAction();
        counters = kinds_hits;
        size = 64;
    }

    table acts {
        key = { hdr.probe.op: exact; }
        actions = { send; flood; copy_to; remember; tell; paint_shared; NoAction; }
        default_action = NoAction();
    }

    table painted {
        key = { hdr.probe.op: exact; }
        actions = { paint; NoAction; }
        default_action = NoAction();
        meters = rates;
    }

    table spread_out {
        key = { hdr.probe.op: exact; hdr.probe.c: selector; }
        actions = { send; NoAction; }
        default_action = NoAction();
        implementation = spread;
    }

    table fixed {
        key = { hdr.probe.op: exact; }
        actions = { send; NoAction; }
        const entries = { 0xfe: send(6); }
        const default_action = NoAction();
    }

    apply {
        drop();
        if (hdr.probe.isValid()) {
            kinds.apply();
            acts.apply();
            painted.apply();
            spread_out.apply();
            fixed.apply();
        }
    }
}

control ObjectsEgress(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    apply {}
}

control ObjectsCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ObjectsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.probe);
    }
}

V1Switch(ObjectsParser(), ObjectsVerify(), ObjectsIngress(), ObjectsEgress(), ObjectsCompute(),
         ObjectsDeparser()) main;
