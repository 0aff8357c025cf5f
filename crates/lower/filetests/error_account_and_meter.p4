// test lower
// error: an entry has a direct meter or an account, not both
#include "../tests/common.p4"
#include <millrace.p4>
INGRESS(ingress) {
    direct_account() own;
    direct_meter<bit<2>>(MeterType.bytes) rate;
    table t {
        key = { hdr.h.a : exact; }
        actions = { NoAction; }
        meters = rate;
        account = own;
    }
    apply { t.apply(); }
}
MAIN(ingress);
