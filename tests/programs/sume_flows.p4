// SPDX-License-Identifier: Apache-2.0
//
// Watches flows on P4->NetFPGA: counts their packets, remembers the largest value that each has sent, and says so to
// who asks.
//
// Uses: the stateful atoms, the longitudinal redundancy check, the checksum of an IPv4 header, the time.

#include <core.p4>
#include <sume_switch.p4>

#define REG_READ 8w0
#define REG_WRITE 8w1
#define REG_ADD 8w2
#define REG_SUB 8w3
#define REG_READ_WRITE 8w5
#define GT_RELOP 8w2
#define LT_RELOP 8w3
#define HASH_WIDTH 5

@Xilinx_MaxLatency(1)
@Xilinx_ControlWidth(0)
extern void hash_lrc(in bit<24> in_data, out bit<HASH_WIDTH> result);

@Xilinx_MaxLatency(64)
@Xilinx_ControlWidth(HASH_WIDTH)
extern void packets_reg_raw(in bit<HASH_WIDTH> index, in bit<16> newVal, in bit<16> incVal, in bit<8> opCode,
                            out bit<16> result);

@Xilinx_MaxLatency(64)
@Xilinx_ControlWidth(HASH_WIDTH)
extern void largest_reg_praw(in bit<HASH_WIDTH> index, in bit<16> newVal, in bit<16> incVal, in bit<8> opCode,
                             in bit<16> compVal, in bit<8> relOp, out bit<16> result, out bit<1> boolean);

@Xilinx_MaxLatency(64)
@Xilinx_ControlWidth(1)
extern void sizes_reg_ifElseRaw(in bit<1> index_2, in bit<16> newVal_2, in bit<16> incVal_2, in bit<8> opCode_2,
                                in bit<1> index_1, in bit<16> newVal_1, in bit<16> incVal_1, in bit<8> opCode_1,
                                in bit<1> index_comp, in bit<16> compVal, in bit<8> relOp,
                                out bit<16> result, out bit<1> boolean);

@Xilinx_MaxLatency(64)
@Xilinx_ControlWidth(1)
extern void last_reg_rw(in bit<1> index, in bit<16> newVal, in bit<8> opCode, out bit<16> result);

@Xilinx_MaxLatency(64)
@Xilinx_ControlWidth(1)
extern void budget_reg_sub(in bit<1> index, in bit<16> newVal, in bit<16> incVal, in bit<8> opCode, out bit<16> result);

@Xilinx_MaxLatency(1)
@Xilinx_ControlWidth(0)
extern void ip_ip_chksum(in bit<4> version, in bit<4> ihl, in bit<8> tos, in bit<16> length, in bit<16> ident,
                         in bit<3> flags, in bit<13> offset, in bit<8> ttl, in bit<8> protocol, in bit<16> checksum,
                         in bit<32> src, in bit<32> dst, out bit<16> result);

@Xilinx_MaxLatency(1)
@Xilinx_ControlWidth(0)
extern void tin_timestamp(in bit<1> valid, out bit<64> result);

header query_t {
    bit<24> flow;
    bit<16> value;
}

header answer_t {
    bit<8>  cell;
    bit<16> packets;
    bit<16> largest;
    bit<8>  larger;
    bit<16> in_class;
    bit<8>  is_large;
    bit<16> previous;
    bit<16> budget;
    bit<16> checksum;
    bit<64> time;
}

struct headers_t {
    query_t  query;
    answer_t answer;
}

struct user_metadata_t {
    bit<8> unused;
}

struct digest_data_t {
    bit<80> unused;
}

@Xilinx_MaxPacketRegion(1024)
parser TopParser(packet_in packet, out headers_t hdr, out user_metadata_t user, out digest_data_t digest_data,
                 inout sume_metadata_t sume) {
    state start {
        packet.extract(hdr.query);
        user.unused = 0;
        digest_data.unused = 0;
        transition accept;
    }
}

control TopPipe(inout headers_t hdr, inout user_metadata_t user, inout digest_data_t digest_data,
                inout sume_metadata_t sume) {
    bit<HASH_WIDTH> cell;
    bit<1> larger;
    bit<1> is_large;
    bit<16> value;

    apply {
        value = hdr.query.value;
        hdr.answer.setValid();
        hash_lrc(hdr.query.flow, cell);
        hdr.answer.cell = (bit<8>) cell;
        packets_reg_raw(cell, 0, 1, REG_ADD, hdr.answer.packets);
        largest_reg_praw(cell, value, 0, REG_WRITE, value, GT_RELOP, hdr.answer.largest, larger);
        hdr.answer.larger = (bit<8>) larger;
        // The first two packets of all are counted by ones in cell 0, the others by tens in cell 1.
        sizes_reg_ifElseRaw(1, 0, 10, REG_ADD, 0, 0, 1, REG_ADD, 0, 2, GT_RELOP, hdr.answer.in_class, is_large);
        hdr.answer.is_large = (bit<8>) is_large;
        last_reg_rw(0, value, REG_READ_WRITE, hdr.answer.previous);
        budget_reg_sub(1, 100, 7, hdr.answer.packets == 1 && cell == 0 ? REG_WRITE : REG_SUB, hdr.answer.budget);
        ip_ip_chksum(4, 5, 0, 20, 7, 2, 0, 64, 17, 0xffff, 0x0a000001, 0x0a000002, hdr.answer.checksum);
        tin_timestamp(1, hdr.answer.time);
        sume.dst_port = sume.src_port;
    }
}

@Xilinx_MaxPacketRegion(1024)
control TopDeparser(packet_out packet, in headers_t hdr, in user_metadata_t user, inout digest_data_t digest_data,
                    inout sume_metadata_t sume) {
    apply { packet.emit(hdr); }
}

SimpleSumeSwitch(TopParser(), TopPipe(), TopDeparser()) main;
