//! Random programs whose packets change state that all flows share, by operations whose order makes no difference.

use crate::flows::{Flow, labelled};
use millrace_dataplane::PortId;
use millrace_pipeline::arbitrary::Rng;
use std::fmt::Write;

/// Packets of each flow.
const PACKETS: usize = 60;
/// Packets that find tokens, in a time that lasts longer than the test.
const TOKENS: u64 = 100;

/// What packets do to a register.
const OPERATIONS: [&str; 5] = ["+", "-", "^", "|", "&"];

/// The source of a program, and the commands that set it up.
pub(crate) fn program(seed: u64) -> (String, Vec<String>) {
    let mut rng = Rng::new(seed);
    let (mut objects, mut actions, mut applied, mut commands) =
        (String::new(), String::new(), String::new(), Vec::new());
    for number in 0..1 + rng.below(4) {
        let width = [1, 8, 13, 32, 48, 64, 100, 130][rng.below(8)];
        let size = [1, 2, 7, 64][rng.below(4)];
        let operation = OPERATIONS[rng.below(OPERATIONS.len())];
        // Two accesses of an action are one step, whatever else is between them.
        let between = if rng.one_in(2) { "seen.count((bit<32>) hdr.h.kind);" } else { "" };
        let index = ["0", "(bit<32>) hdr.h.kind % SIZE", "hdr.h.value % SIZE"][rng.below(3)];
        let index = index.replace("SIZE", &size.to_string());
        let value = if width <= 32 {
            format!("hdr.h.value[{}:0]", width - 1)
        } else {
            format!("(bit<{width}>) hdr.h.value")
        };
        let _ = writeln!(objects, "    register<bit<{width}>>({size}) r{number};");
        let _ = writeln!(
            actions,
            "    action change{number}() {{
        bit<{width}> before;
        r{number}.read(before, {index});
        {between}
        r{number}.write({index}, before {operation} {value});
    }}"
        );
        let kind = rng.below(4);
        let condition = if rng.one_in(3) { format!("if (hdr.h.kind != {kind}) ") } else { String::new() };
        let _ = writeln!(applied, "        {condition}change{number}();");
        if operation == "&" {
            commands.push(format!("register_write I.r{number} 0 1"));
        }
    }
    let unit = if rng.one_in(2) { "packets" } else { "packets_and_bytes" };
    let entries = 1 + rng.below(4);
    commands.extend((0..entries).map(|kind| format!("table_add I.kinds count_kind {kind} => {}", kind + 1)));
    // A token in many hours.
    commands.push(format!("meter_set_rates I.tokens 0 0.0000000001:{TOKENS} 0.0000000001:{}", 2 * TOKENS));
    let source = format!(
        "#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<48> to; bit<48> from; bit<16> type; bit<8> kind; bit<32> value; }}
struct headers_t {{ h_t h; }}
struct meta_t {{ bit<2> colour; }}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    state start {{ packet.extract(hdr.h); transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
{objects}
    counter(256, CounterType.{unit}) seen;
    counter(4, CounterType.packets) coloured;
    meter(1, MeterType.packets) tokens;
    direct_counter(CounterType.packets_and_bytes) of_kind;
{actions}
    action count_kind(bit<9> port) {{ of_kind.count(); std.egress_spec = port; }}
    action other() {{ of_kind.count(); mark_to_drop(std); }}
    table kinds {{
        key = {{ hdr.h.kind: exact; }}
        actions = {{ count_kind; other; }}
        default_action = other();
        counters = of_kind;
    }}
    apply {{
        tokens.execute_meter(0, meta.colour);
        coloured.count((bit<32>) meta.colour);
        kinds.apply();
{applied}    }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    );
    (source, commands)
}

/// Flows whose packets have random kinds and values.
pub(crate) fn flows(seed: u64, count: usize) -> Vec<Flow> {
    let mut rng = Rng::new(!seed);
    let mut packet = |flow: usize, at: usize| {
        let mut packet = vec![2, 0, 0, 0, 0, flow as u8, 4, 0, 0, 0, 0, flow as u8, 0x88, 0xb5];
        packet.push(rng.below(5) as u8);
        packet.extend((rng.next_u64() as u32).to_be_bytes());
        labelled(&packet, flow as u8, at as u16)
    };
    let mut flow = |number: usize| {
        let packets = (0..PACKETS).map(|at| packet(number, at)).collect();
        Flow { number: number as u8, port: number as PortId % 3, packets }
    };
    (0..count).map(&mut flow).collect()
}
