// What p4c accepts and published programs rely on, beyond the text of the specification.
#include <core.p4>

// An `int` where a value of a new type belongs: initial values, arguments, assignments, results, members.
type bit<10> vrf_id_t;
type int<4>  level_t;
type vrf_id_t tenant_t;
const vrf_id_t DEFAULT_VRF = 0;
const level_t  LOWEST = -8;
const tenant_t DEFAULT_TENANT = 3;
const bool same = static_assert(DEFAULT_VRF == (vrf_id_t) 0);
struct Owner { vrf_id_t vrf; tenant_t tenant; }
const Owner NOBODY = { 0, 1 + 2 };
vrf_id_t chosen(in vrf_id_t vrf, in bool known) {
    if (known) {
        return vrf;
    }
    return 7;
}

// Actions of one name for the control plane, in several controls and in one, each in tables of its own.
@name(".nop") action nop() {}

control First(inout vrf_id_t vrf) {
    @name(".nop") action nop_0() {}
    @name(".nop") action nop_1() {}
    @name(".set") action set(vrf_id_t to) { vrf = to; }
    table t {
        key = { vrf : exact; }
        actions = { nop_0; set; }
        const entries = { 1 : set(2); }
        default_action = nop_0();
    }
    table u {
        key = { vrf : ternary; }
        actions = { nop_1; set; }
        default_action = set(5);
    }
    apply {
        vrf = 9;
        vrf = chosen(1, t.apply().hit);
        u.apply();
    }
}

control Second(inout vrf_id_t vrf) {
    @name(".nop") action nop_0() {}
    @name(".set") action set(@name("to") vrf_id_t to_1) { vrf = to_1; }
    table t {
        key = { vrf : exact; }
        actions = { nop_0; set; }
    }
    table u {
        key = { vrf : exact; }
        actions = { nop; set; }
    }
    apply { t.apply(); u.apply(); }
}

// The list of actions and the default action write the members of a structure in two orders.
struct digits_t {
    bit<8> tens;
    bit<8> ones;
}
extern bit<8> next_digit();

control Orders(inout bit<8> sum) {
    action add(in digits_t of) { sum = of.tens + of.ones; }
    table t {
        actions = { add({ tens = next_digit(), ones = next_digit() }); }
        default_action = add({ ones = next_digit(), tens = next_digit() });
    }
    apply { t.apply(); }
}
