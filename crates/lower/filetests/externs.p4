// The extern functions and objects of v1model.
// test lower
// check: field_list 257 (m.x, m.in1.p, m.in1.q)
// check: field_list 258 (m.z)
// in: register
// check: register ingress.r.a: bit<8> size 4
// check: register ingress.r.b: bit<1> size 4
// in: body control ingress
// check: count ingress.c, zext(m.x, 32)
// check: meter ingress.tmp, ingress.mt, 32w1
// check: m.y = ingress.tmp
// check: register_read ingress.tmp$1, ingress.r.a, 32w2
// check: ingress.cell.b = eq(ingress.tmp$2, 1w1)
// check: register_write ingress.r.b, 32w3, bool_to_bits(ingress.cell.b)
// check: hash ingress.tmp$3, crc16, (hdr.h.a, bool_to_bits(m.c), header hdr.g)
// check: m.z = zext(add(64w0xa, mod(ingress.tmp$3, 64w0x64)), 16)
// check: random ingress.tmp$4, 8w5, 8w9
// check: digest inner_t, (m.in1.p, m.in1.q)
// check: switch.truncate = 32w0x40
// check: log "x {} y {}", (m.x, m.y)
// check: assert ne(m.x, 8w0), "assert((m.x != 0))"
// check: switch.clone_session = 32w3
// check: switch.clone_list = 32w0
// check: switch.clone_session = 32w4
// check: switch.clone_list = 32w0x101
// check: switch.resubmit_list = 32w0x102
// check: sm.egress_spec = zext(9w0x1ff, 9)
// check: sm.mcast_grp = 16w0
// check: switch.drop = bool_and(bool_and(eq(sm.egress_spec, zext(9w0x1ff, 9)), eq(sm.mcast_grp, 16w0)), not(switch.resubmit))
#include "../tests/common.p4"
struct cell_t { bit<8> a; bool b; }
INGRESS(ingress) {
    counter(100, CounterType.bytes) c;
    meter(8, MeterType.packets) mt;
    register<cell_t>(4) r;
    action_profile(5) unused;
    apply {
        c.count((bit<32>)m.x);
        mt.execute_meter(1, m.y);
        cell_t cell;
        r.read(cell, 2);
        cell.b = !cell.b;
        r.write(3, cell);
        hash(m.z, HashAlgorithm.crc16, 16w10, { hdr.h.a, m.c, hdr.g }, 16w100);
        random(m.x, 5, 9);
        digest<inner_t>(7, m.in1);
        truncate(64);
        log_msg("x {} y {}", { m.x, m.y });
        log_msg("plain");
        assert(m.x != 0);
        clone(CloneType.I2E, 3);
        clone3(CloneType.I2E, 4, { m.x, m.in1 });
        resubmit(m.z);
        mark_to_drop(sm);
        mark_to_drop();
    }
}
MAIN(ingress);
