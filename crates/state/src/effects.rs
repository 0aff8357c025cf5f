//! What a program sends out in addition to packets.

use crate::messages::{Digests, Messages};
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;

/// The most bytes that messages take until somebody takes them, and lines of the log and packets of plugins the same.
pub const MAX_EFFECTS: usize = 16 << 20;
/// The most bytes that one message or line may take.
pub const MAX_EFFECT: usize = 64 << 10;

/// What a program sends out in addition to packets, in order. What is beyond [`MAX_EFFECTS`] or [`MAX_EFFECT`] is lost,
/// and counted.
#[derive(Debug, Default, PartialEq)]
pub struct Effects {
    /// Messages to the control plane.
    messages: Messages,
    /// Lines for the log.
    pub log: Vec<String>,
    /// Packets of plugins, for the port that the packet came in on which they answer.
    pub answers: Vec<Vec<u8>>,
    /// Bytes of lines and of packets.
    taken: [usize; 2],
    lost: u64,
}

/// A message to the control plane.
#[derive(Clone, Debug, PartialEq)]
pub struct DigestMessage {
    /// Its kind.
    pub digest: DigestId,
    /// The values of [`Digest::members`].
    pub values: Vec<Value>,
}

impl Effects {
    /// Those of a program: with memory for its messages, if it sends any.
    pub fn of(program: &Program) -> Effects {
        let mut effects = Effects::default();
        effects.reserve(program);
        effects
    }

    /// Has the memory be there that the messages of a program take.
    #[inline]
    pub fn reserve(&mut self, program: &Program) {
        if !program.digests.is_empty() {
            self.messages.reserve();
        }
    }

    /// Sends a message, if there is room for it.
    pub fn send(&mut self, message: &DigestMessage) {
        self.messages.reserve();
        self.messages.add(&[message.digest.as_u32().into()]);
        message.values.iter().for_each(|value| self.messages.add_value(value));
        self.end_message();
    }

    /// Adds words to the next message, as [`crate::messages`] has them. Nothing is allocated here, so there has to be memory
    /// ([`Effects::reserve`]).
    #[inline]
    pub fn add_to_message(&mut self, words: &[u64]) {
        self.messages.add(words);
    }

    /// Sends the message whose words were added, if there is room for it.
    #[inline]
    pub fn end_message(&mut self) {
        self.lost += u64::from(!self.messages.end());
    }

    /// Writes a line to the log, if there is room for it.
    pub fn say(&mut self, line: String) {
        if self.has_room(0, size_of::<String>() + line.len()) {
            self.log.push(line);
        }
    }

    /// Sends a packet that a plugin answers with, if there is room for it.
    pub fn answer(&mut self, packet: &[u8]) {
        if self.has_room(1, size_of::<Vec<u8>>() + packet.len()) {
            self.answers.push(packet.to_vec());
        }
    }

    /// Takes room for lines or packets. Once there is none, nothing has room until all are taken: so what is kept is the
    /// same wherever it was collected.
    fn has_room(&mut self, which: usize, bytes: usize) -> bool {
        let taken = &mut self.taken[which];
        if bytes > MAX_EFFECT {
            self.lost += 1;
            return false;
        }
        *taken = taken.saturating_add(bytes);
        let has_room = *taken <= MAX_EFFECTS;
        if !has_room {
            *taken = usize::MAX;
            self.lost += 1;
        }
        has_room
    }

    /// Whether no messages and no lines wait to be taken.
    #[inline]
    pub fn is_silent(&self) -> bool {
        self.messages.is_empty() && self.log.is_empty()
    }

    /// How many messages wait to be taken.
    pub fn message_count(&self) -> usize {
        self.messages.len()
    }

    /// The messages that wait to be taken.
    pub fn digests(&self) -> Vec<DigestMessage> {
        self.messages.first(usize::MAX).collect()
    }

    /// Takes the messages and the lines, the first ones up to so many; the others are lost. There is room again.
    pub fn take(&mut self, most: [usize; 2]) -> (Digests, Vec<String>) {
        let [messages, lines] = most;
        let digests = self.messages.first(messages);
        self.lost += (self.messages.len() - digests.len()) as u64;
        self.messages.clear();
        let mut log = std::mem::take(&mut self.log);
        self.lost += log.len().saturating_sub(lines) as u64;
        log.truncate(lines);
        self.taken[0] = 0;
        (digests, log)
    }

    /// All that was said and not taken is gone, and not counted. The memory of messages stays.
    pub fn clear(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        messages.clear();
        *self = Effects { messages, ..Effects::default() };
    }

    /// Takes the packets of plugins; there is room again.
    pub fn take_answers(&mut self) -> Vec<Vec<u8>> {
        self.taken[1] = 0;
        std::mem::take(&mut self.answers)
    }

    /// So many were lost elsewhere.
    pub fn lose(&mut self, count: u64) {
        self.lost += count;
    }

    /// How many messages, lines and packets were lost since this was asked last.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }
}

/// A line for the log: the arguments where `{}` stands in the format, numbers in decimal. A `{}` without an argument
/// stays, an argument without a `{}` is left out.
pub fn format_log(format: &str, args: &[Value]) -> String {
    let mut line = String::with_capacity(format.len());
    let mut args = args.iter();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once("{}") {
        line.push_str(before);
        match args.next() {
            Some(Value::Bool(truth)) => line.push_str(if *truth { "true" } else { "false" }),
            Some(value) => line.push_str(&value.as_bits().to_biguint().to_string()),
            None => line.push_str("{}"),
        }
        rest = after;
    }
    line.push_str(rest);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: u32) -> DigestMessage {
        DigestMessage { digest: DigestId::from_u32(0), values: vec![Value::Bits(Bits::new(8 * bytes, 1))] }
    }

    #[test]
    fn messages_and_lines_are_kept_while_there_is_room() {
        let mut effects = Effects::default();
        (0..5000).for_each(|_| effects.send(&message(8000)));
        let kept = effects.message_count();
        assert!((1900..2100).contains(&kept), "{kept} messages of 8000 bytes in 16 MiB");
        // A small one would fit, but comes after one that is lost.
        effects.send(&message(1));
        effects.say("x".repeat(MAX_EFFECT));
        effects.say("fits".to_owned());
        assert_eq!((effects.message_count(), effects.log.len()), (kept, 1));
        assert_eq!(effects.take_lost(), 5000 - kept as u64 + 2);
        assert_eq!(effects.take([usize::MAX; 2]).0.len(), kept);
        effects.send(&message(1));
        assert_eq!((effects.message_count(), effects.take_lost()), (1, 0));
    }

    #[test]
    fn what_is_not_taken_is_lost() {
        let mut effects = Effects::default();
        (0..5).for_each(|_| effects.send(&message(1)));
        (0..3).for_each(|_| effects.say("line".to_owned()));
        let (digests, log) = effects.take([2, 1]);
        assert_eq!((digests.len(), log.len(), effects.take_lost()), (2, 1, 5));
        assert!(effects.is_silent());
        effects.send(&message(1));
        effects.clear();
        assert_eq!((effects.is_silent(), effects.take_lost()), (true, 0));
    }

    #[test]
    fn packets_of_plugins_are_kept_while_there_is_room() {
        let mut effects = Effects::default();
        (0..5000).for_each(|_| effects.answer(&[7; 8000]));
        effects.answer(&[7; MAX_EFFECT]);
        let kept = effects.answers.len();
        assert!((1900..2100).contains(&kept), "{kept} packets of 8000 bytes in 16 MiB");
        assert_eq!(effects.take_lost(), 5001 - kept as u64);
        // Messages have room of their own, and once taken there is room again.
        effects.send(&message(1));
        assert_eq!((effects.take_answers().len(), effects.message_count()), (kept, 1));
        effects.answer(&[1]);
        assert_eq!(effects.take_answers(), [[1]]);
    }

    #[test]
    fn log_lines_take_their_arguments_in_order() {
        let args = [Value::Bits(Bits::new(8, 7)), Value::Bool(true)];
        assert_eq!(format_log("a {} b {} c {}", &args), "a 7 b true c {}");
        assert_eq!(format_log("none", &args), "none");
        assert_eq!(format_log("{}{}", &args), "7true");
    }
}
