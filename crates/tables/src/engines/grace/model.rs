//! Grace periods in every order of steps that the memory model allows.
//!
//!     RUSTFLAGS="--cfg loom" cargo test --release -p millrace-tables --lib grace::model
//!
//! A value notes when it is dropped. A reader looks at that note as long as it may hold the value; a note that says "dropped"
//! there is memory that was given back too early. Without the fence of [`Worker::wake`], or with a stamp that is one less, the
//! models fail.

use super::*;
use loom::sync::atomic::AtomicBool;
use loom::thread;

/// Which of two values are dropped.
#[derive(Clone)]
struct Notes(Arc<[AtomicBool; 2]>);

/// A value that notes its end.
struct Noted {
    number: usize,
    notes: Notes,
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.notes.0[self.number].store(true, Ordering::Release);
    }
}

impl Notes {
    fn new() -> Notes {
        Notes(Arc::new([AtomicBool::new(false), AtomicBool::new(false)]))
    }

    fn value(&self, number: usize) -> Noted {
        Noted { number, notes: self.clone() }
    }

    /// Reads the value that is published now, which nobody may drop meanwhile.
    fn read(&self, subscriber: &Subscriber<Noted>, worker: &Worker) -> usize {
        let number = subscriber.get(worker).expect("an awake worker").number;
        for _ in 0..2 {
            assert!(!self.0[number].load(Ordering::Acquire), "value {number} was dropped under its reader");
        }
        number
    }
}

#[test]
fn a_reader_keeps_what_it_holds_until_a_quiescent_point() {
    loom::model(|| {
        let (domain, notes) = (Domain::new(), Notes::new());
        let mut publisher = Publisher::new(&domain, notes.value(0));
        let (subscriber, mut worker) = (publisher.subscribe(), domain.worker());
        let seen = notes.clone();
        let reader = thread::spawn(move || {
            let first = seen.read(&subscriber, &worker);
            worker.quiescent();
            let second = seen.read(&subscriber, &worker);
            assert!(first <= second, "a value never goes back");
        });
        publisher.publish(notes.value(1));
        domain.collect();
        reader.join().unwrap();
        assert!(domain.collect() <= 1);
    });
}

#[test]
fn a_worker_that_wakes_is_seen_or_sees() {
    loom::model(|| {
        let (domain, notes) = (Domain::new(), Notes::new());
        let mut publisher = Publisher::new(&domain, notes.value(0));
        let (subscriber, mut worker) = (publisher.subscribe(), domain.worker());
        worker.sleep();
        let seen = notes.clone();
        let reader = thread::spawn(move || {
            worker.wake();
            seen.read(&subscriber, &worker);
            worker.sleep();
        });
        publisher.publish(notes.value(1));
        domain.collect();
        reader.join().unwrap();
    });
}

#[test]
fn after_waiting_nothing_old_is_held() {
    loom::model(|| {
        let (domain, notes) = (Domain::new(), Notes::new());
        let mut publisher = Publisher::new(&domain, notes.value(0));
        let (subscriber, mut worker) = (publisher.subscribe(), domain.worker());
        let seen = notes.clone();
        let reader = thread::spawn(move || {
            seen.read(&subscriber, &worker);
            worker.sleep();
            // Dropped here it would collect too, and could be the one that is about to drop the old value.
            subscriber
        });
        publisher.publish(notes.value(1));
        domain.wait();
        assert!(notes.0[0].load(Ordering::Acquire), "the old value is gone");
        drop(reader.join().unwrap());
    });
}
