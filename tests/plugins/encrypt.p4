/* Packets get a header with a nonce and a tag, and their payload is encrypted: by key and nonce of a table. */
#include <core.p4>
#include <v1model.p4>

@plugin("encrypt", rewrites) extern void encrypt(in bit<128> key, in bit<96> nonce, out bit<128> tag);

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header sealed_t { bit<96> nonce; bit<128> tag; }
struct headers { ethernet_t ethernet; sealed_t sealed; }
struct metadata { }

parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(h.ethernet); transition accept; }
}
control C(inout headers h, inout metadata m) { apply { } }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    action seal(bit<128> key, bit<96> nonce) {
        h.sealed.setValid();
        h.sealed.nonce = nonce;
        encrypt(key, nonce, h.sealed.tag);
    }
    table keys {
        key = { h.ethernet.dst: exact; }
        actions = { seal; NoAction; }
        const entries = {
            0x020000000001: seal(0xfeffe9928665731c6d6a8f9467308308, 0xcafebabefacedbaddecaf888);
        }
        default_action = NoAction();
    }
    apply { keys.apply(); s.egress_spec = 1; }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h.ethernet); p.emit(h.sealed); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
