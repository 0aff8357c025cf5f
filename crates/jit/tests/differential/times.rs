//! Packets of one batch that came at different times: each is coloured, stamped and noted as if it had come alone.

use crate::bench::{Bench, in_both_ways};
use millrace_midend::Start;
use millrace_pipeline::*;

/// Colours of a direct and of an indexed meter, and the time of arrival, in the packet.
const PROGRAM: &str = "program times
    errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
    intrinsic parser_error = perr
    intrinsic ingress_timestamp = now
    ingress (p, c, d)
    header h: h_t { key: bit<8> direct: bit<8> asked: bit<8> indexed: bit<8> time: bit<64> }
    metadata perr: bit<16>
    metadata now: bit<64>
    metadata color: bit<8>
    meter m size 2 packets
    action none () = none
    table t {
        key key: exact = h.key
        action none
        default none()
        size 4
        direct_meter rates packets at_hit color
    }
    table asked {
        key key: exact = h.key
        action none
        default none()
        size 4
        direct_meter on_request packets
    }
    table ages {
        key key: exact = h.key
        action none
        default none()
        size 4
        idle_timeout
    }
    body action none { block0: end }
    body parser p { block0: extract h color = 8w9 end }
    body control c {
    block0: apply t, next = block1, exit = block1
    block1: apply ages, next = block2, exit = block2
    block2: apply asked, next = block3, exit = block3
    block3:
        h.direct = color
        meter_direct h.asked, asked
        meter h.indexed, m, h.key
        h.time = now
        end
    }
    body deparser d { block0: emit h end }";

/// What becomes of six packets so far apart, the first at 5 s, by the colours that all meters are to give them.
fn colored(apart_ns: u64, colors: [u8; 6]) -> Vec<Vec<u8>> {
    let packet = |(number, color): (u64, u8)| {
        let time = 5_000_000_000 + number * apart_ns;
        let mut packet = vec![1, color, color, color];
        packet.extend(time.to_be_bytes());
        packet
    };
    (0..).zip(colors).map(packet).collect()
}

#[test]
fn packets_of_one_batch_are_coloured_and_stamped_at_their_own_times() {
    // RFC 2698 with a packet a second, committed and peak, and buckets of one and of two packets, full at first. At
    // 0.4 s there are 0.4 committed and 1.4 peak tokens, at 0.8 s 0.8 of each, at 1.2 s 1 and 1.2, at 1.6 s 0.4 and 0.6, at 2 s
    // 0.8 and 1.
    let cases =
        [(0, [0, 1, 2, 2, 2, 2]), (400_000_000, [0, 1, 2, 0, 2, 1]), (1_000_000_000, [0, 0, 0, 0, 0, 0])];
    let program = text::parse(PROGRAM).unwrap_or_else(|error| panic!("{error}"));
    let all: Vec<TableId> = program.tables.keys().collect();
    for (apart_ns, colors) in cases {
        for staged in [&[][..], &all[..1], &all[..]] {
            for (start, effort) in in_both_ways([Start::Arrival]) {
                let mut bench = Bench::new(program.clone(), start, staged, effort).expect("a state");
                ["t 8w1", "asked 8w1", "ages 8w1"].iter().for_each(|entry| bench.obey("first", entry));
                for cell in ["rates[1]", "on_request[1]", "m[1]"] {
                    bench.obey("meter", &format!("{cell} 1 1 1 2"));
                }
                bench.obey("time", "5000000000");
                bench.set_apart(apart_ns);
                let mut packet = vec![1];
                packet.extend([0; 11]);
                bench.packets(&vec![packet; 6]);
                assert_eq!(bench.left, colored(apart_ns, colors), "{} staged", staged.len());
                // The last hit is that of the last packet, and the entry may be idle for ten seconds.
                let last_ns = 5_000_000_000 + 5 * apart_ns;
                assert_eq!(bench.expired("ages", last_ns + 9_999_999_999), [0, 0]);
                assert_eq!(bench.expired("ages", last_ns + 10_000_000_000), [1, 1]);
                assert_eq!(bench.failures(), [""; 0]);
            }
        }
    }
}
