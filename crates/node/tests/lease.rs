//! Memory that is shared under leases: by sharers that keep to the protocol, that stop, and that are cut off.

use millrace_link::{Client, Server};
use millrace_node::{LeaseError, SharedMemory, Sharer};
use std::net::SocketAddr;
use std::time::Duration;

fn serve(words: u32) -> Server {
    Server::local(Box::new(SharedMemory::new("shared", words).unwrap())).unwrap()
}

fn is_refused<T>(result: Result<T, LeaseError>) -> bool {
    matches!(result, Err(LeaseError::Refused(_)))
}

const LONG: Duration = Duration::from_secs(30);

#[test]
fn one_writes_at_a_time_and_all_read() {
    let server = serve(64);
    let [mut one, mut two] = [1, 2].map(|who| Sharer::connect(server.address(), who).unwrap());
    assert!(is_refused(one.write(0, &[1])), "without a lease");
    let token = one.take(LONG).unwrap();
    one.write(3, &[7, 8]).unwrap();
    assert_eq!(two.read(2, 4).unwrap(), (2, vec![0, 7, 8, 0]));
    assert!(is_refused(two.take(LONG)) && is_refused(two.write(3, &[9])));
    one.give_back().unwrap();
    assert!(two.take(LONG).unwrap() > token);
    two.write(3, &[9]).unwrap();
    // The first one's lease is over, whatever it believes.
    assert!(is_refused(one.write(3, &[1])) && is_refused(one.give_back()));
    assert_eq!(one.read(3, 1).unwrap(), (3, vec![9]));
    assert_eq!(one.conflicts().unwrap(), 5);
}

#[test]
fn who_stops_loses_its_lease_and_writes_nothing_later() {
    let server = serve(8);
    let [mut one, mut two] = [1, 2].map(|who| Sharer::connect(server.address(), who).unwrap());
    let stale = one.take(Duration::from_secs(2)).unwrap();
    one.write(0, &[1]).unwrap();
    std::thread::sleep(Duration::from_millis(2100));
    assert!(is_refused(one.write(0, &[2])), "after its time");
    let token = two.take(LONG).unwrap();
    assert_eq!(token, stale + 1);
    two.write(0, &[3]).unwrap();
    assert!(is_refused(one.write(0, &[4])));
    assert_eq!(two.read(0, 1).unwrap(), (2, vec![3]));
}

#[test]
fn who_is_cut_off_has_its_lease_until_its_time_is_over() {
    let server = serve(8);
    let mut one = Sharer::connect(server.address(), 1).unwrap();
    one.take(Duration::from_secs(10)).unwrap();
    drop(one);
    let mut two = Sharer::connect(server.address(), 2).unwrap();
    assert!(is_refused(two.take(LONG)));
    // The same one may go on, with another token.
    let mut again = Sharer::connect(server.address(), 1).unwrap();
    assert_eq!(again.take(Duration::from_secs(2)).unwrap(), 2);
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(two.take(LONG).unwrap(), 3);
}

/// Adds to a number that many share.
fn add(address: SocketAddr, who: u32, times: u32) {
    let mut sharer = Sharer::connect(address, who).unwrap();
    let mut done = 0;
    while done < times {
        match sharer.take(LONG) {
            Ok(_) => {
                let (_, words) = sharer.read(0, 2).unwrap();
                sharer.write(0, &[words[0] + 1, words[1] + 2]).unwrap();
                sharer.give_back().unwrap();
                done += 1;
            }
            Err(LeaseError::Refused(_)) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn no_addition_of_several_sharers_is_lost() {
    let server = serve(8);
    let address = server.address();
    let threads: Vec<_> = (1..=4).map(|who| std::thread::spawn(move || add(address, who, 50))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut reader = Sharer::connect(address, 9).unwrap();
    assert_eq!(reader.read(0, 2).unwrap(), (400, vec![200, 400]));
}

#[test]
fn what_was_changed_is_written_with_the_lease_or_not_at_all() {
    let server = serve(9000);
    let [mut one, mut two] = [1, 2].map(|who| Sharer::connect(server.address(), who).unwrap());
    assert_eq!((one.name(), one.words()), ("shared", 9000));
    // More words than a request has.
    let changes: Vec<(u32, u32)> = (0..9000).map(|at| (at, at + 1)).collect();
    one.take(LONG).unwrap();
    assert_eq!(one.version(), 0);
    one.finish(&changes).unwrap();
    two.take(LONG).unwrap();
    assert_eq!((two.version(), two.read_held(9000).unwrap()), (9000, (1..=9000).collect()));
    two.finish(&[]).unwrap();
    // Once it was given back nothing is written.
    assert!(is_refused(one.finish(&[(0, 7)])) && is_refused(two.finish(&[])));
    let token = one.take(Duration::from_millis(100)).ok();
    std::thread::sleep(Duration::from_millis(200));
    assert!(is_refused(one.finish(&[(0, 7)])), "the lease {token:?} is over");
    assert_eq!(one.read(0, 1).unwrap(), (9000, vec![1]));
}

/// What names a client or a token is of one request: the next one is another client's for all that the memory knows.
#[test]
fn nobody_writes_as_another_one() {
    const WORD: u32 = 4;
    let server = serve(8);
    let mut one = Sharer::connect(server.address(), 1).unwrap();
    one.take(LONG).unwrap();
    one.write(0, &[5]).unwrap();
    let mut other = Client::connect(server.address(), false).unwrap();
    let refused = other.write(&[(WORD * 8, 9)]).unwrap_err().to_string();
    assert!(refused.contains("a write names the token of its lease first"), "{refused}");
    one.give_back().unwrap();
    // A lease for the client that a request before has named.
    other.write(&[(WORD * 6, 3)]).unwrap();
    let refused = other.write(&[(WORD * 4, 1000)]).unwrap_err().to_string();
    assert!(refused.contains("a lease is for somebody"), "{refused}");
    assert_eq!(one.read(0, 1).unwrap().1, [5]);
}

#[test]
fn what_is_out_of_limits_is_refused() {
    assert!(SharedMemory::new("x", 0).is_err());
    let why = SharedMemory::new("x", 65_537).unwrap_err().to_string();
    assert_eq!(why, "65537 words: 1 to 65536 (MAX_SHARED_WORDS)");
    let server = serve(8);
    let mut one = Sharer::connect(server.address(), 1).unwrap();
    let why = one.take(Duration::from_secs(61)).unwrap_err().to_string();
    assert!(why.contains("MAX_LEASE_MS"), "{why}");
    assert!(one.take(Duration::ZERO).is_err());
    assert!(matches!(one.write(0, &vec![0; 5000]), Err(LeaseError::Limit(_))));
    // Over before its token is here, or not: then it is its own.
    assert!(one.take(Duration::from_millis(1)).map_or(true, |token| token == 1));
    one.take(LONG).unwrap();
    assert!(is_refused(one.write(8, &[1])) && is_refused(one.read(7, 2)));
    assert!(matches!(one.write(u32::MAX, &[1]), Err(LeaseError::Limit(_))));
    assert!(is_refused(Sharer::connect(server.address(), 0).unwrap().take(LONG)));
}
