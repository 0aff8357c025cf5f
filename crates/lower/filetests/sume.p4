// Ports of the card become ports of the switch bit by bit: bit 2n is port n, bit 2n + 1 is port 4 + n.
// test lower
// check: digest digest_data (port: bit<8>, flag: bool) receiver 0
// in: body parser TopParser
// check: sume.src_port = mux(eq(switch.ingress_port, 32w7), 8w0x80, mux(eq(switch.ingress_port, 32w3), 8w0x40, mux(eq(switch.ingress_port, 32w6), 8w0x20, mux(eq(switch.ingress_port, 32w2), 8w0x10, mux(eq(switch.ingress_port, 32w5), 8w8, mux(eq(switch.ingress_port, 32w1), 8w4, mux(eq(switch.ingress_port, 32w4), 8w2, mux(eq(switch.ingress_port, 32w0), 8w1, 8w0))))))))
// in: body deparser TopDeparser
// check: branch eq(sume.send_dig_to_cpu[0:0], 1w1), block2, block3
// check: digest digest_data, (d.port, d.flag)
// check: switch.drop = bool_or(eq(sume.drop[0:0], 1w1), eq(sume.dst_port, 8w0))
#include <core.p4>
#include <sume_switch.p4>
header h_t { bit<8> x; }
struct headers_t { h_t h; }
struct user_t { }
struct digest_t { port_t port; bool flag; }
parser TopParser(packet_in packet, out headers_t hdr, out user_t user, out digest_t d, inout sume_metadata_t sume) {
    state start { d.port = 0; packet.extract(hdr.h); transition accept; }
}
control TopPipe(inout headers_t hdr, inout user_t user, inout digest_t d, inout sume_metadata_t sume) {
    apply { d.port = sume.src_port; sume.dst_port = 8w5; }
}
control TopDeparser(packet_out packet, in headers_t hdr, in user_t user, inout digest_t d, inout sume_metadata_t sume) {
    apply { packet.emit(hdr); }
}
SimpleSumeSwitch(TopParser(), TopPipe(), TopDeparser()) main;
