// Keys, entries with their order, bound arguments, annotations, properties.
// test lower
// in: profile
// check: profile ingress.choose size 64 selector crc16 width 14 max_group_size 0
// in: table ingress.acl
// check: key first: ternary = hdr.h.a
// check: key m.z: range = m.z
// check: key m.c: optional = bool_to_bits(m.c)
// check: action ingress.set
// check: action ingress.renamed table_only
// check: action NoAction default_only
// check: default NoAction()
// check: size 2
// check: const_entries
// check: entry const priority 2 (8w1 &&& 8w0xf, 16w2 .. 16w5, =1w1) => ingress.set(8w0xa)
// check: entry const priority 1 (8w0 &&& 8w0, 16w7 .. 16w7, _) => ingress.renamed(1w1, 16w0x12c)
// check: direct_counter ingress.hits packets_and_bytes at_hit
// in: table ingress.routes
// check: entry (16w0x1200/8, 8w3) => ingress.color()
// check: entry (16w0/0, 8w4) => ingress.color()
// check: direct_meter ingress.rate bytes at_hit ingress.rate.color
// check: idle_timeout
// in: table ingress.picks
// check: key m.x: exact = m.x
// check: size 1024
// check: profile ingress.choose
// check: selector_input hdr.h.a
// check: selector_input m.y
// check: empty_group NoAction()
// in: table ingress.odd
// check: key "hdr.st[m.x].a": exact = "ingress.odd.key.hdr.st[m.x].a"
// in: body action ingress.set
// check: m.y = ingress.set.v
// in: body action ingress.color
// check: m.x = concat(m.x[7:2], ingress.rate.color)
#include "../tests/common.p4"
INGRESS(ingress) {
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.bytes) rate;
    action_selector(HashAlgorithm.crc16, 64, 14) choose;
    action set(inout bit<8> where, bit<8> v) { where = v; }
    action color() { rate.read(m.x[1:0]); }
    @name("renamed") action other(bool b, bit<16> z) { m.c = b; m.z = z; }
    table acl {
        key = { hdr.h.a : ternary @name("first"); m.z : range; m.c : optional; }
        actions = { set(m.y); @tableonly other; @defaultonly NoAction; }
        const entries = {
            (1 &&& 0xf, 2 .. 5, true) : set(10);
            (_, 7, _) : other(true, 300);
        }
        counters = hits;
        size = 1;
    }
    table routes {
        key = { m.in1 .q: lpm; hdr.h.b: exact; }
        actions = { color; }
        largest_priority_wins = false;
        entries = {
            (0x1200 &&& 0xff00, 3) : color();
            (_, 4) : color();
        }
        meters = rate;
        support_timeout = true;
    }
    table picks {
        key = { m.x : exact; hdr.h.a : selector; m.y : selector; }
        actions = { color; }
        implementation = choose;
    }
    table odd {
        key = { hdr.st[m.x].a : exact; }
        actions = { NoAction; }
    }
    apply { acl.apply(); routes.apply(); picks.apply(); odd.apply(); }
}
MAIN(ingress);
