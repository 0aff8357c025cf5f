// test lower
// error: the `account` of another table
#include "../tests/common.p4"
#include <millrace.p4>
INGRESS(ingress) {
    direct_account() own;
    table t {
        key = { hdr.h.a : exact; }
        actions = { NoAction; }
        account = own;
    }
    table u {
        key = { hdr.h.a : exact; }
        actions = { NoAction; }
        account = own;
    }
    apply { t.apply(); u.apply(); }
}
MAIN(ingress);
