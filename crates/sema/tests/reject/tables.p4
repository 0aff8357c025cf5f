#include <core.p4>
#include <v1model.p4>

header H { bit<8> a; bit<16> b; }

control C(inout H h, inout bit<8> m) {
    action none() {}
    action data(bit<8> d) {}
    action bound(in bit<8> x, bit<8> d) {}

    table no_actions { key = { m : exact; } } //~ ERROR E0801 has no property `actions`
    table bad_size {
        key = { m : exact; }
        actions = { none; }
        default_action = none;
        size = h.a; //~ ERROR E0801 the size of a table must be a number
    }
    table twice {
        key = { m : exact; m : nearest; } //~ ERROR E0101 no match kind named `nearest`
        actions = { none; none; } //~ ERROR E0102 listed twice
        default_action = data(1); //~ ERROR E0802 `data` is not in the list
        default_action = none; //~ ERROR E0102 given twice
    }
    table binding {
        key = { m + 1 : exact; } //~ ERROR E0806 no name for the control plane
        actions = { bound; } //~ ERROR E0803 must be bound
        default_action = none(); //~ ERROR E0802 not in the list
    }
    table binding2 {
        key = { m : exact; }
        actions = { bound(m, 1); data; } //~ ERROR E0803 set by the control plane
        default_action = data(m); //~ ERROR E0302 must be known at compile time
    }
    table binding3 {
        key = { m : exact; }
        actions = { bound(m); }
        default_action = bound(h.a, 1); //~ ERROR E0803 is not the one in the list
    }
    table entries {
        key = { h.a : exact; h.b : lpm; }
        actions = { none; data; }
        default_action = none;
        const entries = {
            (1, 0x8000 &&& 0x8000) : data(1);
            (1, 0x8000 &&& 0x8000) : data(2); //~ ERROR E0804 another entry has the same key
            (1 .. 2, _) : none; //~ ERROR E0804 a range cannot match a key of the kind `exact`
            (3, 0 &&& 0x0F00) : none; //~ ERROR E0804 ones followed by zeros
            (4, _) : data; //~ ERROR E0401 no argument is given for `d`
        }
    }
    table keyless {
        actions = { none; }
        default_action = none;
        const entries = { 1 : none; } //~ ERROR E0804 without a key
    }
    table priorities {
        key = { h.a : ternary; }
        actions = { none; }
        default_action = none;
        entries = {
            1 : none; //~ ERROR E0805 the first entry needs a priority
            priority = 3: 2 : none;
        }
    }
    table order {
        key = { h.a : ternary; }
        actions = { none; }
        default_action = none;
        entries = {
            priority = 3: 1 : none;
            priority = 4: 2 : none; //~ WARN W0003 matched before the one above
        }
    }
    table marked {
        key = { h.a : exact; }
        actions = { @tableonly none; @defaultonly data; }
        default_action = none; //~ ERROR E0802 marked `@tableonly`
        entries = { 1 : data(1); } //~ ERROR E0802 marked `@defaultonly`
    }
    apply {}
}

@name(5) control Annotated() { apply {} } //~ ERROR E0901 `@name` takes a string
@values[1, 2] @values[3] control Repeated() { apply {} } //~ ERROR E0901 given twice
