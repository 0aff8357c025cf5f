// Each fault gives one finding: what only follows from it is silent.
extern E { E(); abstract void f(); }

control c(inout bit<8> x, inout bit<8> y) {
    apply {
        { x, y } = { 1, 2 };             //~ ERROR syntax a list cannot be assigned to
        x = 1;
        E() e = { void f() { } };        //~ ERROR syntax an instantiation cannot stand among statements
        x = 2;
        for (i in 1..6) { x = x + 1; }   //~ ERROR syntax the variable of this loop has no type
        x = { a = 1, 2 };                //~ ERROR syntax either all members are named or none
        y = 3;
    }
}

action default() { }                     //~ ERROR syntax expected the action's name
