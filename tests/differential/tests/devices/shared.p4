// Ingress and egress ask the same registers, counter and meter; what they found leaves in the frame.
#include <core.p4>
#include <v1model.p4>

header found_t {
    bit<8>  to;        // the port, or a multicast group from 16 on
    bit<8>  index;
    bit<32> first_in;  // what ingress found in `first` and `second`
    bit<32> second_in;
    bit<32> first_out; // and egress
    bit<32> second_out;
    bit<8>  color_in;
    bit<8>  color_out;
}

struct headers { found_t found; }
struct metadata { bit<2> color; }

register<bit<32>>(8) first;
register<bit<32>>(8) second;
counter(8, CounterType.packets) passes;
meter(8, MeterType.packets) pace;

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.found);
        transition accept;
    }
}

control V(inout headers hdr, inout metadata meta) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        bit<32> index = (bit<32>) hdr.found.index;
        if (hdr.found.to >= 16) {
            std.mcast_grp = (bit<16>) (hdr.found.to - 16);
        } else {
            std.egress_spec = (bit<9>) hdr.found.to;
        }
        first.read(hdr.found.first_in, index);
        first.write(index, hdr.found.first_in + 1);
        second.read(hdr.found.second_in, index);
        second.write(index, hdr.found.second_in + 1);
        passes.count(index);
        pace.execute_meter(index, meta.color);
        hdr.found.color_in = (bit<8>) meta.color;
    }
}

// In the other order.
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        bit<32> index = (bit<32>) hdr.found.index;
        pace.execute_meter(index, meta.color);
        hdr.found.color_out = (bit<8>) meta.color;
        passes.count(index);
        second.read(hdr.found.second_out, index);
        second.write(index, hdr.found.second_out + 1);
        first.read(hdr.found.first_out, index);
        first.write(index, hdr.found.first_out + 1);
    }
}

control D(packet_out pkt, in headers hdr) { apply { pkt.emit(hdr.found); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
