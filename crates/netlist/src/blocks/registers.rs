//! Buses by which a processor reaches registers: AXI4-Lite and Avalon-MM.
//!
//! Both blocks have the same other side, for words of 32 bits by their number: `write_enable` with `write_address`, `write_data` and a bit
//! for each byte in `write_strobe`; `read_enable` with `read_address`, and `read_data`, an input that is there a cycle later.

use super::once;
use crate::*;

/// A slave of AXI4-Lite for `1 << address` words of 32 bits; its byte addresses have two bits more. The ports of the bus are
/// `s_axi_awaddr` and so on. A write and a read may go on concurrently; of each kind there is one at a time, and the address and the data
/// of the next write may wait. Each answer is OKAY.
///
/// # Panics
/// `address` is 0.
pub fn axi4_lite(design: &mut Design, address: u32) -> ModuleId {
    assert!(address > 0, "a bus for no register");
    once(design, format!("axi4_lite_{address}"), |m| {
        axi(m, address);
    })
}

/// What is inside a slave of AXI4-Lite, for a monitor of it.
#[cfg_attr(not(test), allow(dead_code))]
struct Axi {
    /// Whether an address, data, an answer, a read address, read data are taken.
    takes_address: NodeId,
    takes_data: NodeId,
    answered: NodeId,
    takes_read: NodeId,
    read_answered: NodeId,
    /// What the slave has of each.
    has_address: NodeId,
    has_data: NodeId,
    answers: NodeId,
    reads: NodeId,
    gives: NodeId,
    /// The address that comes, the one that is written, and when.
    address: NodeId,
    written: NodeId,
    writes: NodeId,
    /// What a register gives, and what goes to the bus.
    read: NodeId,
    given: NodeId,
}

fn axi(m: &mut ModuleBuilder, bits: u32) -> Axi {
    let word = |m: &mut ModuleBuilder, name: &str| {
        let address = m.input(name, bits + 2);
        m.slice(address, 2, bits)
    };
    let address = word(m, "s_axi_awaddr");
    m.input("s_axi_awprot", 3);
    let address_valid = m.input("s_axi_awvalid", 1);
    let (data, strobe) = (m.input("s_axi_wdata", 32), m.input("s_axi_wstrb", 4));
    let (data_valid, answer_ready) = (m.input("s_axi_wvalid", 1), m.input("s_axi_bready", 1));
    let read_address = word(m, "s_axi_araddr");
    m.input("s_axi_arprot", 3);
    let (read_valid, read_ready) = (m.input("s_axi_arvalid", 1), m.input("s_axi_rready", 1));

    // A write waits until its address and its data are there, and the answer before it has been taken.
    let (address_register, has_address) = m.register("has_address", 1, Some(0));
    let (data_register, has_data) = m.register("has_data", 1, Some(0));
    let (answer_register, answers) = m.register("answers", 1, Some(0));
    // That is known a cycle before the write, so that what is written does not wait for it.
    let (writes_register, writes) = m.register("writes", 1, Some(0));
    let (no_answer, no_write) = (m.not(answers), m.not(writes));
    let may_write = m.all(&[has_address, has_data, no_answer, no_write]);
    m.set_next(writes_register, may_write);
    let (address_ready, data_ready) = (m.not(has_address), m.not(has_data));
    let (takes_address, takes_data) = (m.and(address_valid, address_ready), m.and(data_valid, data_ready));
    let keeps = m.not(writes);
    for (register, has, takes) in
        [(address_register, has_address, takes_address), (data_register, has_data, takes_data)]
    {
        let kept = m.and(has, keeps);
        let next = m.or(kept, takes);
        m.set_next(register, next);
    }
    let not_taken = m.not(answer_ready);
    let still = m.and(answers, not_taken);
    let next = m.or(writes, still);
    m.set_next(answer_register, next);
    let kept = |m: &mut ModuleBuilder, name: &str, value: NodeId, takes: NodeId| {
        let (register, kept) = m.register(name, m.width(value), None);
        m.set_next(register, value);
        m.set_enable(register, takes);
        kept
    };
    let written = kept(m, "address", address, takes_address);
    let write_data = kept(m, "data", data, takes_data);
    let write_strobe = kept(m, "strobe", strobe, takes_data);

    // A read takes a cycle for its register; the data stay until they are taken.
    let (reads_register, reads) = m.register("reads", 1, Some(0));
    let (gives_register, gives) = m.register("gives", 1, Some(0));
    let busy = m.or(reads, gives);
    let idle = m.not(busy);
    let takes_read = m.and(read_valid, idle);
    m.set_next(reads_register, takes_read);
    let not_taken = m.not(read_ready);
    let still = m.and(gives, not_taken);
    let next = m.or(reads, still);
    m.set_next(gives_register, next);
    let read = m.input("read_data", 32);
    let given = kept(m, "given", read, reads);

    let okay = m.number(2, 0);
    for (name, value) in [
        ("s_axi_awready", address_ready),
        ("s_axi_wready", data_ready),
        ("s_axi_bresp", okay),
        ("s_axi_bvalid", answers),
        ("s_axi_arready", idle),
        ("s_axi_rdata", given),
        ("s_axi_rresp", okay),
        ("s_axi_rvalid", gives),
        ("write_enable", writes),
        ("write_address", written),
        ("write_data", write_data),
        ("write_strobe", write_strobe),
        ("read_enable", takes_read),
        ("read_address", read_address),
    ] {
        m.output(name, value);
    }
    let (answered, read_answered) = (m.and(answers, answer_ready), m.and(gives, read_ready));
    Axi {
        takes_address,
        takes_data,
        answered,
        takes_read,
        read_answered,
        has_address,
        has_data,
        answers,
        reads,
        gives,
        address,
        written,
        writes,
        read,
        given,
    }
}

/// A slave of Avalon-MM for `1 << address` words of 32 bits. It never has the master wait; read data come a cycle after the read.
///
/// # Panics
/// `address` is 0.
pub fn avalon_mm(design: &mut Design, address: u32) -> ModuleId {
    assert!(address > 0, "a bus for no register");
    once(design, format!("avalon_mm_{address}"), |m| {
        let at = m.input("avs_address", address);
        let (read, write) = (m.input("avs_read", 1), m.input("avs_write", 1));
        let (data, strobe) = (m.input("avs_writedata", 32), m.input("avs_byteenable", 4));
        let given = m.input("read_data", 32);
        let valid = m.delayed("reads", read, Some(0));
        let never = m.number(1, 0);
        for (name, value) in [
            ("avs_readdata", given),
            ("avs_readdatavalid", valid),
            ("avs_waitrequest", never),
            ("write_enable", write),
            ("write_address", at),
            ("write_data", data),
            ("write_strobe", strobe),
            ("read_enable", read),
            ("read_address", at),
        ] {
            m.output(name, value);
        }
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A slave of AXI4-Lite with a monitor, whose output `fault` is 1 when it is not so that each address and each data of a write, and
    /// each address of a read, has one answer; when an answer goes away or changes before it is taken; when a write has another address
    /// than the one that came; or when a read gives something else than its register.
    pub(crate) fn monitored() -> Design {
        let mut m = ModuleBuilder::new("monitored_axi4_lite");
        let a = axi(&mut m, 2);
        let mut wrong = Vec::new();
        // Requests that were taken and not answered yet: what the slave has.
        for (name, takes, answered, has, answers) in [
            ("addresses", a.takes_address, a.answered, a.has_address, a.answers),
            ("datas", a.takes_data, a.answered, a.has_data, a.answers),
            ("read_addresses", a.takes_read, a.read_answered, a.reads, a.gives),
        ] {
            let (register, open) = m.register(name, 2, Some(0));
            let (more, less) = (m.resize(takes, 2), m.resize(answered, 2));
            let sum = m.add(open, more);
            let next = m.sub(sum, less);
            m.set_next(register, next);
            let (has, answers) = (m.resize(has, 2), m.resize(answers, 2));
            let there = m.add(has, answers);
            wrong.push(m.ne(open, there));
        }
        // An answer that was not taken stays.
        for (name, gives, answered) in
            [("waited", a.answers, a.answered), ("read_waited", a.gives, a.read_answered)]
        {
            let open = m.not(answered);
            let waits = m.and(gives, open);
            let waited = m.delayed(name, waits, Some(0));
            let gone = m.not(gives);
            wrong.push(m.and(waited, gone));
        }
        for (name, when, value, now, found) in [
            ("came", a.takes_address, a.address, a.writes, a.written),
            ("read", a.reads, a.read, a.gives, a.given),
        ] {
            let (register, kept) = m.register(name, m.width(value), None);
            m.set_next(register, value);
            m.set_enable(register, when);
            let other = m.ne(kept, found);
            let has = if name == "came" { a.has_address } else { now };
            wrong.push(m.and(has, other));
        }
        let bad = m.any(&wrong);
        m.output("fault", bad);
        let mut design = Design::new();
        design.add(m.finish());
        design
    }
}
