//! A worker that somebody else drives, with packets that are lent to it.

mod wire;

use millrace_dataplane::{
    Doorbell, EngineKind, PortId, Progress, Replica, Supplies, Switch, SwitchConfig, Worker,
};
use millrace_frames::{PacketPool, Region, SlotLayout};
use millrace_pipeline::text;
use std::sync::Arc;

/// Frames of port 2 go to group 1, others to their neighbour: from 0 to 1 and back.
const PROGRAM: &str = "program t architecture test errors (NoError)
     ingress (ingress) egress ()
     intrinsic egress_spec = port
     intrinsic ingress_port = from
     intrinsic multicast_group = group
     metadata port: bit<32>
     metadata from: bit<32>
     metadata group: bit<32>
     body control ingress {
     block0: branch eq(from, 32w2), block1, block2
     block1: group = 32w1 end
     block2: port = xor(from, 32w1) end
     }";

#[test]
fn packets_are_of_the_pool_that_is_lent_and_go_back_there() {
    let mut switch = Switch::new(
        Arc::new(text::parse(PROGRAM).unwrap()),
        SwitchConfig { engine: EngineKind::Fastest, ..SwitchConfig::default() },
    )
    .unwrap();
    switch.replication_mut().create_group(1).unwrap();
    let copies = [0, 1].map(|port| Replica { port, rid: 0 });
    switch.replication_mut().set_copies(1, copies.to_vec()).unwrap();
    let (mut senders, mut pairs, mut receivers) = (Vec::new(), Vec::new(), Vec::new());
    for port in 0..3 {
        let (pair, sender, receiver) = wire::port();
        pairs.push((port as PortId, pair));
        senders.push(sender);
        receivers.push(receiver);
    }
    let doorbell = Doorbell::new().unwrap();
    let mut worker = Worker::driven(switch, pairs, &doorbell.ringer()).unwrap();
    let layout = SlotLayout { size: 2112, ..SlotLayout::DEFAULT };
    let mut supplies = Supplies::new(PacketPool::over(Region::new(8, layout).unwrap()));
    for (sender, mark) in senders.iter().zip(1..) {
        sender.send(vec![mark; 60]).unwrap();
    }
    while worker.step(&mut supplies) == Progress::Busy {}
    let came = receivers.iter().map(|receiver| receiver.try_iter().map(|frame| frame[0]).collect::<Vec<_>>());
    let mut came: Vec<Vec<u8>> = came.collect();
    came.iter_mut().for_each(|frames| frames.sort_unstable());
    assert_eq!(came, [vec![2, 3], vec![1, 3], vec![]]);
    assert_eq!(supplies.pool().available(), 8);
    // Without packets nothing comes in, and nothing of it is lost.
    let mut none = Supplies::new(PacketPool::over(Region::new(0, layout).unwrap()));
    senders[0].send(vec![5; 60]).unwrap();
    worker.step(&mut none);
    assert!(receivers[1].try_recv().is_err());
    worker.step(&mut supplies);
    assert_eq!(receivers[1].try_recv().unwrap(), [5; 60]);
    // A step from some ports leaves others alone, and sends by any.
    for (sender, mark) in senders.iter().zip(6..) {
        sender.send(vec![mark; 60]).unwrap();
    }
    assert_eq!(worker.step_from([2, 7].into_iter(), &mut supplies), Progress::Busy);
    let came = || receivers.iter().map(|receiver| receiver.try_iter().count()).collect::<Vec<_>>();
    assert_eq!(came(), [1, 1, 0]);
    assert_eq!(worker.step_from([2].into_iter(), &mut supplies), Progress::Idle);
    assert_eq!(came(), [0, 0, 0]);
    assert_eq!(worker.step_from([1, 0].into_iter(), &mut supplies), Progress::Busy);
    assert_eq!((came(), supplies.pool().available()), (vec![1, 1, 0], 8));
}
