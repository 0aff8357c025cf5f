//! What a plugin should not do, by the number that the program passes: 0 nothing, 1 loop without end, 2 panic, 3 take memory
//! without end, 4 grow the payload by 8 bytes, 5 cut it to its first byte.
//!
//! `@plugin("faulty", rewrites) extern bit<8> faulty(in bit<8> how);` gives the number back.

use millrace_plugin::{Call, plugin};

plugin! { payload: 2048, reply: 0, call: fail }

fn fail(call: &mut Call<'_>) {
    let how = call.arg(0);
    call.give(0, how);
    match how {
        1 => loop {
            std::hint::black_box(how);
        },
        2 => panic!("as asked for"),
        3 => {
            let mut all: Vec<Vec<u8>> = Vec::new();
            loop {
                all.push(vec![1; 1 << 20]);
                std::hint::black_box(&all);
            }
        }
        4 => {
            let len = call.payload().len();
            if let Ok(payload) = call.resize_payload(len + 8) {
                payload[len..].copy_from_slice(b"millrace");
            }
        }
        5 => _ = call.resize_payload(1),
        _ => {}
    }
}
