//! What making code takes is bounded, whatever the program: in time, in bytes of code, and when nobody waits for it.

use millrace_jit::{Compiled, Effort, JitError, Options};
use millrace_midend::budget::MAX_CODE;
use millrace_midend::{Cancel, Limit, Plan};
use millrace_pipeline::{Program, passes};
use std::fmt::Write;
use std::fs;
use std::time::Duration;

/// Most processor time for one program. (Without optimisation Cranelift's verifier runs too.)
const MAX_TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });
/// Bytes of code that an instruction of Cranelift's IR becomes at most, on average.
const BYTES: usize = 32;
const EFFORTS: [Effort; 3] = [Effort::Speed, Effort::Quick, Effort::Soon];

/// Processor time of this thread so far: the first number in `schedstat`, in nanoseconds.
fn spent() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells the time of a thread");
    let nanos = text.split(' ').next().and_then(|number| number.parse().ok()).expect("a number");
    Duration::from_nanos(nanos)
}

/// A program for v1model whose metadata has these fields, and whose ingress is this.
fn program(fields: &str, declared: &str, apply: &str) -> Program {
    let source = format!(
        "#include <v1model.p4>
         header a_t {{ bit<16> kind; bit<16> other; }}
         struct H {{ a_t a; }}
         struct M {{ {fields} }}
         parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{
             state start {{ p.extract(h.a); transition accept; }}
         }}
         control V(inout H h, inout M m) {{ apply {{}} }}
         control I(inout H h, inout M m, inout standard_metadata_t s) {{
             {declared}
             apply {{ {apply} }}
         }}
         control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}
         control C(inout H h, inout M m) {{ apply {{}} }}
         control D(packet_out p, in H h) {{ apply {{ p.emit(h.a); }} }}
         V1Switch(P(), V(), I(), E(), C(), D()) main;"
    );
    let parsed = millrace_syntax::parse_text("bounds.p4", &source, &millrace_syntax::Options::default());
    let checked = millrace_sema::check(&parsed.program);
    let mut program = millrace_lower::lower(&checked.program, "bounds").expect("a program that lowers");
    passes::optimize(&mut program);
    program
}

/// As many operations of that width as asked for, on operands that only a packet knows.
fn wide(width: u32, operations: usize, operation: &str) -> Program {
    let fields = format!("bit<{width}> x; bit<{width}> y;");
    let ends = ["m.x[15:0] = h.a.kind; m.y[31:16] = h.a.other;", "s.egress_spec = m.x[8:0] ^ m.x[17:9];"];
    program(&fields, "", &format!("{} {} {}", ends[0], operation.repeat(operations), ends[1]))
}

fn compile(program: &Program, effort: Effort) -> Result<Compiled, JitError> {
    let options = Options { effort, ..Options::default() };
    Compiled::new(program, &Plan::through(program, true), &options)
}

/// Compiles with all three efforts within the bounds; gives the limit that refuses the program, if one does.
fn bounded(name: &str, program: &Program) -> [Option<Limit>; 3] {
    EFFORTS.map(|effort| {
        let start = spent();
        let made = compile(program, effort);
        let took = spent() - start;
        println!(
            "{name} {effort:?}: {took:?}, {:?}",
            made.as_ref().map(|code| code.statistics().bytes).map_err(ToString::to_string)
        );
        assert!(took < MAX_TIME, "{name} {effort:?} took {took:?}");
        match made {
            Ok(code) => {
                assert!(code.statistics().bytes < BYTES * MAX_CODE, "{name}: {:?}", code.statistics());
                None
            }
            Err(JitError::TooLarge(limit)) => Some(limit),
            Err(error) => panic!("{name}: {error}"),
        }
    })
}

#[test]
fn a_thousand_additions_of_the_widest_numbers_are_too_large() {
    let refused = bounded("1000 x 65536", &wide(1 << 16, 1000, "m.x = m.x + m.y; "));
    assert_eq!(refused, [Some(Limit::Estimate); 3]);
    let error = compile(&wide(1 << 16, 1000, "m.x = m.x + m.y; "), Effort::Soon).err().expect("too large");
    assert_eq!(
        error.to_string(),
        "the program is too large for machine code: more than 4194304 instructions as estimated from operations and \
         widths (MAX_ESTIMATE)"
    );
}

/// What is estimated to fit and does not is found while code is generated.
#[test]
fn too_much_code_is_noticed_while_it_is_generated() {
    let refused = bounded("200 x 16384", &wide(1 << 14, 200, "m.x = m.x + m.y; "));
    assert_eq!(refused, [Some(Limit::Code); 3]);
}

/// Wide numbers are no reason to have no code: few operations have some, in the way that takes short.
#[test]
fn few_wide_operations_have_code() {
    assert_eq!(bounded("16 x 65536", &wide(1 << 16, 16, "m.x = m.x + m.y; ")), [None; 3]);
    assert_eq!(bounded("500 x 1024", &wide(1024, 500, "m.x = m.x + m.y; ")), [None; 3]);
    assert_eq!(bounded("3000 x 128", &wide(128, 3000, "m.x = m.x * m.y + 1; ")), [None; 3]);
}

/// One action with many statements in each of many tables, which inlines it.
#[test]
fn actions_are_not_inlined_without_end() {
    let mut declared = String::from("action big(bit<32> by) {\n");
    (0..700).for_each(|_| declared.push_str("m.x = m.x * by + 3;\n"));
    declared.push_str("}\n");
    let mut apply = String::new();
    for table in 0..700 {
        let _ = writeln!(declared, "table t{table} {{ key = {{ h.a.kind: exact; }} actions = {{ big; }} }}");
        let _ = writeln!(apply, "t{table}.apply();");
    }
    apply.push_str("s.egress_spec = m.x[8:0];");
    let refused = bounded("700 tables", &program("bit<32> x;", &declared, &apply));
    assert_eq!(refused, [Some(Limit::Estimate); 3]);
}

/// Many paths with many values that each remembers.
#[test]
fn branches_over_many_values_are_bounded() {
    let fields: String = (0..2000).fold(String::new(), |mut all, at| {
        let _ = write!(all, "bit<32> f{at}; ");
        all
    });
    let mut apply = String::new();
    for at in 0..2000 {
        let _ = writeln!(
            apply,
            "if (h.a.kind == {at}) {{ m.f{at} = m.f{} + (bit<32>) h.a.other; }}",
            at * 7 % 2000
        );
    }
    let sum: String = (0..2000).step_by(20).fold(String::new(), |mut all, at| {
        let _ = writeln!(all, "s.egress_spec = s.egress_spec ^ m.f{at}[8:0];");
        all
    });
    bounded("2000 branches", &program(&fields, "", &(apply + &sum)));
}

#[test]
fn code_that_nobody_waits_for_is_not_made() {
    let program = wide(128, 10, "m.x = m.x + m.y; ");
    let cancel = Cancel::default();
    let options = Options { cancel: cancel.clone(), ..Options::default() };
    let plan = Plan::through(&program, true);
    assert!(Compiled::new(&program, &plan, &options).is_ok());
    cancel.cancel();
    assert!(matches!(Compiled::new(&program, &plan, &options), Err(JitError::Cancelled)));
}
