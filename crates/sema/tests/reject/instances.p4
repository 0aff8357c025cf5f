#include <core.p4>

extern Plain { Plain(bit<8> size); void use(); }
extern Abstract { Abstract(); abstract bit<8> next(in bit<8> x); }
control Type(inout bit<8> x);
package Top(Type t);

control Wrong(inout bit<16> x) { apply {} }
control Right(inout bit<8> x) { apply {} }
parser Sub(packet_in p) { state start { transition accept; } }

Right() stray; //~ ERROR E0501 cannot be instantiated at the top level

control Holder(inout bit<8> x)(bit<8> size) {
    Plain(size) fine;
    Plain(x) runtime; //~ ERROR E0302 must be known at compile time
    Sub() parser_in_control; //~ ERROR E0501 cannot be instantiated among the declarations of a control
    Abstract() undefined; //~ ERROR E0502 the abstract method `next` of `Abstract` is not defined
    Abstract() other = { //~ ERROR E0502 `next` of `Abstract` is not defined
        bit<8> last(in bit<8> x) { return x; } //~ ERROR E0502 no abstract method `last`
    };
    Abstract() shape = {
        bit<8> next(in bit<16> x) { return 1; } //~ ERROR E0502 does not have the signature //~ WARN W0005 `x` hides the parameter
    };
    Abstract() good = {
        bit<8> next(in bit<8> x) { return x + 1; } //~ WARN W0005 `x` hides the parameter
    };
    apply {}
}
Type() signature_only; //~ ERROR E0501 is only a signature
Top(Wrong()) top; //~ ERROR E0504 expected `Type`, found `control Wrong`
Plain(1) main; //~ ERROR E0503 `main` must be a package
