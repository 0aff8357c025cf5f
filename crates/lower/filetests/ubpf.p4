// A program that cuts packets keeps the headers as they were parsed, for those that do not fit any more; the older
// edition has no standard metadata.
// test lower
// check: on_reject pass_on
// check: deparse_at_ingress
// check: ingress (prs, pipe, dprs)
// in: body parser prs
// check: switch.egress_spec = switch.ingress_port
// check: parsed.h.x = headers.h.x
// in: body control pipe
// check: switch.truncate = 32w9
// check: switch.drop = true
// check: switch.drop = bool_or(switch.drop, bool_and(truncated, eq(switch.truncate, 32w0)))
// in: body deparser dprs
// check: branch bool_or(le(zext(add(emitted, 32w8), 38), concat(zext(switch.truncate, 35), 3w0)), not(truncated)), block2, block3
// check: emit headers.h
// check: emit parsed.h
#include <core.p4>
#define UBPF_MODEL_VERSION 20200304
#include <ubpf_model.p4>
header h_t { bit<8> x; }
struct headers_t { h_t h; }
struct metadata_t { }
parser prs(packet_in packet, out headers_t headers, inout metadata_t meta) {
    state start { packet.extract(headers.h); transition accept; }
}
control pipe(inout headers_t headers, inout metadata_t meta) {
    apply {
        truncate(9);
        mark_to_drop();
    }
}
control dprs(packet_out packet, in headers_t headers) { apply { packet.emit(headers.h); } }
ubpf(prs(), pipe(), dprs()) main;
