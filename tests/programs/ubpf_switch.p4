// SPDX-License-Identifier: Apache-2.0
//
// A switch in user space whose packets say what is done with them.
//
// Uses: all output actions and marks, truncate, hash, incremental checksums, a register as a map, the time.

#include <core.p4>
#include <ubpf_model.p4>

header order_t {
    bit<8>  what;
    bit<8>  port;
    bit<16> length;
}

header data_t {
    bit<16> checksum;
    bit<16> small;
    bit<32> large;
}

header result_t {
    bit<32> hash;
    bit<32> seen;
    bit<48> time;
}

struct headers_t {
    order_t  order;
    data_t   data;
    result_t result;
}

struct metadata_t { }

parser prs(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata std) {
    state start {
        packet.extract(hdr.order);
        transition select(hdr.order.what) {
            0xff: reject;
            default: data;
        }
    }
    state data {
        packet.extract(hdr.data);
        transition accept;
    }
}

control pipe(inout headers_t hdr, inout metadata_t meta, inout standard_metadata std) {
    // A map of eight flows: keys that differ by a multiple of eight share a cell.
    Register<bit<32>, bit<32>>(8) seen;

    apply {
        switch (hdr.order.what) {
            1: { std.output_action = ubpf_action.REDIRECT; std.output_port = (bit<32>) hdr.order.port; }
            2: { std.output_action = ubpf_action.DROP; }
            3: { std.output_action = ubpf_action.ABORT; }
            4: { mark_to_drop(); }
            5: { mark_to_drop(); mark_to_pass(); }
            6: { truncate((bit<32>) hdr.order.length); hdr.data.large = 0xdeadbeef; }
            7: {
                hdr.data.checksum = csum_replace2(hdr.data.checksum, hdr.data.small, 0x1234);
                hdr.data.checksum = csum_replace4(hdr.data.checksum, hdr.data.large, 0x00c0ffee);
                hdr.data.small = 0x1234;
                hdr.data.large = 0x00c0ffee;
            }
            8: {
                hdr.result.setValid();
                hash(hdr.result.hash, HashAlgorithm.lookup3, { hdr.data.checksum, hdr.data.small, hdr.data.large });
                bit<32> count = seen.read(hdr.data.large) + 1;
                seen.write(hdr.data.large, count);
                hdr.result.seen = count;
                hdr.result.time = ubpf_time_get_ns();
            }
            9: {
                hdr.result.setValid();
                hash(hdr.result.hash, HashAlgorithm.lookup3, 240w0x466f75722073636f726520616e6420736576656e2079656172732061676f);
                hdr.result.seen = std.input_port;
                hdr.result.time = (bit<48>) std.packet_length;
            }
            10: { std.clone = true; std.clone_port = (bit<32>) hdr.order.port; hdr.data.small = 0xbeef; }
            default: { }
        }
    }
}

control dprs(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.order);
        packet.emit(hdr.data);
        packet.emit(hdr.result);
    }
}

ubpf(prs(), pipe(), dprs()) main;
