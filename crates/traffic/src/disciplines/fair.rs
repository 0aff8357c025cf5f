//! Weighted fair queueing, as start-time fair queueing (P. Goyal, H. Vin, H. Cheng, SIGCOMM 1996).
//!
//! A packet has a start tag, `max(v, finish tag of the packet before it)`, and a finish tag, its start tag plus length over weight. The
//! packet with the least start tag is sent; `v` is the start tag of the packet that was sent last, and when nothing is ready any more
//! the largest finish tag of all that were sent.
//!
//! **Theorem** (Theorem 1 of the paper). While two children `i` and `j` stay ready, what they have sent differs by at most
//! `|S(i) / w(i) - S(j) / w(j)| <= L(i) / w(i) + L(j) / w(j)`, at whatever rate the node is served, and however that changes. So it may
//! stand below a shaper, a gate or another fair node; WF2Q+ has a smaller delay, but needs the rate of its server.
//!
//! While a child stays ready, `v` is at most its start tag, so the tag of its next packet is the finish tag of the last: one tag a child
//! is enough. Of equal tags, the child of the lower number is first.
//!
//! Tags are whole numbers: bytes times the least common multiple of the weights, if that fits 32 bits, so nothing is rounded; otherwise
//! bytes times 2^32 - 1, and a share is exact to a factor of 1 + weight / 2^32. Tags of ready children differ by at most the longest
//! packet over the least weight, below 2^48, so 64 bits may wrap. That of a child that was idle may be of any time: the laps of the 64
//! bits are counted, 2^31 of which are years at any rate.

use super::{Discipline, Permit};

/// Children of a node in the heap: wider than two, so that fewer places are touched.
const WIDTH: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Child {
    /// The finish tag of its last packet.
    finish: u64,
    /// Its lap.
    lap: u32,
    /// What a byte adds to a tag.
    step: u32,
}

/// A share each, by weight.
#[derive(Clone, Debug)]
pub(crate) struct Fair {
    v: u64,
    /// How often `v` has gone round its 64 bits.
    lap: u32,
    largest: u64,
    heap: Vec<(u64, u32)>,
    children: Vec<Child>,
}

fn before(a: (u64, u32), b: (u64, u32)) -> bool {
    match a.0.wrapping_sub(b.0) as i64 {
        0 => a.1 < b.1,
        ahead => ahead < 0,
    }
}

/// The least common multiple of the weights, or 2^32 - 1 if it is larger.
fn scale(weights: impl Iterator<Item = u32>) -> u64 {
    let common = |a: u64, b: u64| {
        let (mut x, mut y) = (a, b);
        while y != 0 {
            (x, y) = (y, x % y);
        }
        a / x * b
    };
    weights
        .fold(1, |all, weight| if all < 1 << 32 { common(all, weight.into()) } else { all })
        .min(u32::MAX.into())
}

impl Fair {
    pub(crate) fn new(weights: impl Iterator<Item = u32> + Clone) -> Fair {
        let scale = scale(weights.clone());
        let step = |weight| (scale / u64::from(weight)) as u32;
        let children: Vec<Child> =
            weights.map(|weight| Child { finish: 0, lap: 0, step: step(weight) }).collect();
        Fair { v: 0, lap: 0, largest: 0, heap: Vec::with_capacity(children.len()), children }
    }

    #[inline]
    fn sink(&mut self) {
        let Some(&moving) = self.heap.first() else { return };
        let mut at = 0;
        loop {
            let below = at * WIDTH + 1;
            let end = (below + WIDTH).min(self.heap.len());
            if below >= end {
                break;
            }
            let mut least = below;
            for other in below + 1..end {
                if before(self.heap[other], self.heap[least]) {
                    least = other;
                }
            }
            if !before(self.heap[least], moving) {
                break;
            }
            self.heap[at] = self.heap[least];
            at = least;
        }
        self.heap[at] = moving;
    }

    #[inline]
    fn pop(&mut self) {
        let last = self.heap.pop().expect("the first child is in the heap");
        if let Some(top) = self.heap.first_mut() {
            *top = last;
            self.sink();
        } else {
            self.proceed(self.largest);
        }
    }

    /// `v` goes on to a tag, which is not before it.
    #[inline]
    fn proceed(&mut self, tag: u64) {
        self.lap = self.lap_of(tag);
        self.v = tag;
    }

    /// The lap of a tag that is not before `v`.
    #[inline]
    fn lap_of(&self, tag: u64) -> u32 {
        self.lap.wrapping_add(u32::from(tag < self.v))
    }

    /// Sets the finish tag of a child, which is not before `v`.
    #[inline]
    fn finish(&mut self, child: u32, finish: u64) {
        let lap = self.lap_of(finish);
        let of = &mut self.children[child as usize];
        (of.finish, of.lap) = (finish, lap);
    }
}

impl Discipline for Fair {
    fn insert(&mut self, child: u32, _now_ns: u64) {
        let Child { finish, lap, .. } = self.children[child as usize];
        let tag = match lap.wrapping_sub(self.lap) as i32 {
            0 => finish.max(self.v),
            ahead if ahead > 0 => finish,
            _ => self.v,
        };
        let mut at = self.heap.len();
        self.heap.push((tag, child));
        while at > 0 {
            let above = (at - 1) / WIDTH;
            if !before((tag, child), self.heap[above]) {
                break;
            }
            self.heap[at] = self.heap[above];
            at = above;
        }
        self.heap[at] = (tag, child);
    }

    #[inline]
    fn first(&mut self) -> Option<u32> {
        self.heap.first().map(|(_, child)| *child)
    }

    #[inline]
    fn permits(&mut self, _child: u32, _len: u32, _now_ns: u64) -> Permit {
        Permit::Now
    }

    #[inline]
    fn sent(&mut self, child: u32, len: u32, ready: bool, _now_ns: u64) {
        let tag = self.heap[0].0;
        let finish = tag.wrapping_add(u64::from(len) * u64::from(self.children[child as usize].step));
        self.proceed(tag);
        self.finish(child, finish);
        if finish.wrapping_sub(self.largest) as i64 > 0 {
            self.largest = finish;
        }
        match ready {
            true => {
                self.heap[0].0 = finish;
                self.sink();
            }
            false => self.pop(),
        }
    }

    #[inline]
    fn remove(&mut self, child: u32, _now_ns: u64) {
        self.finish(child, self.heap[0].0);
        self.pop();
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}
