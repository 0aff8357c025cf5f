// Each fault gives one finding: what only follows from it is silent.
extern E { E(); abstract void f(); }

control c(inout bit<8> x, inout bit<8> y) {
    apply {
        { x, y } = { 1, 2 };             //~ a list cannot be assigned to
        x = 1;
        E() e = { void f() { } };        //~ an instantiation cannot stand among statements
        x = 2;
        for (i in 1..6) { x = x + 1; }   //~ the variable of this loop has no type
        x = { a = 1, 2 };                //~ either all members are named or none
        y = 3;
    }
}

action default() { }                     //~ expected the action's name
