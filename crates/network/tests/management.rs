//! The entries of management: what a switch without valid entries still forwards.

use millrace_network::bounds::bounds;
use millrace_network::export::{Entries, entries};
use millrace_network::{Network, Topology};

/// S1 has an end system of its own, M1, which ES1 asks through S2; nothing of management passes S3. Virtual links 3 and 5 share an account, and the
/// first of them is none of management.
const TEXT: &str = r#"
[network]
name = "managed"
part-number = "MN-1"
[[end-system]]
name = "ES1"
[[end-system]]
name = "ES2"
[[end-system]]
name = "M1"
[[end-system]]
name = "ES3"
[[end-system]]
name = "ES4"
[[switch]]
name = "S1"
end-system = "M1"
max-delay = "5ms"
[[switch]]
name = "S2"
[[switch]]
name = "S3"
[[link]]
between = ["ES1", "S2:0"]
[[link]]
between = ["ES2", "S1:2"]
[[link]]
between = ["M1", "S1:9"]
[[link]]
between = ["S1:1", "S2:1"]
[[link]]
between = ["ES3", "S3:0"]
[[link]]
between = ["ES4", "S3:1"]
[[account]]
name = "shared"
bag = "2ms"
lmax = 400
jitter = "1ms"
[[vl]]
id = 1
source = "ES1"
to = ["M1"]
bag = "2ms"
lmax = 200
jitter = "1ms"
[[vl]]
id = 2
source = "M1"
to = ["ES1"]
bag = "2ms"
lmax = 200
jitter = "1ms"
[[vl]]
id = 3
source = "ES1"
to = ["ES2"]
bag = "4ms"
lmax = 200
shared-account = "shared"
[[vl]]
id = 5
source = "ES1"
to = ["M1"]
bag = "4ms"
lmax = 200
shared-account = "shared"
[[vl]]
id = 6
source = "ES3"
to = ["ES4"]
bag = "2ms"
lmax = 200
jitter = "1ms"
"#;

fn made() -> Vec<Entries> {
    let network =
        Network::parse("managed", TEXT).unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    let topology = Topology::new(&network).expect("a topology");
    entries(&topology, &bounds(&topology).expect("bounds")).expect("entries")
}

fn lines<'t>(text: &'t str, command: &str) -> Vec<&'t str> {
    text.lines().filter(|line| line.starts_with(command)).collect()
}

/// Its ports by hand: virtual link 1 enters S1 by port 1 and leaves by port 9, and so on. Each line is one of the entries of all, with the same numbers.
#[test]
fn management_has_its_virtual_links_their_accounts_and_ports() {
    let made = made();
    let [s1, s2, s3] = made.as_slice() else { panic!("three switches") };
    let management = s1.management.as_deref().expect("entries");
    let forwards = [
        "table_add vls forward 1 1 => 0 0 64 200 0x0e 0x200 0",
        "table_add vls forward 9 2 => 1 1 64 200 0x0e 0x2 0",
        "table_add vls forward 1 5 => 3 2 64 200 0x0e 0x200 0",
    ];
    assert_eq!(lines(management, "table_add vls"), forwards);
    let accounts = [
        "account_set accounts 0 2ms 1ms 200 bytes",
        "account_set accounts 1 2ms 1ms 200 bytes",
        "account_set accounts 2 2ms 1ms 400 bytes",
    ];
    assert_eq!(lines(management, "account_set"), accounts);
    // ES2 is at port 2, which no virtual link of management leaves by.
    let stays = |port| format!("table_add longest_stays set_longest_stay {port} => 5000");
    assert_eq!(lines(management, "table_add longest_stays"), [stays(1), stays(9)]);
    assert_eq!(lines(&s1.commands, "table_add longest_stays"), [stays(1), stays(2), stays(9)]);
    assert_eq!(lines(management, "table_set_default"), lines(&s1.commands, "table_set_default"));
    for switch in [s1, s2] {
        let of_all: Vec<&str> = switch.commands.lines().collect();
        let management = switch.management.as_deref().expect("entries").lines().skip(1);
        management.for_each(|line| assert!(of_all.contains(&line), "{line}"));
    }
    assert_eq!(s3.management, None);
}
