// test lower
// error: `ingress.own` belongs to no table here: an account of entries is used in the actions of the table whose property `account` names it, or after that table is applied
#include "../tests/common.p4"
#include <millrace.p4>
INGRESS(ingress) {
    direct_account() own;
    apply { m.c = own.admit(64); }
}
MAIN(ingress);
