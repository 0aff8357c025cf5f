// SPDX-License-Identifier: Apache-2.0
//
// Finds heavy flows: a count-min sketch estimates how many packets a pair of hosts has sent, a meter how fast, and
// each packet leaves with a trailer of both in front of its payload.
//
// Uses: registers, hash, for loops of both kinds with break and continue, saturating arithmetic, slices, shifts,
// concatenation, an indexed meter and counter, a function with an out parameter.

#include <core.p4>
#include <v1model.p4>

const bit<32> ROWS = 3;
const bit<32> COLUMNS = 1024;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header addresses_t {
    bit<32> src;
    bit<32> dst;
}

header report_t {
    bit<32> estimate;
    bit<8>  magnitude;      // bits that the estimate needs
    bit<8>  set_bits;       // in the estimate, without its lowest bit
    bit<8>  colour;         // 0 green, 1 yellow, 2 red
    bit<8>  folded;         // the four bytes of src, exclusive or
}

struct headers_t {
    ethernet_t  ethernet;
    addresses_t addresses;
    report_t    report;
}

struct metadata_t {}

/// Position of the highest bit set, from 1; 0 for 0.
void magnitude(in bit<32> number, out bit<8> bits) {
    bits = 0;
    for (bit<8> i = 0; i < 32; i = i + 1) {
        if (number >> i == 0) {
            break;
        }
        bits = bits + 1;
    }
}

parser SketchParser(packet_in packet,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.addresses);
        transition accept;
    }
}

control SketchVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control SketchIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    register<bit<32>>(ROWS * COLUMNS) counts;
    register<bit<32>>(1) limit;             // 0: none
    meter(16, MeterType.packets) rates;     // by the last four bits of the source
    counter(33, CounterType.packets) magnitudes;

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            mark_to_drop(standard_metadata);
            return;
        }
        hdr.report.setValid();
        hdr.report.estimate = 0xffffffff;
        for (bit<32> row in 0 .. ROWS - 1) {
            bit<32> column;
            bit<32> count;
            hash(column, HashAlgorithm.crc32, 32w0, { row, hdr.addresses.src, hdr.addresses.dst }, COLUMNS);
            counts.read(count, row * COLUMNS + column);
            count = count |+| 1;
            counts.write(row * COLUMNS + column, count);
            if (count < hdr.report.estimate) {
                hdr.report.estimate = count;
            }
        }

        magnitude(hdr.report.estimate, hdr.report.magnitude);
        magnitudes.count((bit<32>) hdr.report.magnitude);

        hdr.report.set_bits = 0;
        for (bit<5> position in 1 .. 31) {
            if ((hdr.report.estimate >> position)[0:0] == 0) {
                continue;
            }
            hdr.report.set_bits = hdr.report.set_bits + 1;
        }

        hdr.report.folded = hdr.addresses.src[31:24] ^ hdr.addresses.src[23:16]
                          ^ hdr.addresses.src[15:8] ^ hdr.addresses.src[7:0];

        bit<2> colour;
        rates.execute_meter((bit<32>) hdr.addresses.src[3:0], colour);
        hdr.report.colour = 6w0 ++ colour;

        bit<32> most;
        limit.read(most, 0);
        if (most != 0 && hdr.report.estimate > most) {
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = 1;
        }
    }
}

control SketchEgress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    apply {}
}

control SketchComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control SketchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(SketchParser(), SketchVerifyChecksum(), SketchIngress(), SketchEgress(), SketchComputeChecksum(),
         SketchDeparser()) main;
