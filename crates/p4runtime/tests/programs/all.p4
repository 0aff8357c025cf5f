// Every kind of object that P4Runtime can name, in one v1model program.
#include <core.p4>
#include <v1model.p4>

#define CPU_PORT 510

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> pad;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> len;
    bit<16> id;
    bit<16> frag;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    ipv4_t       ipv4;
}

struct meta_t {
    bit<2> color;
}

struct learn_t {
    bit<48> mac;
    bit<9>  port;
}

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) ip_types;
    state start {
        transition select(std.ingress_port) {
            CPU_PORT: from_cpu;
            default: ethernet;
        }
    }
    state from_cpu {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ip_types: ipv4;
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply {} }

control In(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter(16, CounterType.packets_and_bytes) ports;
    meter(16, MeterType.bytes) limits;
    register<bit<32>>(8) last;
    direct_counter(CounterType.packets_and_bytes) route_hits;
    direct_meter<bit<2>>(MeterType.packets) acl_meter;
    action_selector(HashAlgorithm.crc16, 64, 16) ecmp_members;
    action_profile(16) nexthops;

    action drop() { mark_to_drop(std); }
    action forward(bit<9> port) { std.egress_spec = port; }
    action to_cpu(bit<7> reason) {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = std.ingress_port;
        hdr.packet_in.reason = reason;
        std.egress_spec = CPU_PORT;
    }
    action flood(bit<16> group) { std.mcast_grp = group; }
    action learn() { digest<learn_t>(1, { hdr.ethernet.src, std.ingress_port }); }

    table route {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; to_cpu; @defaultonly NoAction; @tableonly flood; }
        default_action = NoAction();
        counters = route_hits;
        size = 4096;
    }
    table acl {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.protocol: range;
            hdr.ethernet.type: optional;
        }
        actions = { drop; to_cpu; NoAction; }
        meters = acl_meter;
        size = 128;
    }
    table sources {
        key = { hdr.ethernet.src: exact; }
        actions = { learn; NoAction; }
        default_action = learn();
        support_timeout = true;
        size = 1024;
    }
    table ecmp {
        key = {
            hdr.ipv4.dst: lpm;
            hdr.ipv4.src: selector;
        }
        actions = { forward; drop; }
        implementation = ecmp_members;
        size = 64;
    }
    table next {
        key = { hdr.ipv4.tos: exact; }
        actions = { forward; drop; }
        implementation = nexthops;
        size = 64;
    }
    table fixed {
        key = { hdr.ethernet.type: exact; }
        actions = { drop; NoAction; }
        const entries = {
            0x86dd: drop();
            0x8100: NoAction();
        }
        const default_action = NoAction();
    }

    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            ports.count((bit<32>)std.ingress_port);
            limits.execute_meter<bit<2>>((bit<32>)std.ingress_port, meta.color);
            last.write(0, (bit<32>)std.ingress_port);
            sources.apply();
            fixed.apply();
            if (hdr.ipv4.isValid()) {
                if (!ecmp.apply().hit) {
                    route.apply();
                }
                next.apply();
                acl_meter.read(meta.color);
                acl.apply();
                if (hdr.ipv4.ttl == 1) {
                    clone(CloneType.I2E, 5);
                }
            }
        }
    }
}

control Out(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control Compute(inout headers_t hdr, inout meta_t meta) { apply {} }

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(Parse(), Verify(), In(), Out(), Compute(), Deparse()) main;
