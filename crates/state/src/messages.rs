//! Messages to the control plane while nobody has taken them: words, one message after another, in memory that serves the next
//! ones too.
//!
//! A message is a word with the digest in the lower half and the number of its words in the upper one, then its values: of each
//! a word that says what it is, and the limbs of a number, the lowest first. Compiled code writes the same words. So a message of
//! a packet takes no memory from the allocator, whose cost depends on what else is in use, and gives none back.

use crate::{DigestMessage, MAX_EFFECT, MAX_EFFECTS};
use millrace_pipeline::semantics::{Value, VarbitValue};
use millrace_pipeline::{Bits, DigestId};

/// Most words of one message, and of all.
const MOST_OF_ONE: usize = MAX_EFFECT / 8;
const MOST_OF_ALL: usize = MAX_EFFECTS / 8;

/// The word before a number of so many bits.
pub const fn bits_word(width: u32) -> u64 {
    1 << 32 | width as u64
}

/// The word before a number of varying length that has so many bits now.
pub const fn varbit_word(len: u32) -> u64 {
    2 << 32 | len as u64
}

/// Messages in the order in which they were sent.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Messages {
    /// Those that are whole, then the words of the next one, as far as there is room.
    words: Vec<u64>,
    /// Words of those that are whole, and how many they are.
    whole: usize,
    count: usize,
    /// Words of the next one.
    next: usize,
    /// There was no room for a message, so there is none for any other.
    is_full: bool,
}

impl Messages {
    /// Has the memory be there that all messages take. Where there is none, they have no room.
    #[inline]
    pub(crate) fn reserve(&mut self) {
        if self.words.capacity() == 0 {
            // Nothing is written here: pages that no message has reached take no memory of the machine.
            let _ = self.words.try_reserve_exact(MOST_OF_ALL + MOST_OF_ONE);
        }
    }

    /// Adds words to the next message.
    #[inline]
    pub(crate) fn add(&mut self, words: &[u64]) {
        self.next = self.next.saturating_add(words.len());
        // What is left out is missed when the message ends.
        if self.next <= MOST_OF_ONE && words.len() <= self.words.capacity() - self.words.len() {
            self.words.extend_from_slice(words);
        }
    }

    /// Adds a value to the next message.
    pub(crate) fn add_value(&mut self, value: &Value) {
        let bits = match value {
            Value::Bool(truth) => return self.add(&[u64::from(*truth)]),
            Value::Bits(bits) => {
                self.add(&[bits_word(bits.width())]);
                Some(bits)
            }
            Value::Varbit(varbit) => {
                self.add(&[varbit_word(varbit.len())]);
                varbit.bits()
            }
        };
        bits.into_iter().flat_map(Bits::limbs).for_each(|limb| self.add(&[limb]));
    }

    /// The next message is whole; false: there is no room for it. Once one message has found none, no other has room until all are taken, so
    /// interpreter, compiled code and hardware keep the same messages.
    #[inline]
    pub(crate) fn end(&mut self) -> bool {
        let words = std::mem::take(&mut self.next);
        let is_too_long = words > MOST_OF_ONE;
        let has_room = !self.is_full && !is_too_long && self.whole + words <= MOST_OF_ALL;
        self.is_full |= !has_room && !is_too_long;
        if has_room
            && self.words.len() - self.whole == words
            && let Some(first) = self.words.get_mut(self.whole)
        {
            *first = u64::from(*first as u32) | (words as u64) << 32;
            self.whole += words;
            self.count += 1;
            return true;
        }
        self.words.truncate(self.whole);
        false
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The first messages, at most so many.
    pub(crate) fn first(&self, most: usize) -> Digests {
        let words = self.words.get(..self.whole).unwrap_or(&[]);
        let mut end = words.len();
        if most < self.count {
            end = (0..most).fold(0, |at, _| at + words.get(at).map_or(0, |first| words_of(*first)));
        }
        Digests { words: words.get(..end).unwrap_or(words).to_vec(), at: 0, left: self.count.min(most) }
    }

    /// All are gone; the memory stays.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        (self.whole, self.count, self.next, self.is_full) = (0, 0, 0, false);
    }
}

/// Messages that were taken, in the order in which they were sent. Their values are made one message after another.
#[derive(Clone, Debug, Default)]
pub struct Digests {
    words: Vec<u64>,
    at: usize,
    left: usize,
}

impl Iterator for Digests {
    type Item = DigestMessage;

    fn next(&mut self) -> Option<DigestMessage> {
        let words = self.words.get(self.at..)?;
        let first = *words.first()?;
        let values = words.get(1..words_of(first))?;
        let message = DigestMessage { digest: DigestId::from_u32(first as u32), values: values_of(values) };
        self.at += words_of(first);
        self.left -= 1;
        Some(message)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Digests {}

/// The words of a message that starts with this one.
fn words_of(first: u64) -> usize {
    (first >> 32) as usize
}

fn values_of(mut words: &[u64]) -> Vec<Value> {
    let mut count = 0;
    let mut rest = words;
    while let Some((what, more)) = rest.split_first() {
        rest = more.get(limbs_after(*what)..).unwrap_or(&[]);
        count += 1;
    }
    let mut values = Vec::with_capacity(count);
    while let Some((what, more)) = words.split_first() {
        let (limbs, others) = more.split_at(limbs_after(*what).min(more.len()));
        let width = *what as u32;
        values.push(match what >> 32 {
            0 => Value::Bool(width != 0),
            1 => Value::Bits(Bits::from_limbs(width, limbs)),
            _ if width == 0 => Value::Varbit(VarbitValue::EMPTY),
            _ => Value::Varbit(VarbitValue::new(Bits::from_limbs(width, limbs))),
        });
        words = others;
    }
    values
}

/// Limbs of the value that a word begins.
fn limbs_after(word: u64) -> usize {
    match word >> 32 {
        0 => 0,
        _ => (word as u32).div_ceil(64) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(messages: &mut Messages, id: u32, values: &[Value]) -> bool {
        messages.reserve();
        messages.add(&[u64::from(id)]);
        values.iter().for_each(|value| messages.add_value(value));
        messages.end()
    }

    #[test]
    fn values_are_as_they_were() {
        let wide = Bits::from_bytes(300, &[0x0a; 38]);
        let varbit = |bits: Bits| Value::Varbit(VarbitValue::new(bits));
        let values = vec![
            Value::Bool(true),
            Value::Bits(Bits::new(9, 0x1ff)),
            Value::Bits(Bits::new(128, u128::MAX - 1)),
            Value::Bits(Bits::zero(65)),
            Value::Bits(wide.clone()),
            Value::Varbit(VarbitValue::EMPTY),
            varbit(Bits::new(24, 0xabcdef)),
            varbit(wide),
            Value::Bool(false),
        ];
        let mut messages = Messages::default();
        assert!(
            send(&mut messages, 7, &values) && send(&mut messages, 8, &[]) && send(&mut messages, 9, &values)
        );
        let found: Vec<_> = messages.first(usize::MAX).collect();
        let ids: Vec<u32> = found.iter().map(|message| message.digest.as_u32()).collect();
        assert_eq!((ids, messages.len()), (vec![7, 8, 9], 3));
        assert_eq!(found[0].values, values);
        assert_eq!(found[1].values, []);
        assert_eq!(found[2].values, values);
        let two = messages.first(2);
        assert_eq!(two.len(), 2);
        assert_eq!(two.collect::<Vec<_>>(), found[..2]);
    }

    #[test]
    fn what_is_too_long_is_lost_alone() {
        let mut messages = Messages::default();
        let limbs = |count: usize| Value::Bits(Bits::ones(64 * count as u32));
        // The word of the message, and that of its value.
        assert!(send(&mut messages, 0, &[limbs(MOST_OF_ONE - 2)]));
        assert!(!send(&mut messages, 0, &[limbs(MOST_OF_ONE - 1)]));
        assert!(!send(&mut messages, 0, &vec![limbs(1000); 9]));
        assert!(send(&mut messages, 0, &[limbs(1)]));
        assert_eq!(messages.len(), 2);
    }

    #[test]
    fn there_is_room_for_so_many_of_the_longest() {
        let mut messages = Messages::default();
        let longest = Value::Bits(Bits::ones(64 * (MOST_OF_ONE as u32 - 2)));
        assert!((0..256).all(|_| send(&mut messages, 0, std::slice::from_ref(&longest))));
        assert!(!send(&mut messages, 0, &[]));
        // Its memory stays where it is.
        let lies = messages.words.as_ptr();
        messages.clear();
        assert!(send(&mut messages, 0, &[longest]));
        assert_eq!((messages.words.as_ptr(), messages.len()), (lies, 1));
    }
}
