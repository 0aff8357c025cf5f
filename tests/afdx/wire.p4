// SPDX-License-Identifier: Apache-2.0
//
// Two ports joined: what comes by one leaves by the other.

#include <core.p4>
#include <v1model.p4>

struct headers_t { }
struct metadata_t { }

parser WireParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}

control WireVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control WireIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { sm.egress_spec = sm.ingress_port ^ 1; }
}

control WireEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control WireCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control WireDeparser(packet_out packet, in headers_t hdr) { apply { } }

V1Switch(WireParser(), WireVerify(), WireIngress(), WireEgress(), WireCompute(), WireDeparser()) main;
