//! What switches of one program have in common: the program as it is compiled, and its machine code.
//!
//! Code reaches everything that belongs to a switch through its environment, so all switches of a program may run the same, whoever
//! made it: a device with a thousand instances compiles their program once, and one copy is in the caches. What a burst needs while
//! code runs over it is free between two bursts, so the switches that one thread runs have that in common too.
//!
//! Programs are the same that are equal once they are optimised: each switch of a device may have read its own. What is in common goes
//! with the last switch that has it.

use crate::Stage;
use millrace_frames::MAX_BATCH;
use millrace_jit::{Compiled, Contexts, Effort, JitError, Options, Outcomes, Shape};
use millrace_midend::order::Order;
use millrace_pipeline::{Program, TableId, passes};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

/// What there is, by the programs that it was asked for. Those of one address are the same, as long as they are there.
static COMMON: Mutex<Vec<(Weak<Program>, Weak<Common>)>> = Mutex::new(Vec::new());

/// What switches of a program have in common.
pub(crate) struct Common {
    /// The program as it is compiled. Slots and objects have the same numbers, so both engines work on the same state.
    pub(crate) program: Arc<Program>,
    pub(crate) order: Order,
    codes: Mutex<Vec<(Key, Weak<MachineCode>)>>,
}

/// What tells two pieces of code of one program apart.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    part: Part,
    effort: Effort,
    count_lookups: bool,
    staged: Vec<TableId>,
    far: Vec<TableId>,
    shapes: Vec<Shape>,
}

/// A part of a program that is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Ingress and egress of bursts, and whether it tells the class of each packet.
    Through(bool),
    /// A stage for single packets.
    One(Stage),
}

/// Machine code, with what a burst needs while it runs.
pub(crate) struct MachineCode {
    pub(crate) compiled: Compiled,
    /// By the number of a thread.
    scratch: [OfThread; THREADS],
}

/// So many threads have memory for their bursts in common; of two with the same place, the switches of one have their own.
const THREADS: usize = 16;

/// In cache lines of its own: it is locked for each burst.
#[derive(Default)]
#[repr(align(128))]
struct OfThread(Mutex<Option<Scratch>>);

/// What a burst needs while code runs over it.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// The storage of its packets.
    pub(crate) contexts: Contexts,
    pub(crate) outcomes: Outcomes,
}

/// A [`Scratch`] for one burst.
pub(crate) enum Lent<'e> {
    OfThread(MutexGuard<'e, Option<Scratch>>),
    Own(&'e mut Option<Box<Scratch>>),
}

impl fmt::Debug for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Common").field("program", &self.program.name).finish_non_exhaustive()
    }
}

/// What is locked here is whole whenever somebody could panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Common {
    /// What switches of this program have in common.
    pub(crate) fn of(program: &Arc<Program>) -> Arc<Common> {
        let known = |all: &[(Weak<Program>, Weak<Common>)]| {
            let is_asked_for = |(known, _): &&(Weak<Program>, _)| known.as_ptr() == Arc::as_ptr(program);
            all.iter().find(is_asked_for).and_then(|(_, common)| common.upgrade())
        };
        if let Some(common) = known(&lock(&COMMON)) {
            return common;
        }
        let mut optimised = Program::clone(program);
        passes::optimize(&mut optimised);
        let mut all = lock(&COMMON);
        // Dropped after the lock, if they are the last to hold it.
        let mut others: Vec<Arc<Common>> = all.iter().filter_map(|(_, common)| common.upgrade()).collect();
        others.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let same = others.iter().find(|common| *common.program == optimised);
        let common = same.cloned().unwrap_or_else(|| {
            let order = Order::of(&optimised);
            Arc::new(Common { program: Arc::new(optimised), order, codes: Mutex::default() })
        });
        all.retain(|(program, common)| program.strong_count() > 0 && common.strong_count() > 0);
        all.push((Arc::downgrade(program), Arc::downgrade(&common)));
        drop(all);
        common
    }

    /// The code of a part: what another switch has, or else `make` makes.
    pub(crate) fn code(
        &self,
        part: Part,
        options: &Options,
        make: impl FnOnce(&Program) -> Result<Compiled, JitError>,
    ) -> Result<Arc<MachineCode>, JitError> {
        let Options { staged, far, shapes, count_lookups, effort, .. } = options;
        let key = Key {
            part,
            effort: *effort,
            count_lookups: *count_lookups,
            staged: staged.clone(),
            far: far.clone(),
            shapes: shapes.clone(),
        };
        let find = |all: &[(Key, Weak<MachineCode>)]| {
            all.iter().filter(|(known, _)| *known == key).find_map(|(_, code)| code.upgrade())
        };
        if let Some(code) = find(&lock(&self.codes)) {
            return Ok(code);
        }
        let made = make(&self.program)?;
        let mut all = lock(&self.codes);
        Ok(find(&all).unwrap_or_else(|| {
            let made = Arc::new(MachineCode { compiled: made, scratch: Default::default() });
            all.retain(|(_, code)| code.strong_count() > 0);
            all.push((key, Arc::downgrade(&made)));
            made
        }))
    }
}

impl MachineCode {
    fn make_scratch(&self) -> Scratch {
        Scratch { contexts: self.compiled.contexts(MAX_BATCH), outcomes: Outcomes::default() }
    }

    /// What a burst needs: that of the calling thread, or what is the caller's own where it has had to make one.
    #[inline]
    pub(crate) fn lend<'e>(&'e self, own: &'e mut Option<Box<Scratch>>) -> Lent<'e> {
        if own.is_none() {
            let place = THREAD.with(|number| number % THREADS);
            match self.scratch[place].0.try_lock() {
                Ok(there) => return Lent::OfThread(there),
                // Nothing in it is left from one burst to the next.
                Err(TryLockError::Poisoned(there)) => return Lent::OfThread(there.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        Lent::Own(own)
    }
}

thread_local! {
    /// The number of the thread, among those that run code.
    static THREAD: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

impl Lent<'_> {
    #[inline]
    pub(crate) fn get(&mut self, code: &MachineCode) -> &mut Scratch {
        match self {
            Lent::OfThread(there) => there.get_or_insert_with(|| code.make_scratch()),
            Lent::Own(own) => own.get_or_insert_with(|| Box::new(code.make_scratch())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_midend::Plan;
    use millrace_pipeline::text;

    /// A program that sends all packets to a port.
    fn program(port: u32) -> Arc<Program> {
        let text = format!(
            "program common architecture test errors (NoError)
             ingress (ingress) egress ()
             intrinsic egress_spec = port
             metadata port: bit<32>
             body control ingress {{ block0: port = 32w{port} end }}"
        );
        Arc::new(text::parse(&text).unwrap())
    }

    fn code(common: &Common, options: &Options, by_class: bool) -> Arc<MachineCode> {
        let make = |program: &Program| Compiled::new(program, &Plan::through(program, true), options);
        common.code(Part::Through(by_class), options, make).unwrap()
    }

    #[test]
    fn switches_of_equal_programs_have_their_code_in_common() {
        let (first, again, other) = (program(1), program(1), program(2));
        let commons = [&first, &again, &first, &other].map(Common::of);
        assert!(Arc::ptr_eq(&commons[0], &commons[1]) && Arc::ptr_eq(&commons[0], &commons[2]));
        assert!(!Arc::ptr_eq(&commons[0], &commons[3]));
        let (speed, quick) = (Options::default(), Options { effort: Effort::Quick, ..Options::default() });
        let made = code(&commons[0], &speed, false);
        assert!(Arc::ptr_eq(&made, &code(&commons[1], &speed, false)));
        for other in [
            code(&commons[0], &quick, false),
            code(&commons[0], &speed, true),
            code(&commons[3], &speed, false),
        ] {
            assert!(!Arc::ptr_eq(&made, &other));
        }
        // It goes with the last that has it.
        let gone = Arc::downgrade(&made);
        drop(made);
        assert!(gone.upgrade().is_none());
        code(&commons[0], &speed, false);
    }

    #[test]
    fn bursts_of_a_thread_have_one_scratch_unless_it_is_taken() {
        let common = Common::of(&program(3));
        let made = code(&common, &Options::default(), false);
        let (mut one, mut other) = (None, None);
        for _ in 0..2 {
            made.lend(&mut one).get(&made);
        }
        assert!(one.is_none());
        let mut first = made.lend(&mut one);
        first.get(&made);
        made.lend(&mut other).get(&made);
        assert!(other.is_some(), "somebody else has it");
        drop(first);
        // Who has its own keeps to it.
        assert!(
            matches!(made.lend(&mut other), Lent::Own(_)) && matches!(made.lend(&mut one), Lent::OfThread(_))
        );
    }
}
