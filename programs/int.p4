// SPDX-License-Identifier: Apache-2.0
//
// In-band network telemetry: packets of chosen flows collect, hop by hop, by which ports they went, how long each node took
// and what waited in its queues. INT-MD of the P4.org specification "In-band Network Telemetry (INT) Dataplane" 2.1, over
// UDP and TCP; reports as "Telemetry Report Format" 2.0 has them.
//
//   Ethernet  IPv4  UDP to INT_PORT  shim  INT header  last hop ... first hop  payload of UDP, or TCP
//
// A node is the source of what `watchlist` names: it puts shim and INT header after the UDP header, or for TCP a UDP header
// of its own before TCP. Each node with a number (`node`) puts its metadata before that of earlier nodes.
// The node with the port that leads out (`sinks`) takes all off again, so the host gets the packet that was sent, and sends
// the collector a clone of what came in. Under all that lies a bridge with known stations.
//
// Times are microseconds of this node's clock, occupancy is packets. What this switch does not have (interfaces of level 2,
// utilisation, buffers) is all ones, as the specification has it. No IPv6, IPv4 options or fragments; no domain's own
// instructions.

#include <core.p4>
#include <v1model.p4>

typedef bit<48> mac_t;
typedef bit<32> address_t;
typedef bit<9>  port_t;

const bit<16> INT_PORT = 28672;             // IANA has assigned none: the same on all nodes, and not used otherwise
const bit<4>  INT_MD = 1;                   // types of the shim
const bit<4>  INT_VERSION = 2;
const bit<2>  PAYLOAD_OF_UDP = 1;           // what follows the stack (NPT of the shim)
const bit<2>  WHOLE_L4 = 2;
const bit<8>  INT_WORDS = 3;                // of the INT header, in 32 bits
const bit<16> FIXED_BYTES = 16;             // shim and INT header
const bit<16> UDP_BYTES = 8;
const bit<8>  PROTOCOL_TCP = 6;
const bit<8>  PROTOCOL_UDP = 17;
const bit<32> INGRESS_CLONE = 1;            // of instance_type
const int     MAX_PORTS = 1 << 9;           // as many as port_t counts

// A report: Ethernet, IPv4, UDP, group, individual report with three words of this node, then the packet.
const bit<16> REPORT_UDP_BYTES = 40;        // from the UDP header to the packet
const bit<32> REPORT_BYTES = 74;            // all that stands before the packet
const bit<32> REPORTED_BYTES = 1000;        // of a packet at most: the report counts 255 words, 5 of them its own
const bit<8>  REPORT_OWN_WORDS = 5;

header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> type;
}

// RFC 791
header ipv4_t {
    bit<4>    version;
    bit<4>    ihl;
    bit<8>    tos;
    bit<16>   total_length;
    bit<16>   identification;
    bit<3>    flags;
    bit<13>   fragment_offset;
    bit<8>    ttl;
    bit<8>    protocol;
    bit<16>   checksum;
    address_t src;
    address_t dst;
}

// RFC 768
header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> len;
    bit<16> checksum;
}

// INT 2.1, "INT over TCP/UDP"
header shim_t {
    bit<4>  type;
    bit<2>  next;                           // NPT
    bit<2>  reserved;
    bit<8>  words;                          // of all that follows up to the payload
    bit<16> original;                       // the UDP port, or in the last 8 bits the protocol
}

// INT 2.1, "INT-MD Metadata Header Format"
header int_t {
    bit<4>  version;
    bit<1>  discard;                        // D: the sink does not forward it
    bit<1>  hops_exceeded;                  // E
    bit<1>  mtu_exceeded;                   // M
    bit<12> reserved;
    bit<5>  hop_words;                      // Hop ML: what each hop adds
    bit<8>  remaining_hops;
    bit<16> instructions;                   // the first bit is the highest
    bit<16> domain;
    bit<16> domain_instructions;
    bit<16> domain_flags;
}

// What hops before have added.
header stack_t {
    varbit<8064> hops;
}

// What this hop adds, one header for each instruction.
header hop_node_t {
    bit<32> id;
}

header hop_ports_t {
    bit<16> ingress;
    bit<16> egress;
}

header hop_latency_t {
    bit<32> microseconds;
}

header hop_queue_t {
    bit<8>  id;
    bit<24> packets;
}

header hop_time_t {
    bit<64> microseconds;
}

// All ones: what is asked for and not known here. Five of them make any number of words up to 31.
header unknown_1_t  { bit<32>  ones; }
header unknown_2_t  { bit<64>  ones; }
header unknown_4_t  { bit<128> ones; }
header unknown_8_t  { bit<256> ones; }
header unknown_16_t { bit<512> ones; }

// Telemetry Report Format 2.0, "Group Header" and "Individual Report Header" of type INT
header report_t {
    bit<4>  version;
    bit<6>  hardware;
    bit<22> sequence;
    bit<32> node;
    bit<4>  type;
    bit<4>  inner;
    bit<8>  words;                          // of what follows this word
    bit<8>  metadata_words;
    bit<1>  dropped;
    bit<1>  congested;
    bit<1>  tracked;
    bit<1>  intermediate;
    bit<4>  reserved;
    bit<16> metadata_bits;                  // numbered as instructions
    bit<16> domain;
    bit<16> domain_bits;
    bit<16> domain_status;
    bit<16> ingress;                        // bit 1
    bit<16> egress;
    bit<64> came;                           // bit 4
}

struct headers_t {
    ethernet_t    report_ethernet;
    ipv4_t        report_ipv4;
    udp_t         report_udp;
    report_t      report;
    ethernet_t    ethernet;
    ipv4_t        ipv4;
    udp_t         udp;
    shim_t        shim;
    int_t         int_md;
    hop_node_t    node;
    hop_ports_t   ports;
    hop_latency_t latency;
    hop_queue_t   queue;
    hop_time_t    came;
    hop_time_t    left;
    unknown_1_t   unknown_1;
    unknown_2_t   unknown_2;
    unknown_4_t   unknown_4;
    unknown_8_t   unknown_8;
    unknown_16_t  unknown_16;
    stack_t       stack;
}

// The list of fields that a report's clone keeps.
const bit<8> FOR_REPORT = 1;

struct metadata_t {
    bit<16> l4_src_port;            // of UDP and TCP
    bit<16> l4_dst_port;
    // what the source puts in, 0 where nothing starts
    bit<16> start_instructions;
    bit<5>  start_hop_words;
    bit<8>  start_max_hops;
    // of the sink
    bit<32> collector;
    // of the node and the link in egress
    bit<1>  is_node;
    bit<32> node_id;
    bit<16> mtu;
    // of the packet that is reported
    @field_list(FOR_REPORT)
    bit<16> in_port;
    @field_list(FOR_REPORT)
    bit<16> out_port;
    @field_list(FOR_REPORT)
    bit<64> came;
}

parser IntParser(packet_in packet,
                 out headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        // With options, or in a fragment, nothing is put after the header.
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.flags & 1, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (4, 5, 0, 0, PROTOCOL_UDP): udp;
            (4, 5, 0, 0, PROTOCOL_TCP): tcp;
            default: accept;
        }
    }

    state tcp {
        bit<32> l4_ports = packet.lookahead<bit<32>>();
        meta.l4_src_port = l4_ports[31:16];
        meta.l4_dst_port = l4_ports[15:0];
        transition accept;
    }

    state udp {
        packet.extract(hdr.udp);
        meta.l4_src_port = hdr.udp.src_port;
        meta.l4_dst_port = hdr.udp.dst_port;
        transition select(hdr.udp.dst_port) {
            INT_PORT: shim;
            default: accept;
        }
    }

    state shim {
        packet.extract(hdr.shim);
        // The specification has other types; they pass as they are.
        transition select(hdr.shim.type, hdr.shim.next, hdr.shim.words) {
            (INT_MD, PAYLOAD_OF_UDP, 3 .. 255): int_md;
            (INT_MD, WHOLE_L4, 3 .. 255): int_md;
            default: accept;
        }
    }

    state int_md {
        packet.extract(hdr.int_md);
        packet.extract(hdr.stack, (bit<32>) (hdr.shim.words - INT_WORDS) << 5);
        transition accept;
    }
}

control IntVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

// The UDP checksum by what has changed (RFC 1624), so that damage on the way is still found at the end. `removed` is the
// complement of the sum of what the packet had; headers that are not there add nothing. 0 is no checksum, and stays.
control NewUdpChecksum(inout headers_t hdr, in bit<16> removed) {
    apply {
        if (hdr.udp.checksum != 0) {
            bit<16> sum;
            // The length twice: it stands in the pseudo header too.
            hash(sum, HashAlgorithm.csum16, 16w0,
                 { ~hdr.udp.checksum, removed, hdr.udp.len, hdr.udp.len, hdr.udp.dst_port, hdr.shim, hdr.int_md,
                   hdr.node, hdr.ports, hdr.latency, hdr.queue, hdr.came, hdr.left,
                   hdr.unknown_1, hdr.unknown_2, hdr.unknown_4, hdr.unknown_8, hdr.unknown_16 }, 32w65536);
            hdr.udp.checksum = sum == 0 ? 16w0xffff : sum;
        }
    }
}

control IntIngress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    NewUdpChecksum() new_udp_checksum;

    action drop() {
        mark_to_drop(standard_metadata);
        exit;
    }

    // ---- The bridge ----

    action forward(port_t port) {
        standard_metadata.egress_spec = port;
    }

    table stations {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 65536;
    }

    // ---- Which ports are inside ----

    // Hosts have no business with telemetry: what they send to INT_PORT is dropped.
    table int_ports {
        key = { standard_metadata.ingress_port: exact; }
        actions = { NoAction; drop; }
        default_action = drop();
        size = MAX_PORTS;
    }

    // ---- Source ----

    action start(bit<16> instructions, bit<5> hop_words, bit<8> max_hops) {
        meta.start_instructions = instructions;
        meta.start_hop_words = hop_words;
        meta.start_max_hops = max_hops;
    }

    // `hop_words` is what the instructions make: 1 for each, 2 for bits 4, 5 and 6.
    table watchlist {
        key = {
            hdr.ipv4.src:      ternary;
            hdr.ipv4.dst:      ternary;
            hdr.ipv4.protocol: ternary;
            meta.l4_dst_port:  ternary;
        }
        actions = { start; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    // ---- Sink ----

    action report(bit<32> session) {
        meta.collector = session;
    }

    // The ports that lead to hosts, and the clone session that leads to the collector.
    table sinks {
        key = { standard_metadata.egress_spec: exact; }
        actions = { report; NoAction; }
        default_action = NoAction();
        size = MAX_PORTS;
    }

    action copy_to_collector() {
        meta.in_port = (bit<16>) standard_metadata.ingress_port;
        meta.out_port = (bit<16>) standard_metadata.egress_spec;
        meta.came = (bit<64>) standard_metadata.ingress_global_timestamp;
        clone_preserving_field_list(CloneType.I2E, meta.collector, FOR_REPORT);
    }

    action remove_int() {
        hdr.shim.setInvalid();
        hdr.int_md.setInvalid();
        hdr.stack.setInvalid();
    }

    apply {
        if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            drop();
        }
        if (hdr.ipv4.isValid() && (bit<32>) hdr.ipv4.total_length + 14 > standard_metadata.packet_length) {
            drop();
        }
        bool udp_is_all = !hdr.udp.isValid() || hdr.udp.len == hdr.ipv4.total_length - 20;
        if (hdr.shim.isValid()) {
            int_ports.apply();
        }
        stations.apply();
        bool to_host = sinks.apply().hit;

        if (hdr.int_md.isValid()) {
            bit<16> bytes = ((bit<16>) hdr.shim.words + 1) << 2;
            if (!udp_is_all || hdr.udp.len < UDP_BYTES + bytes) {
                drop();                             // lengths that contradict each other
            }
            if (to_host) {
                copy_to_collector();
                if (hdr.int_md.discard == 1) {
                    drop();                         // the clone is made all the same
                }
                bit<16> removed;
                hash(removed, HashAlgorithm.csum16, 16w0,
                     { hdr.udp.len, hdr.udp.len, hdr.udp.dst_port, hdr.shim, hdr.int_md, hdr.stack }, 32w65536);
                hdr.ipv4.total_length = hdr.ipv4.total_length - bytes;
                if (hdr.shim.next == WHOLE_L4) {
                    hdr.ipv4.protocol = hdr.shim.original[7:0];
                    hdr.ipv4.total_length = hdr.ipv4.total_length - UDP_BYTES;
                    hdr.udp.setInvalid();
                    remove_int();
                } else {
                    hdr.udp.dst_port = hdr.shim.original;
                    hdr.udp.len = hdr.udp.len - bytes;
                    remove_int();
                    new_udp_checksum.apply(hdr, removed);
                }
            }
        } else if (!to_host && meta.l4_dst_port != 0 && !hdr.shim.isValid() && udp_is_all) {
            watchlist.apply();
        }
    }
}

// What a hop does: the INT header's flags, and metadata as its instructions say.
control Hop(inout headers_t hdr, in metadata_t meta, in standard_metadata_t standard_metadata) {
    bit<5> words;                                   // of the instructions that this switch knows

    action add_node() {
        hdr.node.setValid();
        hdr.node.id = meta.node_id;
    }

    action add_ports() {
        hdr.ports.setValid();
        hdr.ports.ingress = (bit<16>) standard_metadata.ingress_port;
        hdr.ports.egress = (bit<16>) standard_metadata.egress_port;
    }

    // From the first byte read to the end of waiting for the link: deq_timedelta and what ingress took.
    action add_latency() {
        hdr.latency.setValid();
        hdr.latency.microseconds = standard_metadata.deq_timedelta
            + (standard_metadata.enq_timestamp - standard_metadata.ingress_global_timestamp[31:0]);
    }

    // The longer of the queue that the packet came to and the queue that it left.
    action add_queue() {
        bit<19> packets = standard_metadata.enq_qdepth;
        if (standard_metadata.deq_qdepth > packets) {
            packets = standard_metadata.deq_qdepth;
        }
        hdr.queue.setValid();
        hdr.queue.id = (bit<8>) standard_metadata.qid;
        hdr.queue.packets = (bit<24>) packets;
    }

    action add_times(bit<1> ingress, bit<1> egress) {
        if (ingress == 1) {
            hdr.came.setValid();
            hdr.came.microseconds = (bit<64>) standard_metadata.ingress_global_timestamp;
        }
        if (egress == 1) {
            hdr.left.setValid();
            hdr.left.microseconds = (bit<64>) standard_metadata.egress_global_timestamp;
        }
    }

    action add_unknown(bit<5> rest) {
        if (rest[0:0] == 1) { hdr.unknown_1.setValid();  hdr.unknown_1.ones = ~32w0; }
        if (rest[1:1] == 1) { hdr.unknown_2.setValid();  hdr.unknown_2.ones = ~64w0; }
        if (rest[2:2] == 1) { hdr.unknown_4.setValid();  hdr.unknown_4.ones = ~128w0; }
        if (rest[3:3] == 1) { hdr.unknown_8.setValid();  hdr.unknown_8.ones = ~256w0; }
        if (rest[4:4] == 1) { hdr.unknown_16.setValid(); hdr.unknown_16.ones = ~512w0; }
    }

    apply {
        bit<16> asked = hdr.int_md.instructions;
        words = (bit<5>) asked[15:15] + (bit<5>) asked[14:14] + (bit<5>) asked[13:13] + (bit<5>) asked[12:12]
            + 2 * (bit<5>) asked[11:11] + 2 * (bit<5>) asked[10:10];
        bit<16> bytes = (bit<16>) hdr.int_md.hop_words << 2;

        if (hdr.int_md.hop_words < words || 255 - hdr.shim.words < (bit<8>) hdr.int_md.hop_words) {
            // It cannot be done as it is asked: nothing is added.
        } else if (hdr.int_md.remaining_hops == 0) {
            hdr.int_md.hops_exceeded = 1;
        } else if (meta.mtu < bytes || hdr.ipv4.total_length > meta.mtu - bytes) {
            hdr.int_md.mtu_exceeded = 1;
        } else {
            hdr.int_md.remaining_hops = hdr.int_md.remaining_hops - 1;
            if (asked[15:15] == 1) { add_node(); }
            if (asked[14:14] == 1) { add_ports(); }
            if (asked[13:13] == 1) { add_latency(); }
            if (asked[12:12] == 1) { add_queue(); }
            add_times(asked[11:11], asked[10:10]);
            // All other instructions come after these, so one run of ones is right for them.
            add_unknown(hdr.int_md.hop_words - words);
            hdr.shim.words = hdr.shim.words + (bit<8>) hdr.int_md.hop_words;
            hdr.udp.len = hdr.udp.len + bytes;
            hdr.ipv4.total_length = hdr.ipv4.total_length + bytes;
        }
    }
}

control IntEgress(inout headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    Hop() hop;
    NewUdpChecksum() new_udp_checksum;
    register<bit<32>>(512) report_numbers;          // of the next report by a port

    action be_node(bit<32> id) {
        meta.is_node = 1;
        meta.node_id = id;
    }

    // Without a number this is no node: what others have begun passes as it is.
    table node {
        actions = { be_node; NoAction; }
        default_action = NoAction();
    }

    action set_mtu(bit<16> mtu) {
        meta.mtu = mtu;
    }

    table links {
        key = { standard_metadata.egress_port: exact; }
        actions = { set_mtu; }
        default_action = set_mtu(1500);
        size = MAX_PORTS;
    }

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action send_report(mac_t smac, mac_t dmac, address_t src, address_t dst, bit<16> dst_port) {
        // As much of the packet as a report has room for, in whole words.
        bit<32> bytes = standard_metadata.packet_length;
        if (bytes > REPORTED_BYTES) {
            bytes = REPORTED_BYTES;
        }
        bytes = bytes & ~32w3;
        truncate(bytes + REPORT_BYTES);

        hdr.report_ethernet.setValid();
        hdr.report_ethernet.dst = dmac;
        hdr.report_ethernet.src = smac;
        hdr.report_ethernet.type = 0x0800;
        hdr.report_ipv4.setValid();
        hdr.report_ipv4.version = 4;
        hdr.report_ipv4.ihl = 5;
        hdr.report_ipv4.tos = 0;
        hdr.report_ipv4.total_length = (bit<16>) bytes + REPORT_UDP_BYTES + 20;
        hdr.report_ipv4.identification = 0;         // never fragmented, so it needs none (RFC 6864)
        hdr.report_ipv4.flags = 2;
        hdr.report_ipv4.fragment_offset = 0;
        hdr.report_ipv4.ttl = 64;
        hdr.report_ipv4.protocol = PROTOCOL_UDP;
        hdr.report_ipv4.src = src;
        hdr.report_ipv4.dst = dst;
        hdr.report_udp.setValid();
        hdr.report_udp.src_port = dst_port;
        hdr.report_udp.dst_port = dst_port;
        hdr.report_udp.len = (bit<16>) bytes + REPORT_UDP_BYTES;
        hdr.report_udp.checksum = 0;

        bit<32> number;
        report_numbers.read(number, (bit<32>) standard_metadata.egress_port);
        report_numbers.write((bit<32>) standard_metadata.egress_port, number + 1);
        hdr.report.setValid();
        hdr.report.version = 2;
        hdr.report.hardware = 0;
        hdr.report.sequence = number[21:0];
        hdr.report.node = meta.node_id;
        hdr.report.type = 1;                        // INT
        hdr.report.inner = 3;                       // Ethernet
        hdr.report.words = (bit<8>) (bytes >> 2) + REPORT_OWN_WORDS;
        hdr.report.metadata_words = 3;
        hdr.report.dropped = 0;
        hdr.report.congested = 0;
        hdr.report.tracked = 1;
        hdr.report.intermediate = 0;
        hdr.report.reserved = 0;
        hdr.report.metadata_bits = 0x4800;          // bits 1 and 4
        hdr.report.domain = 0;
        hdr.report.domain_bits = 0;
        hdr.report.domain_status = 0;
        hdr.report.ingress = meta.in_port;
        hdr.report.egress = meta.out_port;
        hdr.report.came = meta.came;
    }

    table collectors {
        key = { standard_metadata.egress_port: exact; }
        actions = { send_report; drop; }
        default_action = drop();
        size = MAX_PORTS;
    }

    action start_fixed() {
        hdr.shim.setValid();
        hdr.shim.type = INT_MD;
        hdr.shim.reserved = 0;
        hdr.shim.words = INT_WORDS;
        hdr.int_md.setValid();
        hdr.int_md.version = INT_VERSION;
        hdr.int_md.discard = 0;
        hdr.int_md.hops_exceeded = 0;
        hdr.int_md.mtu_exceeded = 0;
        hdr.int_md.reserved = 0;
        hdr.int_md.hop_words = meta.start_hop_words;
        hdr.int_md.remaining_hops = meta.start_max_hops;
        hdr.int_md.instructions = meta.start_instructions;
        hdr.int_md.domain = 0;
        hdr.int_md.domain_instructions = 0;
        hdr.int_md.domain_flags = 0;
        hdr.ipv4.total_length = hdr.ipv4.total_length + FIXED_BYTES;
    }

    action start_in_udp() {
        start_fixed();
        hdr.shim.next = PAYLOAD_OF_UDP;
        hdr.shim.original = hdr.udp.dst_port;
        hdr.udp.dst_port = INT_PORT;
        hdr.udp.len = hdr.udp.len + FIXED_BYTES;
    }

    // A source port that is a hash of the flow keeps it on one way.
    action start_before_tcp() {
        start_fixed();
        hdr.shim.next = WHOLE_L4;
        hdr.shim.original = (bit<16>) hdr.ipv4.protocol;
        hdr.udp.setValid();
        hash(hdr.udp.src_port, HashAlgorithm.crc16, 16w49152,
             { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.l4_src_port, meta.l4_dst_port }, 32w16384);
        hdr.udp.dst_port = INT_PORT;
        hdr.udp.len = hdr.ipv4.total_length - 20 + UDP_BYTES;
        hdr.udp.checksum = 0;
        hdr.ipv4.protocol = PROTOCOL_UDP;
        hdr.ipv4.total_length = hdr.ipv4.total_length + UDP_BYTES;
    }

    apply {
        node.apply();
        if (standard_metadata.instance_type == INGRESS_CLONE) {
            collectors.apply();
        } else if (meta.is_node == 1 && (hdr.int_md.isValid() || meta.start_instructions != 0)) {
            links.apply();
            bit<16> removed;
            hash(removed, HashAlgorithm.csum16, 16w0,
                 { hdr.udp.len, hdr.udp.len, hdr.udp.dst_port, hdr.shim, hdr.int_md }, 32w65536);
            if (!hdr.int_md.isValid()) {
                // Where the headers themselves have no room, nothing starts.
                if (hdr.udp.isValid()) {
                    if (hdr.ipv4.total_length + FIXED_BYTES <= meta.mtu) {
                        start_in_udp();
                    }
                } else if (hdr.ipv4.total_length + FIXED_BYTES + UDP_BYTES <= meta.mtu) {
                    start_before_tcp();
                }
            }
            if (hdr.int_md.isValid()) {
                hop.apply(hdr, meta, standard_metadata);
                new_udp_checksum.apply(hdr, removed);
            }
        }
    }
}

control IntComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.report_ipv4.isValid(),
            { hdr.report_ipv4.version, hdr.report_ipv4.ihl, hdr.report_ipv4.tos, hdr.report_ipv4.total_length,
              hdr.report_ipv4.identification, hdr.report_ipv4.flags, hdr.report_ipv4.fragment_offset,
              hdr.report_ipv4.ttl, hdr.report_ipv4.protocol, hdr.report_ipv4.src, hdr.report_ipv4.dst },
            hdr.report_ipv4.checksum, HashAlgorithm.csum16);
    }
}

control IntDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(IntParser(), IntVerifyChecksum(), IntIngress(), IntEgress(), IntComputeChecksum(), IntDeparser()) main;
