// Sends what comes in by a port out by another one, as `steer` says, and counts it in a register.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> kind;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Check(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<32>>(4) seen;

    action drop() {
        mark_to_drop(std);
    }

    action send(bit<9> port) {
        std.egress_spec = port;
    }

    table steer {
        key = {
            std.ingress_port : exact;
        }
        actions = {
            send;
            drop;
        }
        default_action = drop();
    }

    apply {
        bit<32> count;
        seen.read(count, (bit<32>)std.ingress_port);
        seen.write((bit<32>)std.ingress_port, count + 1);
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
