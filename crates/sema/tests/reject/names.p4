#include <core.p4>

const bit<8> twice = 1;
const bit<8> twice = 2; //~ ERROR E0102 `twice` is declared twice

bit<8> early() {
    return late; //~ ERROR E0101 no value named `late`
}
const bit<8> late = 1;

struct Point { bit<8> x; bit<8> y; bit<8> x; } //~ ERROR E0102 `x` is declared twice
enum Suit { clubs, hearts }
const bit<8> not_action = 1;
control Kinds() {
    table t { actions = { not_action; } default_action = NoAction; } //~ ERROR E0103 `not_action` is a constant, not an action
    //~^ ERROR E0802 `NoAction` is not in the list
    apply {}
}

bit<8> unknown() {
    Poimt p; //~ ERROR E0101 no type named `Poimt`
    Point q = { 1, 2 };
    Suit s = Suit.heart; //~ ERROR E0104 has no member `heart`
    error e = error.NoSuch; //~ ERROR E0104 has no member `NoSuch`
    return q.z; //~ ERROR E0104 `Point` has no member `z`
}

bit<8> again(in bit<8> n) {
    return again(n); //~ ERROR E0105 `again` calls itself
}

control Self() {
    Self() inner; //~ ERROR E0105 cannot contain an instance of itself
    apply {}
}

struct Box<T> { T t; }
typedef Box<Box<bit<8>>> BoxInBox; //~ ERROR E0105 type argument of itself

@name(".shared") action first() {}
@name(".shared") action second(bit<8> more) {} //~ ERROR E0107 two actions have the name `shared`

control OneNameInOneTable() {
    @name("same") action one() {}
    @name("same") action other() {} //~ ERROR E0107 two actions have the name `same`
    table t {
        actions = { one; other; }
    }
    apply { t.apply(); }
}

control TwoThatDoNothing() {
    @name(".NoAction") action mine(bit<8> x) {} //~ ERROR E0107 two actions have the name `NoAction`
    table t {
        actions = { mine; NoAction; }
    }
    apply { t.apply(); }
}

control Hides(in bit<8> param) {
    bit<4> param = 1; //~ WARN W0005 hides the parameter
    apply {}
}
error { Mine, Mine } //~ ERROR E0102 `Mine` is declared twice
