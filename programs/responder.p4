// SPDX-License-Identifier: Apache-2.0
//
// Answers packets by itself: ARP requests for its addresses and ICMP echo requests to them. All else passes, so that it
// stands between a port of a network and whatever has its addresses, and takes these questions off it.
//
// The checksum of an echo is not computed again over its data, but by what changes in it (RFC 1624): the frame can leave
// before its end is there, and a request that is damaged gets an answer that is.

#include <core.p4>
#include <v1model.p4>

typedef bit<48> mac_t;
typedef bit<32> ipv4_address_t;
typedef bit<9>  port_t;

const int    MAX_PORTS = 64;
const int    MAX_ADDRESSES = 256;
const bit<8> TTL = 64;

enum bit<16> EtherType {
    IPV4 = 0x0800,
    ARP  = 0x0806
}

enum bit<16> ArpOperation {
    REQUEST = 1,
    REPLY   = 2
}

enum bit<8> Icmp {
    ECHO_REPLY   = 0,
    ECHO_REQUEST = 8
}

const bit<8>  PROTOCOL_ICMP = 1;
const bit<16> ETHERNET = 1;         // ARP's kind of hardware
const mac_t   BROADCAST = 0xffffffffffff;

header ethernet_t {
    mac_t     dst;
    mac_t     src;
    EtherType type;
}

// RFC 826, for Ethernet and IPv4
header arp_t {
    bit<16>        hardware;
    bit<16>        protocol;
    bit<8>         hardware_length;
    bit<8>         protocol_length;
    ArpOperation   operation;
    mac_t          sender_mac;
    ipv4_address_t sender_ip;
    mac_t          target_mac;
    ipv4_address_t target_ip;
}

// RFC 791
header ipv4_t {
    bit<4>         version;
    bit<4>         ihl;
    bit<8>         tos;
    bit<16>        total_length;
    bit<16>        identification;
    bit<3>         flags;
    bit<13>        fragment_offset;
    bit<8>         ttl;
    bit<8>         protocol;
    bit<16>        checksum;
    ipv4_address_t src;
    ipv4_address_t dst;
}

// RFC 792: identifier, number and data of an echo follow
header icmp_t {
    Icmp    type;
    bit<8>  code;
    bit<16> checksum;
}

struct headers_t {
    ethernet_t ethernet;
    arp_t      arp;
    ipv4_t     ipv4;
    icmp_t     icmp;
}

struct metadata_t {
    ipv4_address_t asked;       // the address that a question is for
    bool           is_answer;
}

parser ResponderParser(packet_in packet,
                       out headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            EtherType.ARP:  parse_arp;
            EtherType.IPV4: parse_ipv4;
            default:        accept;
        }
    }

    state parse_arp {
        packet.extract(hdr.arp);
        meta.asked = hdr.arp.target_ip;
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        meta.asked = hdr.ipv4.dst;
        // Options, and all but a packet's first part, are none of its business.
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.protocol, hdr.ipv4.flags & 1, hdr.ipv4.fragment_offset) {
            (4, 5, PROTOCOL_ICMP, 0, 0): parse_icmp;
            default:                     accept;
        }
    }

    state parse_icmp {
        packet.extract(hdr.icmp);
        transition accept;
    }
}

control ResponderVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.icmp.isValid(),
                        { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification,
                          hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src,
                          hdr.ipv4.dst },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control ResponderIngress(inout headers_t hdr,
                         inout metadata_t meta,
                         inout standard_metadata_t standard_metadata) {
    mac_t own_mac = 0;
    direct_counter(CounterType.packets) answers;

    action own(mac_t address) {
        own_mac = address;
    }

    // The ports that it answers at.
    table interfaces {
        key = { standard_metadata.ingress_port: exact; }
        actions = { own; @defaultonly NoAction; }
        default_action = NoAction();
        size = MAX_PORTS;
    }

    action answer() {
        answers.count();
    }

    // The addresses that it answers for.
    table addresses {
        key = {
            standard_metadata.ingress_port: exact;
            meta.asked: exact;
        }
        actions = { answer; @defaultonly NoAction; }
        default_action = NoAction();
        counters = answers;
        size = MAX_ADDRESSES;
    }

    action to_port(port_t port) {
        standard_metadata.egress_spec = port;
    }

    action drop() {
        mark_to_drop(standard_metadata);
    }

    // Where what it does not answer goes.
    table others {
        key = { standard_metadata.ingress_port: exact; }
        actions = { to_port; drop; }
        default_action = drop();
        size = MAX_PORTS;
    }

    action back() {
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = own_mac;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    action reply_arp() {
        hdr.arp.operation = ArpOperation.REPLY;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_ip = hdr.arp.sender_ip;
        hdr.arp.sender_mac = own_mac;
        hdr.arp.sender_ip = meta.asked;
        back();
    }

    action reply_echo() {
        hdr.ipv4.dst = hdr.ipv4.src;
        hdr.ipv4.src = meta.asked;
        hdr.ipv4.ttl = TTL;
        hdr.icmp.type = Icmp.ECHO_REPLY;
        // RFC 1624, equation 3, for a word that was 0x0800 and is 0.
        bit<17> sum = (bit<17>)(~hdr.icmp.checksum) + 0xf7ff;
        hdr.icmp.checksum = ~(sum[15:0] + (bit<16>)sum[16:16]);
        back();
    }

    apply {
        bool is_question = false;
        if (standard_metadata.parser_error == error.NoError && interfaces.apply().hit) {
            if (hdr.arp.isValid()) {
                is_question = hdr.arp.hardware == ETHERNET && hdr.arp.protocol == (bit<16>)EtherType.IPV4 &&
                              hdr.arp.hardware_length == 6 && hdr.arp.protocol_length == 4 &&
                              hdr.arp.operation == ArpOperation.REQUEST &&
                              (hdr.ethernet.dst == BROADCAST || hdr.ethernet.dst == own_mac);
            } else if (hdr.icmp.isValid()) {
                is_question = hdr.icmp.type == Icmp.ECHO_REQUEST && hdr.icmp.code == 0 &&
                              hdr.ethernet.dst == own_mac && standard_metadata.checksum_error == 0;
            }
        }
        if (is_question && addresses.apply().hit) {
            meta.is_answer = true;
            if (hdr.arp.isValid()) {
                reply_arp();
            } else {
                reply_echo();
            }
        }
        if (!meta.is_answer) {
            others.apply();
        }
    }
}

control ResponderEgress(inout headers_t hdr,
                        inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    apply {}
}

control ResponderComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        // Of what is not answered it stays as it came.
        update_checksum(hdr.icmp.isValid() && meta.is_answer,
                        { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification,
                          hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src,
                          hdr.ipv4.dst },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control ResponderDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.icmp);
    }
}

V1Switch(ResponderParser(),
         ResponderVerifyChecksum(),
         ResponderIngress(),
         ResponderEgress(),
         ResponderComputeChecksum(),
         ResponderDeparser()) main;
