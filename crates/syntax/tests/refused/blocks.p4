// Errors in parsers, controls, tables and statements; the parser goes on after each.

parser P(in bit<8> x) {
    state start {
        y = x +;                 //~ expected an expression
        transition select(x) {
            1: accept
            2: reject;           //~@-1 expected `;`
            3 accept;            //~ expected `:`
            default: accept;
        }
    }
    bit<8> late;                 //~ declarations in a parser stand before its states
    state last {
        transition accept;
        y = 1;                   //~ nothing follows a transition
    }
    state returns { return; }    //~ a `return` cannot stand in a parser state
}

control C(inout bit<8> x) {
    action a( { }                //~ expected a type
    action b() { x = 1 }         //~ expected `;`
    table t {
        key = { x: exact }       //~ expected `;`
        actions = { a b; b; }    //~ expected `;`
        const actions = { }      //~ `actions` is constant already
        size 10;                 //~ expected `=`
        default_action = ;       //~ expected an expression
        entries = { 1: ; }       //~ expected an action's name
    }
    bit<8> fine;
    apply {
        if x == 1 { }            //~ expected `(`
        else { x = 2; }          //~ expected a statement
        for (bit<8> i = 0; i < 3) { }  //~ expected `;`
        switch (x) { 1 { } }     //~ expected `:`
        x == 2;                  //~ expected `=`
        f(1,);                   //~ expected an expression
        f(1;                     //~ expected `)`
        x = {1, a = 2};          //~ either all members are named or none
        x = 1;
    }
    bit<8> late;                 //~ declarations in a control stand before its `apply` block
}

control D() {
    apply {
        x = 1;

struct s { bit<8> x; }           //~ expected `}`
const bit<8> last = ;            //~ expected an expression
