// Names that the control plane would find twice, and annotations that are for it.
#include <core.p4>

extern Counter { Counter(); void count(); }

control Sub(inout bit<8> x) {
    @name(".cells") Counter() cells; //~ ERROR E0107 the name `cells` stands for several things
    @name(".shared") action shared() { cells.count(); }
    @name(".table") table t { //~ ERROR E0107 the name `table` stands for several things
        key = { x : exact; }
        actions = { shared; NoAction; }
    }
    table own { actions = { shared; NoAction; } }
    apply { t.apply(); own.apply(); }
}

control Once(inout bit<8> x) {
    @name(".once") table t { actions = { NoAction; } }
    apply { t.apply(); }
}

control Main(inout bit<8> x) {
    Sub() first;
    Sub() second;
    Once() once;
    apply {
        first.apply(x);
        second.apply(x);
        once.apply(x);
    }
}

control Type(inout bit<8> x);
package Top(Type t);
Top(Main()) main;

@p4runtime_translation("example.org/a", 32) type bit<8> WidthAlone;
@p4runtime_translation("example.org/b", bit<32>) type bit<8> Bits;
@p4runtime_translation("example.org/c", string) type bit<8> Text;
@p4runtime_translation("example.org/d", bool) type bit<8> Truth; //~ ERROR E0901 takes a string and
@p4runtime_translation("example.org/e", bit<5+3>) type bit<8> Sum; //~ ERROR E0901 takes a string and
@p4runtime_translation(32, "example.org/f") type bit<8> Swapped; //~ ERROR E0901 takes a string and
@p4runtime_translation type bit<8> Bare; //~ ERROR E0901 takes a string and

control Order(inout bit<8> x) {
    table t {
        default_action = NoAction; //~ ERROR E0801 must come after `actions`
        actions = { NoAction; }
    }
    apply { t.apply(); }
}
