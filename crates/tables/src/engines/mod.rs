//! Match engines for many workers and one writer, over keys of 64-bit limbs.
//!
//! A key is `ceil(bits / 64)` native `u64` limbs, the least significant first, its fields concatenated with the first
//! one most significant. A batch of keys gives a batch of `u32` results, of which 0 is a miss. Each engine has a
//! writing side, of which there is one, and readers, which take no lock and write nothing: see [`Domain`].

mod acl;
#[cfg(test)]
mod checks;
mod contract;
mod dir24;
mod direct;
mod exact;
mod grace;
mod memory;
mod shape;
mod simd;
mod wide;

pub use acl::{Acl, AclReader, Condition, Order};
pub use contract::LookupContract;
pub use dir24::{Dir24, Dir24Reader, MAX_DIR_BITS};
pub(crate) use dir24::{FIRST_BITS, SECTION_BITS};
pub use direct::{Direct, DirectReader, MAX_DIRECT_BITS};
pub use exact::{Exact, ExactReader};
pub use grace::{Domain, Resting, Stamp, Worker};
pub(crate) use grace::{Publisher, Subscriber};
pub(crate) use memory::{Cell, Cells, Segments};
pub use memory::{NoMemory, headroom};
pub use shape::{Line, LookupKind, LookupShape, Spread};
pub use simd::Simd;
pub use wide::{WideLpm, WideLpmReader};
