//! CRCs whose parameters are set while a program runs, by both engines.

use millrace_dataplane::{EngineKind, Switch, SwitchConfig};
use millrace_pipeline::{CrcParameters, CrcWidth, HashAlgorithm, text};
use std::sync::Arc;

/// Puts two CRCs over the first nine bytes, and over all after them, before the packet.
const PROGRAM: &str = "program hashes architecture test
    errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
    ingress (parse, compute, deparse) egress ()
    intrinsic parser_error = perr intrinsic egress_spec = port
    metadata perr: bit<16> metadata port: bit<32>
    own_hash calc crc16_custom
    own_hash calc_0 crc32_custom
    header data: data_t { digits: bit<72> }
    header sums: sums_t { short: bit<16> long: bit<32> of_rest: bit<32> }
    body parser parse { block0: extract data end }
    body control compute {
    block0: set_valid sums
        hash sums.short, crc16_custom calc, (header data)
        hash sums.long, crc32_custom calc_0, (data.digits)
        hash sums.of_rest, crc32_custom calc_0, (payload)
        port = 32w1 end }
    body deparser deparse { block0: emit sums emit data end }";

fn forwarded(switch: &mut Switch) -> Vec<u8> {
    let outcome = switch.inject(1, b"123456789123456789", 0);
    assert_eq!(outcome.sent.len(), 1);
    outcome.sent[0].bytes[..10].to_vec()
}

/// Check values of the CRC catalogue: CRC-16/ARC and CRC-32/ISO-HDLC, then CRC-16/XMODEM and CRC-32/BZIP2.
#[test]
fn parameters_are_set_and_stay() {
    let xmodem = CrcParameters {
        width: CrcWidth::Sixteen,
        polynomial: 0x1021,
        initial: 0,
        final_xor: 0,
        data_reflected: false,
        remainder_reflected: false,
    };
    let bzip2 = CrcParameters {
        data_reflected: false,
        remainder_reflected: false,
        ..CrcParameters::of(HashAlgorithm::Crc32Custom).unwrap()
    };
    for engine in [EngineKind::Interp, EngineKind::Fastest] {
        let program = text::parse(PROGRAM).unwrap_or_else(|error| panic!("{error}"));
        let ids: Vec<_> = program.hashes.keys().collect();
        let config = SwitchConfig { engine, ..SwitchConfig::default() };
        let mut switch = Switch::new(Arc::new(program), config).unwrap();
        assert_eq!(forwarded(&mut switch), [0xbb, 0x3d, 0xcb, 0xf4, 0x39, 0x26, 0xcb, 0xf4, 0x39, 0x26]);
        assert!(!switch.state_mut().set_own_hash(ids[0], bzip2), "not of its width");
        assert!(switch.state_mut().set_own_hash(ids[0], xmodem));
        assert!(switch.state_mut().set_own_hash(ids[1], bzip2));
        let changed = [0x31, 0xc3, 0xfc, 0x89, 0x19, 0x18, 0xfc, 0x89, 0x19, 0x18];
        assert_eq!(forwarded(&mut switch), changed);
        let handle = switch.state().handle();
        switch.state_mut().reset(&mut handle.lock()).unwrap();
        assert_eq!(forwarded(&mut switch), changed);
    }
}
