// The externs of millrace.p4. A call is a meter that is told the length.
// test lower
// check: meter ingress.shared size 16 account
// in: table ingress.t
// check: direct_meter ingress.own account
// in: body action ingress.police
// check: meter ingress.police.tmp, ingress.shared, ingress.police.tmp$1, length add(sm.packet_length, 32w4)
// check: m.c = eq(ingress.police.tmp, 8w0)
// check: meter_direct ingress.police.tmp$2, ingress.t, length sm.packet_length
#include "../tests/common.p4"
#include <millrace.p4>
INGRESS(ingress) {
    account(16) shared;
    direct_account() own;
    action police(bit<8> index) {
        m.c = shared.admit((bit<32>)index, sm.packet_length + 4);
        if (!own.admit(sm.packet_length)) { mark_to_drop(sm); }
    }
    table t {
        key = { hdr.h.a : exact; }
        actions = { police; NoAction; }
        account = own;
    }
    apply {
        t.apply();
        m.c = m.c && own.admit(100);
    }
}
MAIN(ingress);
