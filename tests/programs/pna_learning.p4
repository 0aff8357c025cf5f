// SPDX-License-Identifier: Apache-2.0
//
// A network card that lets answers in: a flow that the host opens is learned with the host's port and a number, and
// packets of the other direction find it as long as it is in use.
//
// Uses: add_entry with data, allocate_flow_id, times after which entries expire, hit and action_run of what was learned,
// entries of the control plane in the same table.

#include <core.p4>
#include <pna.p4>

header flow_t {
    bit<32> inside;
    bit<32> outside;
    bit<8>  flags;          // 1: the last packet of the flow; 2: does not restart the time
    bit<8>  verdict;        // 1: learned now, 2: known, 3: from the control plane
    bit<32> number;
}

struct headers_t {
    flow_t flow;
}

struct metadata_t { }

struct entry_t {
    bit<8>   verdict;
    PortId_t port;
    bit<32>  number;
    bool     odd;
}

parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta, in pna_main_parser_input_metadata_t istd) {
    state start { packet.extract(hdr.flow); transition accept; }
}

control Pre(in headers_t hdr, inout metadata_t meta, in pna_pre_input_metadata_t istd,
            inout pna_pre_output_metadata_t ostd) {
    apply { }
}

control Main(inout headers_t hdr, inout metadata_t meta, in pna_main_input_metadata_t istd,
             inout pna_main_output_metadata_t ostd) {
    action known(bit<8> verdict, PortId_t port, bit<32> number, bool odd) {
        hdr.flow.verdict = verdict;
        hdr.flow.number = number + (odd ? 32w0x100 : 0);
        if (istd.direction == PNA_Direction_t.HOST_TO_NET) {
            send_to_port((PortId_t) 32w1);
        } else {
            send_to_port(port);
        }
        if (hdr.flow.flags == 1) {
            set_entry_expire_time((ExpireTimeProfileId_t) 8w1);
        } else if (hdr.flow.flags != 2) {
            restart_expire_timer();
        }
    }
    action learn() {
        if (istd.direction == PNA_Direction_t.HOST_TO_NET) {
            bit<32> number = (FlowIdUint_t) allocate_flow_id();
            entry_t entry = { 2, istd.input_port, number, number[0:0] == 1 };
            bool added = add_entry("known", entry, (ExpireTimeProfileId_t) 8w2);
            hdr.flow.verdict = added ? 8w1 : 0;
            hdr.flow.number = number;
            send_to_port((PortId_t) 32w1);
        } else {
            drop_packet();
        }
    }
    table flows {
        key = {
            hdr.flow.inside: exact;
            hdr.flow.outside: exact;
        }
        actions = {
            @tableonly known;
            @defaultonly learn;
        }
        add_on_miss = true;
        const default_action = learn;
        size = 1024;
    }
    apply {
        if (istd.parser_error != error.NoError) {
            drop_packet();
            exit;
        }
        switch (flows.apply().action_run) {
            known: { hdr.flow.flags[7:7] = 1; }
            learn: { hdr.flow.flags[6:6] = 1; }
        }
    }
}

control MainDeparser(packet_out packet, in headers_t hdr, in metadata_t meta, in pna_main_output_metadata_t ostd) {
    apply { packet.emit(hdr.flow); }
}

PNA_NIC(MainParser(), Pre(), Main(), MainDeparser()) main;
