//! Files are written here by the words of their format (draft-ietf-opsawg-pcapng), not by the library that reads them.

use super::*;

struct Blocks {
    big: bool,
    bytes: Vec<u8>,
}

impl Blocks {
    /// A file with one section.
    fn new(big: bool) -> Blocks {
        let mut blocks = Blocks { big, bytes: Vec::new() };
        blocks.section();
        blocks
    }

    fn word(&self, number: u32) -> [u8; 4] {
        if self.big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn half(&self, number: u16) -> [u8; 2] {
        if self.big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn block(&mut self, kind: u32, mut body: Vec<u8>) {
        body.resize(body.len().next_multiple_of(4), 0);
        let length = self.word(12 + body.len() as u32);
        self.bytes.extend([self.word(kind), length].concat());
        self.bytes.extend(body);
        self.bytes.extend(length);
    }

    fn section(&mut self) {
        let body = [&self.word(0x1a2b_3c4d)[..], &self.half(1), &self.half(0), &[0xff; 8]].concat();
        self.block(0x0a0d_0d0a, body);
    }

    fn interface(&mut self, link: u16, snaplen: u32, options: &[InterfaceOption<'_>]) {
        let mut body = [&self.half(link)[..], &self.half(0), &self.word(snaplen)].concat();
        for (code, value) in options {
            body.extend([self.half(*code), self.half(value.len() as u16)].concat());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        if !options.is_empty() {
            body.extend([0; 4]);
        }
        self.block(1, body);
    }

    fn enhanced(&mut self, interface: u32, ticks: u64, original: u32, data: &[u8]) {
        let words = [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, original];
        let mut body = words.map(|word| self.word(word)).concat();
        body.extend(data);
        self.block(6, body);
    }

    fn simple(&mut self, original: u32, data: &[u8]) {
        let body = [&self.word(original)[..], data].concat();
        self.block(3, body);
    }
}

/// Time, length on the wire, bytes.
type Frame = (u64, u32, Vec<u8>);
/// Code and value.
type InterfaceOption<'a> = (u16, &'a [u8]);

fn read(bytes: &[u8]) -> (Vec<Frame>, Option<String>) {
    let mut frames = Vec::new();
    let mut file = match CaptureFile::new(bytes) {
        Ok(file) => file,
        Err(error) => return (frames, Some(error.to_string())),
    };
    let mut frame = Vec::new();
    loop {
        match file.next(&mut frame) {
            Ok(None) => return (frames, None),
            Ok(Some(record)) => frames.push((record.timestamp_ns, record.original_length, frame.clone())),
            Err(error) => return (frames, Some(error.to_string())),
        }
    }
}

const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;

#[test]
fn frames_of_several_interfaces_come_in_the_order_of_the_file() {
    for big in [false, true] {
        let mut file = Blocks::new(big);
        file.interface(1, 65_535, &[]);
        file.interface(1, 0, &[(2, b"eth1"), (RESOLUTION, &[9])]);
        // Names and statistics hold no frame.
        file.block(4, vec![0; 4]);
        file.enhanced(1, 5_000_000_007, 4, &[1, 2, 3, 4]);
        file.enhanced(0, 2_000_001, 1500, &[5, 6, 7]);
        file.block(0x0bad_0bad, vec![9; 8]);
        // Options after a packet, and one whose length is no multiple of four.
        let words = [0, 0, 3_000_000, 1, 1].map(|word| file.word(word)).concat();
        let comment = [&file.half(1)[..], &file.half(2), b"hi\0\0", &[0; 4]].concat();
        file.block(6, [&words[..], &[8, 0, 0, 0], &comment].concat());
        let (frames, error) = read(&file.bytes);
        assert_eq!(error, None);
        let wanted = [
            (5_000_000_007, 4, vec![1, 2, 3, 4]),
            (2_000_001_000, 1500, vec![5, 6, 7]),
            (3_000_000_000, 1, vec![8]),
        ];
        assert_eq!(frames, wanted);
    }
}

#[test]
fn times_have_the_resolution_and_the_offset_of_their_interface() {
    let cases: [(&[InterfaceOption<'_>], u64, u64); 6] = [
        (&[(RESOLUTION, &[3])], 1500, 1_500_000_000),
        (&[(RESOLUTION, &[9])], 1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
        (&[(RESOLUTION, &[12])], 7_999, 7),
        // In 1/1024 s.
        (&[(RESOLUTION, &[0x8a])], 1536, 1_500_000_000),
        (&[(RESOLUTION, &[127])], u64::MAX, 0),
        (&[(OFFSET, &[100, 0, 0, 0, 0, 0, 0, 0])], 2_000_000, 102_000_000_000),
    ];
    for (options, ticks, wanted) in cases {
        let mut file = Blocks::new(false);
        file.interface(1, 0, options);
        file.enhanced(0, ticks, 1, &[1]);
        assert_eq!(read(&file.bytes), (vec![(wanted, 1, vec![1])], None), "{options:?}");
    }
}

#[test]
fn simple_packets_have_the_time_before_and_the_snap_length_of_their_interface() {
    for big in [false, true] {
        let mut file = Blocks::new(big);
        file.interface(1, 4, &[]);
        file.simple(3, &[1, 2, 3]);
        file.enhanced(0, 9, 2, &[4, 5]);
        file.simple(1500, &[6, 7, 8, 9]);
        let wanted = vec![(0, 3, vec![1, 2, 3]), (9_000, 2, vec![4, 5]), (9_000, 1500, vec![6, 7, 8, 9])];
        assert_eq!(read(&file.bytes), (wanted, None));
    }
}

#[test]
fn the_old_block_is_read_too() {
    for big in [false, true] {
        let mut file = Blocks::new(big);
        file.interface(1, 0, &[]);
        file.interface(1, 0, &[(RESOLUTION, &[9])]);
        let head = [file.half(1), file.half(77)].concat();
        let words = [1, 2, 3, 60].map(|word| file.word(word)).concat();
        file.block(2, [head, words, vec![1, 2, 3]].concat());
        assert_eq!(read(&file.bytes), (vec![((1 << 32) + 2, 60, vec![1, 2, 3])], None));
    }
}

#[test]
fn each_section_has_its_own_interfaces_and_byte_order() {
    let mut file = Blocks::new(false);
    file.interface(1, 0, &[(RESOLUTION, &[9])]);
    file.enhanced(0, 1, 1, &[1]);
    file.big = true;
    file.section();
    file.interface(1, 0, &[]);
    file.enhanced(0, 2, 1, &[2]);
    assert_eq!(read(&file.bytes), (vec![(1, 1, vec![1]), (2_000, 1, vec![2])], None));
}

#[test]
fn damage_is_told_and_whole_packets_come_first() {
    let good = || {
        let mut file = Blocks::new(false);
        file.interface(1, 0, &[]);
        file.enhanced(0, 0, 1, &[1]);
        file
    };
    let mut cases: Vec<(Vec<u8>, &str)> = Vec::new();
    let mut add = |change: &dyn Fn(&mut Blocks), reason| {
        let mut file = good();
        change(&mut file);
        cases.push((file.bytes, reason));
    };
    add(&|file| file.enhanced(3, 0, 1, &[1]), "interface 3, which there is not");
    add(&|file| file.simple(9, &[1]), "a packet is longer than its block");
    add(&|file| file.simple(300_000, &[1]), "a packet of 300000 bytes, the limit is 262144");
    add(&|file| file.block(6, vec![0; 16]), "a block is too short for a packet");
    add(&|file| file.bytes.extend([6, 0, 0, 0, 44, 0, 0, 0, 1]), "the file ends within a block");
    add(
        &|file| file.bytes.extend([6, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff, 1, 1, 1, 1]),
        "the file ends within a block",
    );
    add(
        &|file| {
            file.interface(101, 0, &[]);
            file.enhanced(1, 0, 1, &[1]);
        },
        "interfaces of several link types (1 and 101)",
    );
    for (bytes, reason) in cases {
        let (frames, error) = read(&bytes);
        assert_eq!(frames.len(), 1, "{reason}");
        assert!(error.as_deref().is_some_and(|error| error.contains(reason)), "{reason}: {error:?}");
    }
    let (_, error) = read(&Blocks::new(true).bytes[..20]);
    assert!(error.is_some_and(|error| error.contains("header of its first section")));
}

#[test]
fn no_bytes_are_too_odd() {
    // A fixed sequence of numbers (Knuth's multiplier).
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    for _ in 0..20_000 {
        let mut file = Blocks::new(random(2) == 0);
        file.interface(1, 0, &[(RESOLUTION, &[9])]);
        file.enhanced(0, 1, 1, &[1, 2]);
        file.simple(2, &[1, 2]);
        for _ in 0..random(6) {
            let at = random(file.bytes.len());
            file.bytes[at] = random(256) as u8;
        }
        file.bytes.truncate(4 + random(file.bytes.len() - 3));
        let (frames, _) = read(&file.bytes);
        assert!(frames.iter().all(|(.., frame)| frame.len() <= file.bytes.len()));
    }
}
