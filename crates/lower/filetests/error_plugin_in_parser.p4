// test lower
// error: plugins can be called in controls and actions only
#include "../tests/common.p4"
@plugin("find") extern bit<8> find();
PARSER(P) {
    state start { m.x = find(); transition accept; }
}
MAIN_PARSER(P);
