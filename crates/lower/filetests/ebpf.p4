// A filter drops what it does not accept and what its parser rejects; all else leaves by the port that it came in on.
// test lower
// check: on_reject drop
// check: ingress (prs, pipe)
// in: register
// check: register pipe.c: bit<32> size 10
// in: table pipe.t {
// check: size 77
// in: body control pipe
// check: register_read pipe.tmp, pipe.c, 32w3
// check: register_write pipe.c, 32w3, add(pipe.tmp, 32w1)
// check: switch.drop = not(pass)
// check: switch.egress_spec = switch.ingress_port
// check-not: emit headers.h
#include <core.p4>
#include <ebpf_model.p4>
header h_t { bit<8> x; }
struct headers_t { h_t h; }
parser prs(packet_in packet, out headers_t headers) {
    state start { packet.extract(headers.h); transition accept; }
}
control pipe(inout headers_t headers, out bool pass) {
    CounterArray(10, false) c;
    table t {
        key = { headers.h.x: exact; }
        actions = { NoAction; }
        implementation = array_table(77);
    }
    apply {
        c.increment(3);
        pass = t.apply().hit;
    }
}
ebpfFilter(prs(), pipe()) main;
