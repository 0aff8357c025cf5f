header_type t { fields { a : 8; b : 8; a : 8; } } //~ ERROR E1402 field `a` is there twice
header_type t { fields { c : 8; } } //~ ERROR E1402 `t` is declared twice
header_type egress { fields { c : 8; } } //~ ERROR E1403 `egress` is reserved
header t standard_metadata; //~ ERROR E1403 `standard_metadata` is reserved
header missing x; //~ ERROR E1401 header type named `missing`
header t h;
metadata t m { d : 1; } //~ ERROR E1405 field of `t` named `d`
metadata t m[3]; //~ ERROR E1402 `m` is declared twice
header t stack[2];
field_list l { h.a; l2; }
field_list l2 { h.b; }
header t l2; //~ ERROR E1402 `l2` is declared twice

parser start {
    extract(h);
    return select(latest.a) {
        1 : nowhere; //~ ERROR E1401 parser or control function named `nowhere`
        some : ingress; //~ ERROR E1401 value set named `some`
        default : ingress;
    }
}
action a(x) {
    modify_field(h.c, 1); //~ ERROR E1405 field of `t` named `c`
    modify_field(hh.a, 1); //~ ERROR E1401 header or metadata instance named `hh`
    modify_feild(h.a, 1); //~ ERROR E1401 action named `modify_feild`
    modify_field(h, 1); //~ ERROR E1404 `h` is a header
    modify_field(h[1].a, 1); //~ ERROR E1404 `h` is no header stack
    modify_field(stack.a, 1); //~ ERROR E1404 which of its headers
    modify_field(stack[2].a, 1); //~ ERROR E1408 from 0 to 1
    modify_field(stack[last].a, 1); //~ ERROR E1409 in a parser only
    modify_field(stack[x].a, 1); //~ ERROR E1407 the index of a header stack
    count(c, 1); //~ ERROR E1401 counter named `c`
    register_read(h.a, r, 1); //~ ERROR E1401 register named `r`
    generate_digest(1, nothing); //~ ERROR E1401 field list named `nothing`
}
table u { reads { h.a : exact; h.b : exakt; } actions { a; b; } } //~ ERROR E1401 kind of match named `exakt` //~ ERROR E1401 action named `b`
table w { actions { a; } action_profile : p; } //~ ERROR E1401 action profile named `p`
control ingress {
    apply(u) {
        a { }
        c { } //~ ERROR E1413 table `u` has no action `c`
    }
    apply(v); //~ ERROR E1401 table named `v`
    apply(w);
    other(); //~ ERROR E1401 control function named `other`
}
control start { } //~ ERROR E1402 `start` is declared twice
