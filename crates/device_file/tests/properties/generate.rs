//! Models that keep every rule, from bytes that choose.

use millrace_device_file::*;
use std::collections::HashSet;

/// Bytes that are used up; then all choices are 0.
struct Choices<'b>(std::slice::Iter<'b, u8>);

impl Choices<'_> {
    /// A number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.0.next().map_or(0, |byte| u64::from(*byte)) % n
    }

    fn is(&mut self) -> bool {
        self.below(2) == 1
    }

    fn some<T>(&mut self, value: T) -> Option<T> {
        self.is().then_some(value)
    }
}

pub(super) fn model(choices: &[u8]) -> DeviceFile {
    let mut choose = Choices(choices.iter());
    let device = device(&mut choose);
    let mut tenants = Vec::new();
    for name in ["red", "green", "blue"] {
        if choose.is() {
            tenants.push(tenant(name, device.grpc_client_ca.is_some(), &mut choose));
        }
    }
    let mut ports = Vec::new();
    for place in 0..4 {
        if choose.is() {
            let driver = ["packet", "xdp"][choose.below(2) as usize];
            ports.push(Port {
                name: format!("p{place}"),
                device: format!("{driver}:veth{place}"),
                queues: choose.below(3) as u16 + 1,
                rate: choose.is().then_some((choose.below(2) + 1) * 10_000_000_000),
            });
        }
    }
    let classify = choose.is().then(|| program("which.p4", &mut choose));
    // What each switch has once is shifted, so that switches exchange it.
    let shifts = [choose.below(8), choose.below(8), choose.below(40)];
    let mut switches = Vec::new();
    for place in 0..5 {
        if choose.is() {
            let context = (&device, &tenants[..], &ports[..], classify.is_some());
            switches.push(switch(place, shifts, context, &mut choose));
        }
    }
    let links = links(&switches, &mut choose);
    DeviceFile { device, tenants, ports, switches, links, classify }
}

fn device(choose: &mut Choices<'_>) -> Device {
    let processors = if choose.is() { vec![3, 1] } else { Vec::new() };
    let has_tls = choose.is();
    let (grpc_allow_plaintext, operator_token_file) = (choose.is(), choose.some("operator".to_owned()));
    let grpc_ctl = has_tls && operator_token_file.is_some() && !grpc_allow_plaintext && choose.is();
    Device {
        name: "edge".into(),
        workers: if processors.is_empty() { choose.below(3) as u16 + 1 } else { 2 },
        processors,
        socket: ["/run/a.sock", "b \"quoted\\\" é"][choose.below(2) as usize].into(),
        socket_mode: [0o600, 0o660][choose.below(2) as usize],
        socket_group: choose.some("operators".into()),
        grpc: has_tls.then(|| "0.0.0.0:9559".into()),
        grpc_cert: has_tls.then(|| "cert".into()),
        grpc_key: has_tls.then(|| "key".into()),
        grpc_client_ca: if has_tls { choose.some("ca".into()) } else { None },
        grpc_allow_plaintext,
        grpc_ctl,
        uploads: if grpc_ctl { choose.some("uploads".into()) } else { None },
        operator_certificate: None,
        operator_token_file,
        http: choose.some("[::1]:9560".into()),
        http_allow_remote: choose.is(),
        http_hosts: if choose.is() { vec!["edge.example".into()] } else { Vec::new() },
        captures: choose.some("captures".into()),
        audit: choose.some("audit".into()),
        hops: choose.below(64) as u16 + 1,
        packets: 1000 + choose.below(2) as u32,
    }
}

fn tenant(name: &str, has_certificates: bool, choose: &mut Choices<'_>) -> Tenant {
    let certificate = if has_certificates { choose.some(name.to_owned()) } else { None };
    let roles = choose.below(32);
    let has_role = |place: &usize| roles & 1 << place != 0;
    Tenant {
        name: name.into(),
        token_file: if certificate.is_none() || choose.is() { Some(format!("{name}.token")) } else { None },
        certificate,
        roles: (0..5).filter(has_role).map(|place| Role::ALL[place].0).collect(),
        folder: choose.some(".".into()),
    }
}

fn program(path: &str, choose: &mut Choices<'_>) -> Program {
    Program {
        path: path.into(),
        std: [Std::P4_16, Std::P4_14][choose.below(2) as usize],
        include: if choose.is() { vec!["include".into()] } else { Vec::new() },
        define: if choose.is() { vec!["N=4".into(), "M".into()] } else { Vec::new() },
    }
}

type Context<'c> = (&'c Device, &'c [Tenant], &'c [Port], bool);

fn switch(place: u64, shifts: [u64; 3], context: Context<'_>, choose: &mut Choices<'_>) -> Switch {
    let (device, tenants, physical, has_classify) = context;
    let source = match choose.is() {
        true => Source::Image(["a.mimg", "b.mimg"][choose.below(2) as usize].into()),
        false => Source::Program(program("a.p4", choose)),
    };
    let tenant = choose.below(4) as usize;
    let mut ports = Vec::new();
    for number in 0..4 {
        if choose.is() && !physical.is_empty() {
            let unique = (place * 4 + number + shifts[2]) % 40;
            ports.push(virtual_port(number as u16, unique, physical, has_classify, choose));
        }
    }
    let tenant = tenants.get(tenant).map(|tenant| tenant.name.clone());
    let thrift = choose.some(format!("127.0.0.1:{}", 9000 + (place + shifts[1]) % 8));
    let has_clients = !tenants.is_empty() || device.operator_token_file.is_some();
    let acts_as = tenant.clone().filter(|_| choose.is()).unwrap_or_else(|| OPERATOR.to_owned());
    Switch {
        name: format!("s{place}"),
        source,
        entries: if choose.is() { vec!["a.txt".into(), "b.txt".into()] } else { Vec::new() },
        tenant,
        device_id: (place + shifts[0]) % 8 + 1,
        thrift_as: Some(acts_as).filter(|_| thrift.is_some() && has_clients),
        thrift,
        thrift_allow_remote: !has_clients && choose.is(),
        engine: [Engine::Auto, Engine::Jit, Engine::Interp][choose.below(3) as usize],
        worker: choose.is().then_some(choose.below(device.workers.into()) as u16),
        state: [State::Running, State::Stopped][choose.below(2) as usize],
        cpu_port: choose.is().then_some(60 + choose.below(2) as u16),
        ports,
        quota: quota(device, choose),
    }
}

fn virtual_port(
    number: u16,
    unique: u64,
    physical: &[Port],
    has_classify: bool,
    choose: &mut Choices<'_>,
) -> VirtualPort {
    let mut connected: Vec<&Port> = physical.iter().filter(|_| choose.is()).collect();
    if connected.is_empty() {
        connected.push(&physical[0]);
    }
    // Claims of one kind have one priority: each is to other frames.
    let claim = match choose.below(4) {
        0 if has_classify => Claim { frames: Frames::Id(unique as u32), priority: 1 },
        1 => {
            let bytes = Bytes { at: 20, value: vec![unique as u8, 8], mask: vec![0xff, 0x0f] };
            Claim { frames: Frames::Bytes(vec![bytes]), priority: 2 }
        }
        2 => {
            let mac = Some(Mac([2, 0, 0, 0, 0, unique as u8]));
            Claim { frames: Frames::Header { vlan: None, inner: None, mac }, priority: 3 }
        }
        _ => {
            let vlan = Some(unique as u16 + 1);
            Claim { frames: Frames::Header { vlan, inner: choose.some(7), mac: None }, priority: 0 }
        }
    };
    let has_vlan = matches!(claim.frames, Frames::Header { vlan: Some(_), .. });
    let have_rates = connected.iter().all(|port| port.rate.is_some());
    let guaranteed = if have_rates { choose.below(3) * 1_000_000 } else { 0 };
    VirtualPort {
        number,
        physical: connected.iter().map(|port| port.name.clone()).collect(),
        claim,
        tag: if has_vlan {
            [Tag::Keep, Tag::Strip, Tag::Rewrite(5)][choose.below(3) as usize]
        } else {
            Tag::Keep
        },
        broadcast: choose.is(),
        guaranteed,
        largest: choose.some(guaranteed + 1_500_001),
    }
}

fn quota(device: &Device, choose: &mut Choices<'_>) -> Quota {
    let mut some = |value| choose.some(value);
    Quota {
        packets_per_second: some(1_000_000),
        bits_per_second: some(1_000_000_000),
        entries: some(1000),
        memory: some(1 << 26),
        packet_buffers: some(device.packets.into()),
        queue_places: some(1000),
        clones_per_second: some(0),
        recirculations_per_second: some(1),
        copies_per_second: some(2),
        digests_per_second: some(3),
        log_lines_per_second: some(4),
        requests_per_second: some(5),
        time: choose.below(4) as u32 * 12_345,
        largest_time: 1_000_000 - choose.below(2) as u32 * 500_000,
    }
}

fn links(switches: &[Switch], choose: &mut Choices<'_>) -> Vec<Link> {
    let mut links = Vec::new();
    let mut used: HashSet<End> = HashSet::new();
    for _ in 0..6 {
        if switches.is_empty() || !choose.is() {
            continue;
        }
        let mut end = || {
            let switch = &switches[choose.below(switches.len() as u64) as usize];
            // Some of the numbers are those of ports, which are then not free.
            End { switch: switch.name.clone(), port: choose.below(6) as u16 }
        };
        let (a, b) = (end(), end());
        let is_free = |end: &End| {
            let switch = switches.iter().find(|switch| switch.name == end.switch);
            switch.is_some_and(|switch| switch.ports.iter().all(|port| port.number != end.port))
                && !used.contains(end)
        };
        if a == b || !is_free(&a) || !is_free(&b) {
            continue;
        }
        used.extend([a.clone(), b.clone()]);
        links.push(Link {
            between: if a < b { [a, b] } else { [b, a] },
            delay: choose.below(3) * 1_500_000,
            rate: choose.some(100_000_000),
            loss: choose.below(3) as u32 * 1001,
            waiting: choose.below(3) as u32 + 1,
        });
    }
    links
}
