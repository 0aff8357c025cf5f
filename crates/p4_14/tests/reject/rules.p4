header_type odd { fields { a : 7; } }
header_type zero { fields { a : 0; } } //~ ERROR E1408 from 1 to 65536
header_type two { fields { a : *; b : *; } length : 3; } //~ ERROR E1408 at most one field
header_type late { fields { a : *; b : 8; } length : b; } //~ ERROR E1408 before the one of width `*`
header_type fixed { fields { a : 8; b : 8 (signed); } length : 1; } //~ WARN W1401 says nothing
header_type long { fields { a : *; } } //~ ERROR E1408 no `length`
header_type none { fields { a : 8; b : *; } length : a; max_length : 1; } //~ ERROR E1408 leaves nothing
header odd o; //~ ERROR E1408 fills whole bytes
header fixed h;
header fixed stack[4];
metadata fixed m;
metadata fixed n { a : m.b; } //~ ERROR E1407 an initial value is a constant

parser start {
    set_metadata(m.a, latest.a); //~ ERROR E1409 `latest`
    extract(m); //~ ERROR E1404 a header of the packet
    extract(stack); //~ ERROR E1404 is a header stack
    extract(h);
    set_metadata(h.a, 1); //~ ERROR E1409 a parser sets metadata
    return select(latest.a) {
        300 : ingress; //~ WARN W1401 more than the 8 bits
        h.a : ingress; //~ ERROR E1401 value set named `h`
        set mask 3 : ingress; //~ ERROR E1409 a value set has no mask
        default : parse_error unknown_error; //~ ERROR E1401 parser exception
    }
}
parser_value_set set;

counter plain { type : packets; } //~ ERROR E1414 needs an `instance_count`
counter both { type : packets; direct : t; instance_count : 4; } //~ ERROR E1414 as many cells
counter second { type : bytes; direct : t; } //~ ERROR E1415 has a direct counter
counter owned { type : bytes; static : t; instance_count : 4; }
meter colour { type : bytes; direct : t; } //~ ERROR E1414 needs a `result`
register wide { instance_count : 4; } //~ ERROR E1414 needs a `width`
register direct_one { width : 8; direct : t; } //~ WARN W1401 v1model has no registers

field_list headers { h; } //~ ERROR E1412 only metadata is kept
field_list self { self; } //~ ERROR E1406 contains itself
field_list unused_one { unused_other; } //~ ERROR E1406 contains itself
field_list unused_other { unused_one; }
field_list with_payload { payload; }
field_list_calculation c { input { self; } algorithm : crc77; output_width : 16; } //~ ERROR E1401 hash algorithm
field_list_calculation d { input { with_payload; } algorithm : csum16; output_width : 16; }
calculated_field h.a { verify c; }

action loops() { loops(); } //~ ERROR E1406 calls itself
action wrong(x) {
    modify_field(x, 1); //~ ERROR E1411 cannot be written
    modify_field(1, x); //~ ERROR E1411 a field is expected
    add(h.a, 1); //~ ERROR E1410 does not take 2 arguments
    needs_one(); //~ ERROR E1410 takes 1 arguments
    add_header(m); //~ ERROR E1411 a header of the packet
    count(both, 1); //~ ERROR E1414 counts by itself
    register_read(h.a, direct_one, 1); //~ ERROR E1415 v1model has no registers
    resubmit(headers);
    resubmit(x); //~ ERROR E1412 a field list is expected
    clone_i2i(1, headers); //~ ERROR E1415 clones to egress only
    modify_field_with_hash_based_offset(h.a, 0, d, 16); //~ ERROR E1412 not the payload
    modify_field_with_hash_based_offset(h.a, 0, d, 0); //~ ERROR E1408 greater than 0
    push(h, 1); //~ ERROR E1411 no header stack
    shift_left(h.a, h.a, -1); //~ ERROR E1408 negative
    modify_field(h.a, h.a / h.b); //~ ERROR E1411 for constants only
    modify_field(h.a, valid(h)); //~ ERROR E1411 a number is expected
    copy_header(h, o); //~ ERROR E1411 of different types
}
action needs_one(a) { modify_field(h.a, a); count(owned, 1); }

table t { reads { h.a : exact; } actions { wrong; loops; add; } default_action : needs_one(h.a); } //~ ERROR E1413 arguments that a table entry cannot give //~ ERROR E1407 a default action is given constants
table other { reads { m.a : valid; } actions { needs_one; } default_action : needs_one; } //~ ERROR E1414 belongs to table `t` //~ ERROR E1410 takes 1 arguments //~ WARN W1401 always valid
table twice { actions { no_op; } }
action back() { recirculate(); } //~ ERROR E1415 for egress only
table goes_back { actions { back; } }

control ingress {
    apply(t) {
        hit { }
        wrong { }
    } //~^^^ ERROR E1413 next to actions
    if (h.a) { } //~ ERROR E1411 a condition is expected
    if (valid(h) + 1 == 2) { } //~ ERROR E1411 a number is expected
    apply(other);
    apply(twice);
    apply(goes_back);
    again();
}
control again { ingress(); } //~ ERROR E1406 calls itself
control egress { apply(twice); } //~ ERROR E1415 in ingress and in egress
