// A switch that fits a small hardware device: stations by their addresses, with counts, idle timeouts and digests of those that are not
// known, groups, and packets from and to the controller at port 510.
#include <core.p4>
#include <v1model.p4>

#define CPU_PORT 510

@controller_header("packet_in")
header packet_in_t {
    bit<16> ingress_port;
}

@controller_header("packet_out")
header packet_out_t {
    bit<16> egress_port;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
}

struct meta_t { }

struct learn_t {
    bit<48> mac;
    bit<9>  port;
}

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
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
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply {} }

control In(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter(4, CounterType.packets_and_bytes) ports;
    register<bit<48>>(4) last;
    direct_counter(CounterType.packets_and_bytes) hits;

    action drop() { mark_to_drop(std); }
    action forward(bit<9> port) { std.egress_spec = port; }
    action flood(bit<16> group) { std.mcast_grp = group; }
    action to_cpu() {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = (bit<16>)std.ingress_port;
        std.egress_spec = CPU_PORT;
    }
    action learn() { digest<learn_t>(1, { hdr.ethernet.src, std.ingress_port }); }

    table stations {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; flood; to_cpu; drop; }
        default_action = drop();
        counters = hits;
        size = 40;
    }
    table sources {
        key = { hdr.ethernet.src: exact; }
        actions = { learn; NoAction; }
        default_action = learn();
        support_timeout = true;
        size = 16;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = (bit<9>)hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            ports.count((bit<32>)std.ingress_port);
            last.write((bit<32>)std.ingress_port, hdr.ethernet.src);
            sources.apply();
            stations.apply();
        }
    }
}

control Out(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control Compute(inout headers_t hdr, inout meta_t meta) { apply {} }

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(Parse(), Verify(), In(), Out(), Compute(), Deparse()) main;
