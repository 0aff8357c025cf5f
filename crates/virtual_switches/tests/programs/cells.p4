// Sends a frame as `steer` says for its destination, and writes what it knows of it into the frame: the mark of the entry, the version of the
// program, and how many frames have come for the cell of the destination.
#include <core.p4>
#include <v1model.p4>

#define VERSION 1
#define ACTIONS send; drop;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> kind;
}

header record_t {
    bit<16> number;
    bit<16> mark;
    bit<8>  version;
    bit<32> count;
}

struct headers_t {
    ethernet_t ethernet;
    record_t   record;
}

struct metadata_t {
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.record);
        transition accept;
    }
}

control Check(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<32>>(8) seen;
    counter(8, CounterType.packets_and_bytes) counted;

    action drop() {
        mark_to_drop(std);
    }

    action send(bit<9> port, bit<16> mark) {
        std.egress_spec = port;
        hdr.record.mark = mark;
    }

    table steer {
        key = {
            hdr.ethernet.dst : exact;
        }
        actions = {
            ACTIONS
        }
        default_action = drop();
    }

    apply {
        bit<32> cell = (bit<32>)hdr.ethernet.dst[2:0];
        bit<32> count;
        seen.read(count, cell);
        count = count + 1;
        seen.write(cell, count);
        counted.count(cell);
        hdr.record.count = count;
        hdr.record.version = VERSION;
        steer.apply();
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Parse(), Check(), In(), Out(), Check(), Deparse()) main;
