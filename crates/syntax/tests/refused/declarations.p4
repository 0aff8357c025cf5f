// Each line with a finding says so in a marked comment; nothing else may be found.

header h {
    bit<8> a
    bit<8> b;       //~^ ERROR syntax expected `;`
    bit<> c;        //~ ERROR syntax expected an expression
    varbit d;       //~ ERROR syntax expected `<`
    bit<8> 9lives;  //~ ERROR syntax expected a field's name, found `9lives`
    bit<8> e;
}

struct s {
    bit<8> in;      //~ ERROR syntax expected a field's name, found keyword `in`
    void v;         //~ ERROR syntax `void` is not a type of values
}

const bit<8> no_value;       //~ ERROR syntax expected `=`
const bit<8> bad = 8w0xZZ;   //~ ERROR integer-literal `Z` is not a digit in base 16
const = 1;                   //~ ERROR syntax expected a type
bit<8> global = 3;           //~ ERROR syntax a variable cannot be declared at the top level
enum bit<8> E { a = 1, b }   //~ ERROR syntax expected `=`
extern X { Y(); }            //~ ERROR syntax no constructor of `X`
typedef type bit<8> t;       //~ ERROR syntax expected the new type's name
package P(bit<8> x)
const bit<8> fine = 1;       //~^ ERROR syntax expected `;`
foo bar baz;                 //~ ERROR syntax expected `(`
)                            //~ ERROR syntax expected a declaration
const bit<8> also_fine = 2;
