// What the switch tells the program, and the other way round.
// test lower
// in: body parser NoParser
// check: sm.ingress_port = zext(switch.ingress_port, 9)
// check: sm.instance_type = switch.packet_path
// check: sm.ingress_global_timestamp = zext(div(switch.ingress_timestamp, 64w0x3e8), 48)
// check-not: sm.packet_length = switch.packet_length
// in: body control ingress
// check: branch bool_or(eq(sm.parser_error, 16w1), eq(sm.ingress_port, 9w3)), block2, block3
// check: switch.priority = zext(sm.priority, 8)
// check: switch.resubmit_list = 32w1
// in: body control egress
// check: sm.egress_spec = zext(9w0, 9)
// check: sm.egress_rid = switch.egress_rid
// check: sm.enq_qdepth = zext(switch.enqueue_depth, 19)
// check: sm.deq_timedelta = zext(div(switch.queue_delay, 64w0x3e8), 32)
// check: switch.drop = eq(sm.egress_spec, zext(9w0x1ff, 9))
// check: switch.recirculate = bool_and(switch.recirculate, not(switch.drop))
#include "../tests/common.p4"
INGRESS(ingress) {
    apply {
        m.z = (bit<16>)sm.ingress_global_timestamp;
        if (sm.parser_error == error.PacketTooShort || sm.ingress_port == 3) { sm.egress_spec = 4; }
        if (sm.instance_type == 6) { sm.mcast_grp = 1; }
        sm.priority = 2;
        resubmit_preserving_field_list(1);
    }
}
control egress(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    apply {
        m.x = (bit<8>)sm.enq_qdepth;
        m.z = (bit<16>)sm.deq_timedelta;
        m.y = (bit<8>)sm.egress_rid;
        recirculate_preserving_field_list(2);
    }
}
V1Switch(NoParser(), NoVerify(), ingress(), egress(), NoCompute(), NoDeparser()) main;
