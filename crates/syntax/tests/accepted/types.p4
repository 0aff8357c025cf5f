// Every way to declare a type, and every type.

error { BadLength, BadVersion }
match_kind { longest, within, }

typedef bit<48> Mac;
type bit<9> Port;
@p4runtime_translation("example.org/vlan", string)
type bit<12> Vlan;

const int ANY_SIZE = 0x1_0000_0000_0000_0000;
const bit<4> VERSION = 4w0b0100;
const int<8> NEGATIVE = -8s5;
const string GREETING = "hello, " ++ "world\n";
const bool FLAG = !(true && false) || 1 != 2;
const int WIDTH = 8;

enum Colour { red, green, yellow, }
enum bit<16> EtherType {
    ipv4 = 0x0800,
    vlan = 0x8100,
    ipv6 = EtherType.vlan + 0x5dd,
}

header ethernet_t {
    Mac dst;
    Mac src;
    EtherType type;
}

header options_t {
    @length((bit<32>) 8)
    varbit<320> bytes;
}

header generic_t<T, U> {
    T first;
    U second;
}

header_union either_t {
    ethernet_t a;
    options_t b;
}

struct empty_t {}

struct metadata_t {
    bit<(WIDTH * 2)> wide;
    bit flag;
    int<(WIDTH)> small;
    error problem;
    Colour colour;
    generic_t<bit<8>, generic_t<Port, bit<7>>> nested;
    ethernet_t[4] stack;
    generic_t<bit<8>, bit<8>>[2] generic_stack;
    tuple<bit<8>, bool, tuple<>> pair;
    Vlan key;
    bit<8> apply;
    bit<8> list;
    bit<8> priority;
    bit<8> state;
    bit<8> entries;
    bit<8> actions;
}

typedef struct named_t { bit<8> x; } renamed_t;
typedef .metadata_t same_t;

parser ParserType<H>(packet p, out H headers);
control ControlType<H, M>(inout H headers, inout M meta = 1);
package Switch<H, M>(ParserType<H> parse, ControlType<H, M> ingress, @optional ControlType<H, _> egress);

;

@hidden
extern packet {
    packet();
    packet(bit<32> size, @optional bool flag);
    void extract<T>(out T hdr);
    T lookahead<T>();
    abstract bit<8> decide(in bit<8> x);
    bit<32> length();
    list<string> names(in list<tuple<bit<8>, _>> pairs);
}
extern generic_object<T, S> {
    generic_object(T initial);
    S get(in T index);
}
extern void log(string text);
extern T min<T>(in T a, in T b);
extern bit<8>[4] four();
