parser start { return ingress; }
control ingress { c0(); }
control c0 { c1(); c1(); }
control c1 { c2(); c2(); }
control c2 { c3(); c3(); }
control c3 { c4(); c4(); }
control c4 { c5(); c5(); }
control c5 { c6(); c6(); }
control c6 { c7(); c7(); }
control c7 { c8(); c8(); }
control c8 { c9(); c9(); }
control c9 { c10(); c10(); }
control c10 { c11(); c11(); }
control c11 { c12(); c12(); }
control c12 { c13(); c13(); }
control c13 { c14(); c14(); }
control c14 { c15(); c15(); }
control c15 { c16(); c16(); }
control c16 { c17(); c17(); }
control c17 { c18(); c18(); }
control c18 { c19(); c19(); }
control c19 { c20(); c20(); }
control c20 { c21(); c21(); }
control c21 { c22(); c22(); }
control c22 { c23(); c23(); }
control c23 { c24(); c24(); }
control c24 { c25(); c25(); }
control c25 { c26(); c26(); }
control c26 { c27(); c27(); }
control c27 { c28(); c28(); }
control c28 { c29(); c29(); }
control c29 { c30(); c30(); } //~ ERROR E1416 more than 200000 statements
control c30 { if (true) { } }
