// A layer-2 and layer-3 switch as programs for v1model are usually written.
#include <core.p4>
#include <v1model.p4>

typedef bit<48> Mac;
type bit<9> Port;
const bit<16> TYPE_IPV4 = 0x0800;

enum bit<16> EtherType { ipv4 = TYPE_IPV4, vlan = 0x8100, other = 0xFFFF }

header ethernet_t { Mac dst; Mac src; EtherType type; }
header vlan_t { bit<3> pcp; bit<1> dei; bit<12> vid; EtherType type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> length; bit<16> id; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst;
}
header options_t { varbit<320> data; }
struct headers { ethernet_t ethernet; vlan_t[2] vlan; ipv4_t ipv4; options_t options; }
struct metadata { bit<12> vid; bool routed; Port out_port; }
struct mac_learn_t { Mac src; bit<9> port; }

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    value_set<EtherType>(4) tags;
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            EtherType.ipv4: ipv4;
            EtherType.vlan: vlan;
            tags: vlan;
            default: accept;
        }
    }
    state vlan {
        packet.extract(hdr.vlan.next);
        meta.vid = hdr.vlan.last.vid;
        transition select(hdr.vlan.last.type, hdr.vlan.lastIndex) {
            (EtherType.vlan, 0): vlan;
            (EtherType.ipv4, _): ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4, error.ParserInvalidArgument);
        transition select(hdr.ipv4.ihl) {
            5: accept;
            6 .. 15: options;
            default: reject;
        }
    }
    state options {
        packet.extract(hdr.options, ((bit<32>)hdr.ipv4.ihl - 5) << 5);
        transition accept;
    }
}

control Verify(inout headers hdr, inout metadata meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Ttl(inout ipv4_t ip)(bit<8> least) {
    apply {
        if (ip.ttl <= least) { exit; }
        ip.ttl = ip.ttl |-| 1;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    counter(512, CounterType.packets_and_bytes) ports;
    register<bit<48>>(1024) seen;
    direct_counter(CounterType.packets) hits;
    Ttl(1) ttl;
    action drop() { mark_to_drop(std); }
    action forward(Port port) { std.egress_spec = (bit<9>)port; hits.count(); }
    action route(in bool final, Mac next, bit<9> port) {
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = next;
        std.egress_spec = port;
        meta.routed = final;
    }
    table l2 {
        key = { hdr.ethernet.dst : exact; meta.vid : exact @name("vlan"); }
        actions = { forward; drop; @defaultonly NoAction; }
        default_action = NoAction();
        counters = hits;
        size = 4096;
    }
    table l3 {
        key = { hdr.ipv4.dst : lpm; hdr.ipv4.isValid() : exact; hdr.ipv4.tos[7:2] : exact; }
        actions = { route(true); drop; }
        const default_action = drop;
        const entries = {
            (0x0A000000 &&& 0xFF000000, true, 0) : route(0x0102_0304_0506, 3);
            (_, true, 1) : route(next = 1, port = 2);
        }
    }
    table acl {
        key = { hdr.ipv4.src : ternary; hdr.ipv4.protocol : range; }
        actions = { drop; NoAction; }
        entries = {
            (0x0A000001, 6 .. 17) : drop();
            (_, 1) : NoAction();
        }
    }
    apply {
        ports.count((bit<32>)std.ingress_port);
        bit<48> last;
        seen.read(last, (bit<32>)hdr.ethernet.src[9:0]);
        seen.write(0, std.ingress_global_timestamp);
        if (hdr.ipv4.isValid() && l3.apply().hit) {
            ttl.apply(hdr.ipv4);
        } else {
            switch (l2.apply().action_run) {
                forward: { digest<mac_learn_t>(1, { hdr.ethernet.src, std.ingress_port }); }
                drop:
                default: { return; }
            }
        }
        acl.apply();
    }
}
control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply {} }
control Compute(inout headers hdr, inout metadata meta) {
    apply {
        update_checksum(true, { hdr.ipv4.src, hdr.ipv4.dst, 8w0 }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}
control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}
V1Switch(MyParser(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;
