// SPDX-License-Identifier: Apache-2.0
//
// A router with network address and port translation (NAPT, RFC 3022) between private networks and the Internet.
//
// Static bindings translate an address, dynamic ones an address with a TCP or UDP port or an ICMP identifier.
// A packet from inside without a binding goes to the control plane, which makes one and sends the packet again;
// what comes from outside without one is dropped. Inside hosts reach each other by their public addresses too
// (hairpinning, RFC 4787). Checksums are not computed again but corrected by what changed (RFC 1624), so an error
// made before stays visible. Fragments and ICMP errors are dropped: both need what only another packet tells.

#include <core.p4>
#include <v1model.p4>

typedef bit<48> mac_t;
typedef bit<32> address_t;
typedef bit<9>  port_t;
typedef bit<32> delta_t;            // a sum of 16-bit words with room for carries

const int     MAX_BINDINGS = 1 << 20;
const int     MAX_STATIC = 1 << 16;
const int     MAX_ROUTES = 1 << 16;
const int     MAX_PORTS = 1 << 9;   // as many as port_t counts
const bit<32> CONTROLLER_SESSION = 100;     // the clone session that leads to the control plane
const bit<32> INGRESS_CLONE = 1;            // of instance_type
const bit<32> ETHERNET_BYTES = 14;

// What the cells of the counter `drops` count.
enum bit<32> DropReason {
    TRUNCATED    = 0,   // shorter than its headers
    NOT_IPV4     = 1,
    BAD_HEADER   = 2,   // another version, options
    BAD_CHECKSUM = 3,
    BAD_LENGTH   = 4,   // lengths that contradict each other
    TTL_EXPIRED  = 5,
    FRAGMENT     = 6,
    UNSUPPORTED  = 7,   // neither TCP, UDP nor ICMP echo
    UNKNOWN_PORT = 8,   // neither inside nor outside
    UNSOLICITED  = 9,   // from outside, for nobody
    NO_ROUTE     = 10
}
const bit<32> DROP_REASONS = 11;

enum bit<16> EtherType {
    IPV4 = 0x0800,
    ARP  = 0x0806
}

enum bit<8> Protocol {
    ICMP = 1,
    TCP  = 6,
    UDP  = 17
}

header ethernet_t {
    mac_t     dst;
    mac_t     src;
    EtherType ether_type;
}

// RFC 791
header ipv4_t {
    bit<4>    version;
    bit<4>    ihl;
    bit<8>    tos;
    bit<16>   total_length;
    bit<16>   identification;
    bit<1>    reserved;
    bit<1>    dont_fragment;
    bit<1>    more_fragments;
    bit<13>   fragment_offset;
    bit<8>    ttl;
    Protocol  protocol;
    bit<16>   checksum;
    address_t src;
    address_t dst;
}

// RFC 9293; options count as payload.
header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<4>  data_offset;
    bit<4>  reserved;
    bit<8>  flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

// RFC 768
header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> len;
    bit<16> checksum;
}

// RFC 792: an echo request (8) or reply (0)
header icmp_t {
    bit<8>  icmp_type;
    bit<8>  code;
    bit<16> checksum;
    bit<16> identifier;
    bit<16> sequence;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    tcp_t      tcp;
    udp_t      udp;
    icmp_t     icmp;
}

struct metadata_t {
    bit<16> src_id;                 // port, or identifier of an echo request
    bit<16> dst_id;                 // port, or identifier of an echo reply
    bool    from_inside;
    bool    to_outside;
    bool    destination_changed;
    delta_t address_delta;          // what the changes add to sums over the addresses,
    delta_t id_delta;               // and to sums over ports or identifiers
}

parser NatParser(packet_in packet,
                 out headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            EtherType.IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl) {
            5: transport;
            default: accept;
        }
    }

    // Only the first fragment has a transport header.
    state transport {
        transition select(hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, Protocol.TCP): tcp;
            (0, Protocol.UDP): udp;
            (0, Protocol.ICMP): icmp;
            default: accept;
        }
    }

    state tcp {
        packet.extract(hdr.tcp);
        meta.src_id = hdr.tcp.src_port;
        meta.dst_id = hdr.tcp.dst_port;
        transition accept;
    }

    state udp {
        packet.extract(hdr.udp);
        meta.src_id = hdr.udp.src_port;
        meta.dst_id = hdr.udp.dst_port;
        transition accept;
    }

    // The identifier belongs to who asks: the source of a request, the destination of a reply.
    state icmp {
        packet.extract(hdr.icmp);
        transition select(hdr.icmp.icmp_type) {
            8: echo_request;
            0: echo_reply;
            default: accept;
        }
    }

    state echo_request {
        meta.src_id = hdr.icmp.identifier;
        transition accept;
    }

    state echo_reply {
        meta.dst_id = hdr.icmp.identifier;
        transition accept;
    }
}

control NatVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

// RFC 1624, equation 3: what leaves a sum is added inverted, what enters it as it is.
delta_t change_of_word(in bit<16> old, in bit<16> new) {
    return (delta_t) ~old + (delta_t) new;
}

delta_t change_of_address(in address_t old, in address_t new) {
    return change_of_word(old[31:16], new[31:16]) + change_of_word(old[15:0], new[15:0]);
}

bit<16> corrected(in bit<16> checksum, in delta_t delta) {
    delta_t sum = (delta_t) ~checksum + delta;
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    return ~sum[15:0];
}

control NatIngress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    counter(DROP_REASONS, CounterType.packets) drops;
    // For the control plane, to see which bindings are idle.
    direct_counter(CounterType.packets_and_bytes) binding_out_use;
    direct_counter(CounterType.packets_and_bytes) binding_in_use;

    action discard(DropReason reason) {
        drops.count(reason);
        mark_to_drop(standard_metadata);
        exit;
    }

    // The clone is the packet as it came, whatever has been translated so far.
    action to_controller() {
        clone(CloneType.I2E, CONTROLLER_SESSION);
        mark_to_drop(standard_metadata);
        exit;
    }

    action set_inside() {
        meta.from_inside = true;
    }

    action set_outside() {
        meta.from_inside = false;
    }

    table interface_side {
        key = { standard_metadata.ingress_port: exact; }
        actions = { set_inside; set_outside; discard; }
        default_action = discard(DropReason.UNKNOWN_PORT);
        size = MAX_PORTS;
    }

    action set_destination(address_t address) {
        meta.address_delta = meta.address_delta + change_of_address(hdr.ipv4.dst, address);
        hdr.ipv4.dst = address;
        meta.destination_changed = true;
    }

    action set_destination_and_id(address_t address, bit<16> id) {
        set_destination(address);
        meta.id_delta = meta.id_delta + change_of_word(meta.dst_id, id);
        meta.dst_id = id;
        binding_in_use.count();
    }

    table static_in {
        key = { hdr.ipv4.dst: exact; }
        actions = { set_destination; NoAction; }
        default_action = NoAction();
        size = MAX_STATIC;
    }

    table binding_in {
        key = {
            hdr.ipv4.dst:      exact;
            hdr.ipv4.protocol: exact;
            meta.dst_id:       exact;
        }
        actions = { set_destination_and_id; NoAction; }
        default_action = NoAction();
        counters = binding_in_use;
        size = MAX_BINDINGS;
    }

    action route_inside(mac_t dmac, port_t port) {
        hdr.ethernet.dst = dmac;
        standard_metadata.egress_spec = port;
    }

    action route_outside(mac_t dmac, port_t port) {
        route_inside(dmac, port);
        meta.to_outside = true;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm; }
        actions = { route_inside; route_outside; discard; }
        default_action = discard(DropReason.NO_ROUTE);
        size = MAX_ROUTES;
    }

    action set_source(address_t address) {
        meta.address_delta = meta.address_delta + change_of_address(hdr.ipv4.src, address);
        hdr.ipv4.src = address;
    }

    action set_source_and_id(address_t address, bit<16> id) {
        set_source(address);
        meta.id_delta = meta.id_delta + change_of_word(meta.src_id, id);
        meta.src_id = id;
        binding_out_use.count();
    }

    table static_out {
        key = { hdr.ipv4.src: exact; }
        actions = { set_source; NoAction; }
        default_action = NoAction();
        size = MAX_STATIC;
    }

    table binding_out {
        key = {
            hdr.ipv4.src:      exact;
            hdr.ipv4.protocol: exact;
            meta.src_id:       exact;
        }
        actions = { set_source_and_id; to_controller; }
        default_action = to_controller();
        counters = binding_out_use;
        size = MAX_BINDINGS;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            discard(DropReason.TRUNCATED);
        }
        if (!hdr.ipv4.isValid()) {
            if (hdr.ethernet.ether_type == EtherType.ARP) {
                to_controller();
            }
            discard(DropReason.NOT_IPV4);
        }
        if (standard_metadata.checksum_error == 1) {
            discard(DropReason.BAD_CHECKSUM);
        }
        if (hdr.ipv4.version != 4 || hdr.ipv4.ihl != 5) {
            discard(DropReason.BAD_HEADER);
        }
        if (hdr.ipv4.total_length < 20
                || (bit<32>) hdr.ipv4.total_length > standard_metadata.packet_length - ETHERNET_BYTES) {
            discard(DropReason.BAD_LENGTH);
        }
        if (hdr.ipv4.ttl <= 1) {
            discard(DropReason.TTL_EXPIRED);
        }
        if (hdr.ipv4.more_fragments == 1 || hdr.ipv4.fragment_offset != 0) {
            discard(DropReason.FRAGMENT);
        }
        bit<16> segment = hdr.ipv4.total_length - 20;
        if (hdr.tcp.isValid()) {
            if (segment < 20 || hdr.tcp.data_offset < 5) {
                discard(DropReason.BAD_LENGTH);
            }
        } else if (hdr.udp.isValid()) {
            if (hdr.udp.len < 8 || hdr.udp.len > segment) {
                discard(DropReason.BAD_LENGTH);
            }
        } else if (hdr.icmp.isValid()) {
            if (segment < 8) {
                discard(DropReason.BAD_LENGTH);
            }
            if (hdr.icmp.icmp_type != 8 && hdr.icmp.icmp_type != 0) {
                discard(DropReason.UNSUPPORTED);
            }
        } else {
            discard(DropReason.UNSUPPORTED);
        }
        interface_side.apply();

        // The destination first, for routes lead to private addresses; the source when it is known where to.
        if (!static_in.apply().hit) {
            binding_in.apply();
        }
        if (!meta.from_inside && !meta.destination_changed) {
            discard(DropReason.UNSOLICITED);
        }
        ipv4_lpm.apply();
        // Who asked for a public address must be answered from it, also by a neighbour.
        if (meta.from_inside && (meta.to_outside || meta.destination_changed)) {
            if (!static_out.apply().hit) {
                binding_out.apply();
            }
        }

        // TTL and protocol are one word of the header: a hop less takes 0x0100 from it.
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        hdr.ipv4.checksum = corrected(hdr.ipv4.checksum, meta.address_delta + change_of_word(0x0100, 0));
        if (hdr.tcp.isValid()) {
            hdr.tcp.src_port = meta.src_id;
            hdr.tcp.dst_port = meta.dst_id;
            hdr.tcp.checksum = corrected(hdr.tcp.checksum, meta.address_delta + meta.id_delta);
        } else if (hdr.udp.isValid()) {
            hdr.udp.src_port = meta.src_id;
            hdr.udp.dst_port = meta.dst_id;
            // 0 says that there is no checksum, so one that comes to 0 is sent as its other form.
            if (hdr.udp.checksum != 0) {
                hdr.udp.checksum = corrected(hdr.udp.checksum, meta.address_delta + meta.id_delta);
                if (hdr.udp.checksum == 0) {
                    hdr.udp.checksum = 0xffff;
                }
            }
        } else {
            // ICMP sums no addresses.
            hdr.icmp.identifier = hdr.icmp.icmp_type == 8 ? meta.src_id : meta.dst_id;
            hdr.icmp.checksum = corrected(hdr.icmp.checksum, meta.id_delta);
        }
    }
}

control NatEgress(inout headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    action drop_frame() {
        mark_to_drop(standard_metadata);
    }

    action rewrite_smac(mac_t smac) {
        hdr.ethernet.src = smac;
    }

    // A port without an address of its own must not speak with the sender's.
    table send_frame {
        key = { standard_metadata.egress_port: exact; }
        actions = { rewrite_smac; drop_frame; }
        default_action = drop_frame();
        size = MAX_PORTS;
    }

    apply {
        if (standard_metadata.instance_type != INGRESS_CLONE) {
            send_frame.apply();
        }
    }
}

// Nothing to compute: ingress has corrected all checksums.
control NatComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control NatDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
        packet.emit(hdr.icmp);
    }
}

V1Switch(NatParser(),
         NatVerifyChecksum(),
         NatIngress(),
         NatEgress(),
         NatComputeChecksum(),
         NatDeparser()) main;
