//! Which switch a frame of a port of the machine goes to, and the frames on their way there.

use crate::backplane::Route;
use crate::wire::Wire;
use millrace_frames::{Batch, PacketPool};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where frames go: for each port of the machine the wires that its frames may go to.
#[derive(Debug)]
pub(crate) struct Routes {
    /// By number of the port of the machine: the wire that has it whole.
    pub(crate) whole: Vec<Option<usize>>,
    pub(crate) wires: Vec<Arc<Wire>>,
    /// Frames that were nobody's, by port of the machine.
    pub(crate) unclassified: AtomicU64,
}

impl Routes {
    /// All frames are nobody's.
    pub(crate) fn none() -> Routes {
        Routes { whole: Vec::new(), wires: Vec::new(), unclassified: AtomicU64::new(0) }
    }
}

impl Routes {
    pub(crate) fn of(routes: &[Route]) -> Routes {
        let mut made = Routes::none();
        for route in routes {
            let at = usize::from(route.physical);
            if made.whole.len() <= at {
                made.whole.resize(at + 1, None);
            }
            made.whole[at] = Some(made.wires.len());
            made.wires.push(Arc::clone(&route.wire));
        }
        made
    }
}

/// Frames of a lane's ports on their way to the inboxes of switches.
pub(crate) struct Spread {
    routes: Arc<Routes>,
    /// What each wire gets.
    shares: Vec<Option<Box<Batch>>>,
    /// The wires that get something.
    touched: Vec<usize>,
    collected: usize,
    spare: Vec<Box<Batch>>,
}

impl Spread {
    pub(crate) fn new(routes: Arc<Routes>) -> Spread {
        let shares = routes.wires.iter().map(|_| None).collect();
        Spread { routes, shares, touched: Vec::new(), collected: 0, spare: Vec::new() }
    }

    /// How many wires get something.
    pub(crate) fn touched(&self) -> usize {
        self.touched.len()
    }

    /// Frames that were given and not handed over.
    pub(crate) fn collected(&self) -> usize {
        self.collected
    }

    /// Frames have come to a port of the machine.
    #[inline]
    pub(crate) fn give(&mut self, physical: u16, batch: &mut Batch, pool: &mut PacketPool) {
        self.collected += batch.len();
        match self.routes.whole.get(usize::from(physical)) {
            Some(Some(wire)) => self.give_all(*wire, batch, pool),
            _ => {
                self.routes.unclassified.fetch_add(batch.len() as u64, Ordering::Relaxed);
                batch.recycle(pool);
            }
        }
    }

    fn give_all(&mut self, wire: usize, batch: &mut Batch, pool: &mut PacketPool) {
        let Spread { routes, shares, touched, spare, .. } = self;
        let share = shares[wire].get_or_insert_with(|| {
            touched.push(wire);
            spare.pop().unwrap_or_default()
        });
        if share.take_all(batch) {
            return;
        }
        // It has some already: they go first.
        routes.wires[wire].deliver(share, pool);
        if !share.take_all(batch) {
            routes.wires[wire].deliver(batch, pool);
        }
    }

    /// Gives the wires what they get.
    #[inline]
    pub(crate) fn hand_over(&mut self, pool: &mut PacketPool) {
        let Spread { routes, shares, touched, spare, collected } = self;
        for wire in touched.drain(..) {
            let Some(mut share) = shares[wire].take() else { continue };
            routes.wires[wire].deliver(&mut share, pool);
            spare.push(share);
        }
        *collected = 0;
    }
}
