//! MACs in software and in hardware: the same frames, and the same counters.

use millrace_node::{Graph, Mapped, NodeFile, map};

/// Two MACs that send what the other one receives, of which the first has an address.
fn file(placement: &str) -> NodeFile {
    let text = format!(
        r#"
        [[device]]
        name = "board"
        [[service]]
        name = "service"
        [[function]]
        name = "ports"
        service = "service"
        device = "board"
        {placement}
        [[block]]
        name = "p0"
        function = "ports"
        kind = "mac"
        port = 3
        address = "02:00:00:00:00:09"
        {link}
        [[block]]
        name = "p1"
        function = "ports"
        kind = "mac"
        port = 4
        up = false
        {link}
        [[connection]]
        from = "p0.rx"
        to = "p1.tx"
        [[connection]]
        from = "p1.rx"
        to = "p0.tx"
        "#,
        placement = if placement.is_empty() { "" } else { "placement = \"hardware\"" },
        link = if placement.is_empty() { String::new() } else { format!("link = \"{placement}\"") },
    );
    NodeFile::parse("macs.toml", &text).unwrap_or_else(|why| panic!("{}", why.render(false)))
}

/// Numbers that repeat from run to run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A frame to the first MAC, another one, many, or all.
fn frame(numbers: &mut Numbers) -> Vec<u8> {
    let lengths = [60, 61, 63, 64, 100, 123, 124, 251, 252, 507, 508, 1019, 1020, 1514, 1515, 9216];
    let mut frame: Vec<u8> =
        (0..lengths[numbers.below(16) as usize]).map(|_| numbers.below(256) as u8).collect();
    let to: [u8; 6] = match numbers.below(5) {
        0 | 1 => [2, 0, 0, 0, 0, 9],
        2 => [2, 0, 0, 0, 0, 8],
        3 => [1, 0, 0x5e, 0, 0, 9],
        _ => [0xff; 6],
    };
    frame[..6].copy_from_slice(&to);
    frame
}

/// What has left by a MAC, or what a register is in the end.
#[derive(Debug, PartialEq)]
enum Said {
    Left(usize, Vec<u8>),
    Is(String, Vec<u32>),
}

fn run(file: &NodeFile) -> Vec<Said> {
    let mut graph = Graph::new(file, &mut |_| Err("no file".into())).unwrap_or_else(|why| panic!("{why}"));
    let known = map(file);
    let address = |name: &str| known.iter().find(|register| register.name == name).unwrap().address;
    let mut numbers = Numbers(7);
    let mut said = Vec::new();
    for number in 0..240 {
        if number % 20 == 19 {
            let name = ["p0.up", "p1.up", "p0.promiscuous", "p1.promiscuous"][numbers.below(4) as usize];
            graph.write(address(name), u32::from(numbers.below(4) > 0)).unwrap();
        }
        if number == 5 {
            graph.write(address("p1.up"), 1).unwrap();
            assert!(
                graph.write(address("p1.up"), 2).is_err() && graph.write(address("p1.tx.lost"), 0).is_err()
            );
        }
        assert!(graph.receive(numbers.below(2) as usize, &frame(&mut numbers), 0));
        graph.turn(0);
        for mac in 0..2 {
            said.extend(std::iter::from_fn(|| graph.leave_by(mac)).map(|frame| Said::Left(mac, frame)));
        }
    }
    let value = |of: &Mapped| (0..of.words).map(|word| graph.read(of.address + 4 * word)).collect();
    said.extend(known.iter().map(|of| Said::Is(of.name.clone(), value(of))));
    said
}

#[test]
fn macs_on_both_links_do_what_software_does() {
    let wanted = run(&file(""));
    for name in
        ["p0.rx.filtered", "p0.rx.down", "p1.tx.down", "p0.rx.size1519", "p1.tx.size128", "p0.tx.multicast"]
    {
        let counted =
            wanted.iter().any(|said| matches!(said, Said::Is(of, words) if of == name && words[0] > 0));
        assert!(counted, "{name} is 0");
    }
    for link in ["xgmii", "gmii"] {
        let found = run(&file(link));
        for (at, (wanted, found)) in wanted.iter().zip(&found).enumerate() {
            assert_eq!(wanted, found, "{link}, {at}");
        }
        assert_eq!(wanted.len(), found.len(), "{link}");
    }
}
