//! AES-128-GCM (NIST SP 800-38D) over the payload: encrypted where it is, with the tag as a result. The program has key and nonce,
//! from a table for instance, and puts nonce and tag into a header of its own. It must not use a nonce twice with one key.
//!
//! `@plugin("encrypt", rewrites) extern void encrypt(in bit<128> key, in bit<96> nonce, out bit<128> tag);`
//!
//! It takes about 450 units of fuel a byte: the million that a call has by default is enough for frames of 1518 bytes, and one of
//! 9000 bytes takes four million (`fuel=5000000`). A payload that does not fit the buffer is not encrypted: the packet is dropped.

use aes_gcm::aead::AeadInPlace;
use aes_gcm::{Aes128Gcm, Key, KeyInit, Nonce};
use millrace_plugin::{Call, plugin};

plugin! { payload: 9216, reply: 0, call: encrypt }

fn encrypt(call: &mut Call<'_>) {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&call.arg(0).to_be_bytes());
    key[8..].copy_from_slice(&call.arg(1).to_be_bytes());
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&call.arg(2).to_be_bytes()[4..]);
    nonce[4..].copy_from_slice(&call.arg(3).to_be_bytes());
    let fits = call.payload_len() == call.payload().len();
    let cipher = Aes128Gcm::new(Key::<Aes128Gcm>::from_slice(&key));
    let tag = match call.payload_mut() {
        Ok(payload) if fits => cipher.encrypt_in_place_detached(Nonce::from_slice(&nonce), &[], payload).ok(),
        _ => None,
    };
    match tag {
        Some(tag) => {
            for (index, half) in tag.chunks_exact(8).enumerate() {
                call.give(index, half.try_into().map_or(0, u64::from_be_bytes));
            }
        }
        None => call.drop(),
    }
}
