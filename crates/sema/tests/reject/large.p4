struct S0 { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; bit<8> g; bit<8> h; }
struct S1 { S0 a; S0 b; S0 c; S0 d; S0 e; S0 f; S0 g; S0 h; }
struct S2 { S1 a; S1 b; S1 c; S1 d; S1 e; S1 f; S1 g; S1 h; }
struct S3 { S2 a; S2 b; S2 c; S2 d; S2 e; S2 f; S2 g; S2 h; }
struct S4 { S3 a; S3 b; S3 c; S3 d; S3 e; S3 f; S3 g; S3 h; }
struct S5 { S4 a; S4 b; } //~ ERROR E0213 made of more than
