#include <core.p4>
#include "v1model.p4"
#ifndef __MILLRACE__
#error the predefined name is missing
#endif
#if defined(__TARGET_BMV2__) && __TARGET_BMV2__ >= 1 && !defined(__p4c__)
#define WIDTH 8
#else
#define WIDTH 16
#endif
#define FIELD(type, name) type name;
#define NAMED(prefix, n) prefix ## _ ## n
#define STR(x) #x
#define LOG(fmt, ...) log_msg(fmt, { __VA_ARGS__ })
#define LONG \
    bit<WIDTH> \
    long

header h_t {
    FIELD(bit<WIDTH>, first)
    FIELD(bit<(WIDTH * 2)>, NAMED(second, x))
    LONG;
}
#undef WIDTH
const string text = STR(a + "b");
@name(STR(ctrl)) @pragma fast
control NAMED(my, control)(inout h_t h) {
    apply {
        h = {#};
        LOG("first {}", h.first);
    }
}
