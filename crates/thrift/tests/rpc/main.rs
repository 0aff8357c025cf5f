//! The server through the client, over TCP.

mod common;
mod entries;
mod hostile;
mod notify;
mod objects;
mod ports;
mod programs;
