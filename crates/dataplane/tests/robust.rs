//! Nothing on the packet path panics, whatever comes in, and every packet is accounted for.

use millrace_dataplane::{Replica, Session, Switch, SwitchConfig};
use millrace_pipeline::text;
use proptest::prelude::*;
use std::sync::Arc;

const PROGRAMS: [&str; 2] = [include_str!("programs/through.mir"), include_str!("programs/deparsed.mir")];

fn switch(source: &str) -> Switch {
    let mut switch = Switch::new(Arc::new(text::parse(source).unwrap()), SwitchConfig::default()).unwrap();
    let replication = switch.replication_mut();
    for id in 1..4 {
        replication.create_group(id).unwrap();
        let copies = (0..id).map(|rid| Replica { port: rid * 7, rid: rid as u16 }).collect();
        replication.set_copies(id, copies).unwrap();
        let truncate = (id == 2).then_some(3);
        let session = Session { truncate, group: Some(id), ..Session::to_port(id) };
        replication.set_session(id, session).unwrap();
    }
    switch
}

proptest! {
    #[test]
    fn any_bytes(
        packets in proptest::collection::vec((0u32..600, proptest::collection::vec(any::<u8>(), 0..40)), 1..8),
        small in any::<bool>(),
    ) {
        for source in PROGRAMS {
            let mut switch = switch(source);
            for (port, bytes) in &packets {
                // Half of the runs stay near the operations that the programs know.
                let bytes: Vec<u8> = bytes.iter().map(|byte| if small { byte % 20 } else { *byte }).collect();
                let (outcome, trace) = switch.inject_traced(*port, &bytes, 0);
                prop_assert!(!outcome.sent.is_empty() || !outcome.drops.is_empty());
                prop_assert!(!trace.to_string().is_empty());
            }
            let counters = switch.counters();
            let received: u64 = counters.ports().map(|(_, port)| port.rx_packets).sum();
            prop_assert_eq!(received, packets.len() as u64);
        }
    }
}
