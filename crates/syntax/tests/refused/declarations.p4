// Each line with a finding says so in a marked comment; nothing else may be found.

header h {
    bit<8> a
    bit<8> b;       //~@-1 expected `;`
    bit<> c;        //~ expected an expression
    varbit d;       //~ expected `<`
    bit<8> 9lives;  //~ expected a field's name, found `9lives`
    bit<8> e;
}

struct s {
    bit<8> in;      //~ expected a field's name, found keyword `in`
    void v;         //~ `void` is not a type of values
}

const bit<8> no_value;       //~ expected `=`
const bit<8> bad = 8w0xZZ;   //~ `Z` is not a digit in base 16
const = 1;                   //~ expected a type
bit<8> global = 3;           //~ a variable cannot be declared at the top level
enum bit<8> E { a = 1, b }   //~ expected `=`
extern X { Y(); }            //~ no constructor of `X`
typedef type bit<8> t;       //~ expected the new type's name
package P(bit<8> x)
const bit<8> fine = 1;       //~@-1 expected `;`
foo bar baz;                 //~ expected `(`
)                            //~ expected a declaration
const bit<8> also_fine = 2;
