// Controls: actions, tables with every property, statements of every kind.

match_kind { exact, lpm, ternary }
header eth { bit<48> dst; bit<48> src; bit<16> type; }
struct headers { eth ethernet; eth[4] stack; }
struct meta { bit<9> port; bit<32> a; bit<32> b; bool flag; }
struct pair { bit<8> x; bit<8> y; }
struct boxed<T> { T value; }
enum Kind { one, two }
extern counter { counter(bit<32> size, Kind kind); void count(in bit<32> index); }
extern register<T> { register(bit<32> size); T read(in bit<32> i); void write(in bit<32> i, in T v); }
extern hasher { hasher(); abstract bit<16> step(in bit<16> x); }
extern void log(string text);
extern void digest<T>(in bit<32> receiver, in T data);

action top_level(inout bit<32> x, bit<9> port) {
    x = (bit<32>) port;
}

bit<8> square(in bit<8> x) { return x * x; }
T identity<T>(in T x) { return x; }
void nothing() { return; }

control Sub(inout headers h)(bit<8> n) { apply {} }
control Generic<T>(inout T x);

control Ingress(inout headers h, inout meta m, in bit<9> port = 0) {
    const bit<32> SIZE = 1 << 10;
    bit<32> tmp;
    bool hit = false;
    counter(SIZE, Kind.two) packets;
    register<bit<32>>(SIZE) last;
    register<boxed<bit<8>>>(4) boxes;
    Sub(1) sub;
    hasher() hash = {
        counter(1, Kind.one) inner;
        bit<16> step(in bit<16> x) {
            inner.count(0);
            return x ^ 16w0xFFFF;
        }
    };

    @brief("drops") action drop() { m.port = 511; exit; }
    action set(in bool really, @id(1) bit<9> out_port, bit<48> mac) {
        if (really) m.port = out_port;
        h.ethernet.dst = mac;
    }

    @name("route") @size[1024]
    table route {
        key = {
            h.ethernet.dst: exact @name("dst");
            m.a & 0xFF: ternary;
            m.b[7:0]: lpm @name("b") @hidden;
            h.ethernet.isValid(): exact;
        }
        actions = {
            drop;
            @tableonly set(true);
            .top_level(m.a);
            @defaultonly NoSuchAction();
        }
        @hidden const default_action = drop();
        size = SIZE;
        const entries = {
            (48w1, 0xF &&& 0xF, _, true): set(true, 1, 2);
            const priority = 10: (48w2, 1, 0xA0 &&& 0xF0, default): drop() @note("x");
            priority = (5 + 6): (48w3, _, _, _): .drop;
        }
        counters = packets;
        support_timeout = true;
        meters = { 1, 2 };
    }

    table empty {
        key = {}
        actions = {}
        entries = { }
        default_action = set(true, out_port = 3, mac = 4);
    }

    apply {
        tmp = m.a;
        bit<8> narrow = (bit<8>) tmp |+| 8w255;
        const bit<8> two = 2;
        tmp += 1; tmp -= 1; tmp *= 2; tmp /= 2; tmp %= 7; tmp |+|= 1; tmp |-|= 1;
        tmp <<= 2; tmp >>= 2; tmp &= 3; tmp |= 4; tmp ^= 5;
        h.ethernet.dst[7:0] = narrow ++ 0;
        h.ethernet.dst[8+:8] = square(x = narrow);
        h.stack[1] = {#};
        h.stack[tmp] = { 1, 2, 3 };
        pair p = { x = 1, y = two };
        p = { x = 1, ... };
        p = (pair) { 1, ... };
        boxed<pair> b = { value = p };
        digest<pair>(1, p);
        digest(1, { m.a, m.b });
        identity<boxed<bit<8>>>({ value = 1 });
        sub.apply(h);
        Sub.apply(h);
        Generic<headers>.apply(h);
        nothing();
        ;
        if (route.apply().hit) {} else if (m.a < m.b) { log("less"); } else { drop(); }
        switch (route.apply().action_run) {
            drop: { return; }
            set:
            top_level: @likely { hit = true; }
            default: {}
        }
        switch (m.a) {
            1:
            2 + 3: { m.a = 0; }
            Kind.one: {}
            (bit<32>) 7: {}
        }
        @unroll for (bit<8> i = 0, bit<8> j = 9; i < j; i += 1, j -= 1) {
            if (i == 3) continue;
            if (i == 5) break;
        }
        for (tmp = 0; tmp < 4; tmp = tmp + 1) packets.count(tmp);
        for (@x bit<8> i in 0 .. two) { tmp = tmp + (bit<32>) i; }
        for (eth e in h.stack) m.a = (bit<32>) e.type;
        bool shift = m.a >> 2 > m.b << 1 && m.a >= 3 || !(m.b <= 4);
        m.flag = shift ? m.a == 1 : m.a != 2;
        m.a = .identity(-m.a & ~m.b | m.a ^ 1 % 2);
        last.write(0, last.read(0) |-| 1);
        @atomic { m.a = m.b; }
        error e = error.NoError;
        exit;
    }
}
