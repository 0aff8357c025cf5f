//! An XDP program that sends each frame of an interface on by another one: what the kernel can do at best.

use crate::bpf::{Code, Kind, REDIRECT, attach};
use crate::{index, is_over};
use std::io;
use std::time::Duration;

pub(crate) fn run(from: &str, to: &str) -> io::Result<()> {
    let mut code = Code::default();
    // return bpf_redirect(to, 0);
    code.value(crate::bpf::Op::Set, 1, index(to)? as i32)
        .value(crate::bpf::Op::Set, 2, 0)
        .call(REDIRECT)
        .exit();
    let _link = attach(&code.build(Kind::Xdp)?, index(from)?)?;
    println!("ready");
    while !is_over() {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
