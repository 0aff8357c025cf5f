//! A program in hardware whose tables are partly in software.
//!
//! ```text
//!  processor                            host link                      device
//!  a stage begins    -- live values, frame -->   before -> middle ----+-> after
//!  the table, its action   <-- live values, frame --          ^       |     |
//!                    -- live values, frame -->  ... resumes --+       |     |
//!  the stage ended   <-- live values, frame -------------------------------+
//! ```
//!
//! [`Cut`] takes the body that applies the tables apart: before each of them the pipeline ends with the number of the place, and it
//! begins again after it. What is live there travels with the frame, and nothing else does. [`SplitEngine`] runs a program so; its
//! device is served over the host link ([`SplitDevice`]).
//!
//! An object lives on one side: registers and meters that the actions of tables in software use, nothing in hardware may. Of a counter,
//! which no frame sees, each side has a part; its value is their sum, as that of several workers is.

mod cut;
mod device;
mod engine;
mod live;
mod packet;

pub use cut::{Cut, NoSplit};
pub use device::SplitDevice;
pub use engine::{LinkCounts, SplitEngine};
