//! Two end systems and two cables, in virtual time: what a program with an end system inside has to do.
//!
//! 1. Say what the end system sends and receives: [`EndSystemConfig`]. All limits are checked here.
//! 2. Add ports: they are what applications see.
//! 3. Send messages from ports.
//! 4. Ask when something can leave next ([`Transmitter::next_ns`](millrace_afdx::Transmitter::next_ns)), wait until then, and have it leave
//!    ([`Transmitter::step`](millrace_afdx::Transmitter::step)). Here "wait" is an assignment; on a machine it is a timer.
//! 5. Give every frame that comes to the receiver, with the time and the network, and read the ports.
//!
//!     cargo run -p millrace-afdx --example exchange

use millrace_afdx::{
    Bag, ConfigError, EndSystem, EndSystemConfig, EndSystemId, IntegrityRule, LineRate, Network, Networks,
    Partition, PortKind, ReceivePort, ReceiveVl, RedundancyRule, TransmitPort, TransmitVl, VlId,
};
use std::error::Error;

/// The virtual link from the first end system to the second.
const VL: VlId = VlId(7);
const UDP_PORT: u16 = 2000;
/// How long a frame takes by network A and by B, in nanoseconds.
const DELAYS: [u64; 2] = [30_000, 450_000];

/// Steps 1 and 2 for the sender: a frame of at most 300 bytes each 4 ms.
fn sender(bag: Bag, rate: LineRate) -> Result<(EndSystem, usize), ConfigError> {
    let mut config = EndSystemConfig::new(EndSystemId::from_parts(1, 1), rate);
    config.transmits.push(TransmitVl::new(VL, bag, 300));
    let mut es = EndSystem::new(&config)?;
    let port = es.transmitter.add_port(TransmitPort {
        kind: PortKind::Queuing,
        vl: VL,
        sub_vl: 0,
        partition: Partition::default(),
        source_port: UDP_PORT,
        destination: Some((None, UDP_PORT)),
    })?;
    Ok((es, port))
}

/// Steps 1 and 2 for the receiver: copies of a frame are at most 1 ms apart.
fn receiver(bag: Bag, rate: LineRate) -> Result<(EndSystem, usize), ConfigError> {
    let mut config = EndSystemConfig::new(EndSystemId::from_parts(1, 2), rate);
    config.receives.push(ReceiveVl {
        id: VL,
        bag,
        lmax: 300,
        networks: Networks::Both,
        integrity: Some(IntegrityRule::default()),
        redundancy: Some(RedundancyRule::new(1_000_000, bag)?),
    });
    let mut es = EndSystem::new(&config)?;
    let port = es.receiver.add_port(ReceivePort {
        kind: PortKind::Queuing,
        vl: VL,
        ip: None,
        port: UDP_PORT,
        depth: 8,
        max_message: 8192,
    })?;
    Ok((es, port))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (bag, rate) = (Bag::from_ns(4_000_000)?, LineRate::from_bps(100_000_000)?);
    let (mut from, out) = sender(bag, rate)?;
    let (mut to, inbox) = receiver(bag, rate)?;

    // Step 3. 600 bytes are three frames.
    from.transmitter.send(0, out, &[1; 600])?;
    from.transmitter.send(0, out, b"the end")?;

    // Step 4: everything that leaves, and when it arrives. Network A loses the second frame.
    let (mut on_their_way, mut now_ns) = (Vec::new(), 0);
    while let Some(next_ns) = from.transmitter.next_ns() {
        now_ns = next_ns.max(now_ns);
        from.transmitter.step(now_ns, |leaves| {
            let is_lost = leaves.network == Network::A && leaves.start_ns == 4_000_000;
            if !is_lost {
                let arrives_ns = leaves.start_ns + DELAYS[leaves.network.index()];
                on_their_way.push((arrives_ns, leaves.network, leaves.frame.to_vec()));
            }
        });
    }

    // Step 5.
    on_their_way.sort_by_key(|(arrives_ns, ..)| *arrives_ns);
    for (arrives_ns, network, frame) in on_their_way {
        let verdict = to.receiver.receive(arrives_ns, network, &frame);
        println!("{:>8} us  {network}  {} bytes: {verdict:?}", arrives_ns / 1000, frame.len());
        while let Some(message) = to.receiver.take(inbox) {
            println!("             a message of {} bytes from {:?}", message.data.len(), message.source);
        }
    }
    Ok(())
}
