use super::*;

fn copies(replication: &Replication, group: u32) -> Vec<(PortId, u16)> {
    replication.copies(group).unwrap().into_iter().map(|copy| (copy.port, copy.rid)).collect()
}

#[test]
fn copies_come_in_the_order_of_nodes_then_ports_then_single_copies() {
    let mut replication = Replication::default();
    replication.create_group(7).unwrap();
    let first = replication.create_node(10, vec![3, 1, 3]).unwrap();
    let second = replication.create_node(20, vec![2]).unwrap();
    assert_eq!((first, second), (NodeHandle(0), NodeHandle(1)));
    replication.associate(7, second).unwrap();
    replication.associate(7, first).unwrap();
    replication.set_copies(7, vec![Replica { port: 9, rid: 1 }, Replica { port: 0, rid: 1 }]).unwrap();
    assert_eq!(copies(&replication, 7), [(2, 20), (1, 10), (3, 10), (9, 1), (0, 1)]);

    replication.dissociate(7, second).unwrap();
    replication.update_node(first, vec![4]).unwrap();
    assert_eq!(copies(&replication, 7), [(4, 10), (9, 1), (0, 1)]);
    replication.destroy_node(first).unwrap();
    assert_eq!(copies(&replication, 7), [(9, 1), (0, 1)]);
}

#[test]
fn refused_writes_say_why_and_change_nothing() {
    let mut replication = Replication::default();
    assert_eq!(replication.create_group(0), Err(ReplicationError::GroupZero));
    replication.create_group(1).unwrap();
    assert_eq!(replication.create_group(1), Err(ReplicationError::GroupExists(1)));
    let node = replication.create_node(0, vec![1]).unwrap();
    assert_eq!(replication.associate(2, node), Err(ReplicationError::NoGroup(2)));
    replication.associate(1, node).unwrap();
    assert_eq!(replication.associate(1, node), Err(ReplicationError::NodeInUse { node, group: 1 }));
    let twice = vec![Replica { port: 1, rid: 0 }; 2];
    assert_eq!(
        replication.set_copies(1, twice).unwrap_err().to_string(),
        "port 1 with replica number 0 is listed twice"
    );
    assert_eq!(copies(&replication, 1), [(1, 0)]);
    assert_eq!(replication.delete_session(5), Err(ReplicationError::NoSession(5)));
    assert!(replication.copies(2).is_none());
}

#[test]
fn a_destroyed_group_frees_its_nodes() {
    let mut replication = Replication::default();
    replication.create_group(1).unwrap();
    let node = replication.create_node(0, vec![1]).unwrap();
    replication.associate(1, node).unwrap();
    replication.destroy_group(1).unwrap();
    replication.create_group(2).unwrap();
    replication.associate(2, node).unwrap();
    assert_eq!(copies(&replication, 2), [(1, 0)]);
}

#[test]
fn the_copies_of_a_group_are_limited() {
    let mut replication = Replication::default();
    replication.create_group(1).unwrap();
    let full = replication.create_node(0, (0..MAX_GROUP_COPIES as u32).collect()).unwrap();
    replication.associate(1, full).unwrap();
    let more = replication.create_node(1, vec![0]).unwrap();
    assert!(matches!(replication.associate(1, more), Err(ReplicationError::TooMany { .. })));
    assert!(replication.set_copies(1, vec![Replica { port: 1, rid: 1 }]).is_err());
    assert_eq!(copies(&replication, 1).len(), MAX_GROUP_COPIES);
}
#[test]
fn numbers_of_nodes_are_used_again_lowest_first() {
    let mut replication = Replication::default();
    for expected in 0..3 {
        assert_eq!(replication.create_node(0, vec![]), Ok(NodeHandle(expected)));
    }
    replication.destroy_node(NodeHandle(2)).unwrap();
    replication.destroy_node(NodeHandle(0)).unwrap();
    let made: Vec<u32> = (0..3).map(|_| replication.create_node(0, vec![]).unwrap().0).collect();
    assert_eq!(made, [0, 2, 3]);
}

#[test]
fn one_port_of_each_link_aggregation_group_gets_a_copy() {
    let mut replication = Replication::default();
    replication.create_group(1).unwrap();
    let node = replication.create_node(5, vec![1]).unwrap();
    replication.associate(1, node).unwrap();
    replication.set_node_lags(node, [7, 3]).unwrap();
    // Groups without ports get none.
    assert_eq!(copies(&replication, 1), [(1, 5)]);
    replication.set_lag(3, vec![]).unwrap();
    replication.set_lag(7, vec![30, 10, 20, 40]).unwrap();
    // bmv2 takes number 255 % 4 = 3 of the ports in ascending order.
    assert_eq!(copies(&replication, 1), [(1, 5), (40, 5)]);
    replication.set_lag(3, vec![9]).unwrap();
    assert_eq!(copies(&replication, 1), [(1, 5), (9, 5), (40, 5)]);
    assert_eq!(replication.set_lag(256, vec![1]), Err(ReplicationError::LagNumber(256)));
    assert_eq!(replication.set_node_lags(node, [256]), Err(ReplicationError::LagNumber(256)));

    replication.set_session(1, Session::to_port(1)).unwrap();
    replication.clear_multicast();
    assert_eq!(
        (replication.groups().count(), replication.nodes().count(), replication.lags().count()),
        (0, 0, 0)
    );
    assert!(replication.session(1).is_some());
}
