//! Rules that compare bytes: each as words under a mask.

use crate::rule::{MAX_OFFSET, MaskedByte};

const WORD: usize = 8;

/// The masked bytes of one rule, eight compared at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// Frames that are shorter do not match.
    least: usize,
    words: Vec<Word>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    /// Its number in the frame.
    at: usize,
    mask: u64,
    value: u64,
}

/// The first bytes of a frame, with zeros after its end.
pub(crate) struct Start {
    length: usize,
    words: [u64; MAX_OFFSET / WORD],
}

impl Start {
    /// Of a frame of any length.
    pub(crate) fn of(frame: &[u8]) -> Start {
        let mut bytes = [0; MAX_OFFSET];
        let length = frame.len().min(MAX_OFFSET);
        bytes[..length].copy_from_slice(&frame[..length]);
        Start { length, words: words(&bytes) }
    }
}

impl Pattern {
    /// None unless there are bytes, each below [`MAX_OFFSET`] and there once, with a mask that is not 0 and has all bits of
    /// the value.
    pub(crate) fn new(bytes: &[MaskedByte]) -> Option<Pattern> {
        let (mut masks, mut values) = ([0; MAX_OFFSET], [0; MAX_OFFSET]);
        let mut least = 0;
        for MaskedByte { offset, value, mask } in bytes {
            let at = usize::from(*offset);
            if at >= MAX_OFFSET || masks[at] != 0 || *mask == 0 || value & !mask != 0 {
                return None;
            }
            (masks[at], values[at]) = (*mask, *value);
            least = least.max(at + 1);
        }
        let pairs = words(&masks).into_iter().zip(words(&values)).enumerate();
        let words = pairs
            .filter(|(_, (mask, _))| *mask != 0)
            .map(|(at, (mask, value))| Word { at, mask, value })
            .collect();
        (least > 0).then_some(Pattern { least, words })
    }

    /// Whether a frame that starts so matches.
    #[inline]
    pub(crate) fn matches(&self, start: &Start) -> bool {
        start.length >= self.least
            && self.words.iter().all(|word| start.words[word.at] & word.mask == word.value)
    }

    /// Whether every frame that matches the other one matches this one too.
    pub(crate) fn covers(&self, other: &Pattern) -> bool {
        let within = |word: &Word, inner: &Word| {
            word.at == inner.at
                && word.mask & inner.mask == word.mask
                && inner.value & word.mask == word.value
        };
        self.least <= other.least
            && self.words.iter().all(|word| other.words.iter().any(|inner| within(word, inner)))
    }
}

fn words(bytes: &[u8; MAX_OFFSET]) -> [u64; MAX_OFFSET / WORD] {
    let (chunks, _) = bytes.as_chunks::<WORD>();
    let mut words = [0; MAX_OFFSET / WORD];
    words.iter_mut().zip(chunks).for_each(|(word, chunk)| *word = u64::from_le_bytes(*chunk));
    words
}
