/* Packets of TCP and UDP are classified; the class is the low byte of the destination address when they leave by port 1. */
#include <core.p4>
#include <v1model.p4>

@plugin("classify", passes) extern bit<8> classify(
    in bit<48> dst, in bit<48> src, in bit<32> from, in bit<32> to,
    in bit<16> from_port, in bit<16> to_port, in bit<8> protocol, in bit<32> seq, in bit<32> ack);

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> len; bit<16> id; bit<16> fragment; bit<8> ttl; bit<8> protocol;
    bit<16> checksum; bit<32> src; bit<32> dst;
}
header ports_t { bit<16> src; bit<16> dst; }
header udp_t { bit<16> len; bit<16> checksum; }
header tcp_t { bit<32> seq; bit<32> ack; bit<4> offset; bit<12> flags; bit<16> window; bit<16> checksum; bit<16> urgent; }
header options_t { varbit<320> options; }
struct headers { ethernet_t ethernet; ipv4_t ipv4; ports_t ports; udp_t udp; tcp_t tcp; options_t options; }
struct metadata { }

parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(h.ethernet); transition select(h.ethernet.type) { 0x800: ipv4; default: accept; } }
    state ipv4 {
        p.extract(h.ipv4);
        transition select(h.ipv4.ihl, h.ipv4.protocol) { (5, 6): tcp; (5, 17): udp; default: accept; }
    }
    state udp { p.extract(h.ports); p.extract(h.udp); transition accept; }
    state tcp {
        p.extract(h.ports);
        p.extract(h.tcp);
        p.extract(h.options, 32 * (bit<32>)(h.tcp.offset - 5));
        transition accept;
    }
}
control C(inout headers h, inout metadata m) { apply { } }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        if (h.ports.isValid()) {
            h.ethernet.dst[7:0] = classify(h.ethernet.dst, h.ethernet.src, h.ipv4.src, h.ipv4.dst, h.ports.src, h.ports.dst,
                h.ipv4.protocol, h.tcp.seq, h.tcp.ack);
        }
    }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers h) {
    apply { p.emit(h.ethernet); p.emit(h.ipv4); p.emit(h.ports); p.emit(h.udp); p.emit(h.tcp); p.emit(h.options); }
}
V1Switch(P(), C(), I(), E(), C(), D()) main;
