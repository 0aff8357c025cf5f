// Errors in parsers, controls, tables and statements; the parser goes on after each.

parser P(in bit<8> x) {
    state start {
        y = x +;                 //~ ERROR syntax expected an expression
        transition select(x) {
            1: accept
            2: reject;           //~^ ERROR syntax expected `;`
            3 accept;            //~ ERROR syntax expected `:`
            default: accept;
        }
    }
    bit<8> late;                 //~ ERROR syntax declarations in a parser stand before its states
    state last {
        transition accept;
        y = 1;                   //~ ERROR syntax nothing follows a transition
    }
    state returns { return; }    //~ ERROR syntax a `return` cannot stand in a parser state
}

control C(inout bit<8> x) {
    action a( { }                //~ ERROR syntax expected a type
    action b() { x = 1 }         //~ ERROR syntax expected `;`
    table t {
        key = { x: exact }       //~ ERROR syntax expected `;`
        actions = { a b; b; }    //~ ERROR syntax expected `;`
        const actions = { }      //~ ERROR syntax `actions` is constant already
        size 10;                 //~ ERROR syntax expected `=`
        default_action = ;       //~ ERROR syntax expected an expression
        entries = { 1: ; }       //~ ERROR syntax expected an action's name
    }
    bit<8> fine;
    apply {
        if x == 1 { }            //~ ERROR syntax expected `(`
        else { x = 2; }          //~ ERROR syntax expected a statement
        for (bit<8> i = 0; i < 3) { }  //~ ERROR syntax expected `;`
        switch (x) { 1 { } }     //~ ERROR syntax expected `:`
        x == 2;                  //~ ERROR syntax expected `=`
        f(1,);                   //~ ERROR syntax expected an expression
        f(1;                     //~ ERROR syntax expected `)`
        x = {1, a = 2};          //~ ERROR syntax either all members are named or none
        x = 1;
    }
    bit<8> late;                 //~ ERROR syntax declarations in a control stand before its `apply` block
}

control D() {
    apply {
        x = 1;

struct s { bit<8> x; }           //~ ERROR syntax expected `}`
const bit<8> last = ;            //~ ERROR syntax expected an expression
