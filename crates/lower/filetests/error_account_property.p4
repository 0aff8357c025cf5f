// test lower
// error: a `direct_account` is the `account` of a table
#include "../tests/common.p4"
#include <millrace.p4>
INGRESS(ingress) {
    direct_account() own;
    table t {
        key = { hdr.h.a : exact; }
        actions = { NoAction; }
        meters = own;
    }
    apply { t.apply(); }
}
MAIN(ingress);
