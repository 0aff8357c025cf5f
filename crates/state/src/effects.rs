//! What a program sends out in addition to packets.

use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;

/// The most bytes that messages take until somebody takes them, and lines of the log the same.
pub const MAX_EFFECTS: usize = 16 << 20;
/// The most bytes that one message or line may take.
pub const MAX_EFFECT: usize = 64 << 10;

/// What a program sends out in addition to packets, in order. What is beyond [`MAX_EFFECTS`] or [`MAX_EFFECT`] is lost,
/// and counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// Messages to the control plane.
    pub digests: Vec<DigestMessage>,
    /// Lines for the log.
    pub log: Vec<String>,
    /// Packets of plugins, for the port that the packet came in on which they answer.
    pub answers: Vec<Vec<u8>>,
    /// The bytes that there is no room for any more: of messages, of lines and of packets.
    taken: [usize; 3],
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

impl DigestMessage {
    /// About the bytes that it takes.
    fn bytes(&self) -> usize {
        let bytes = |value: &Value| match value {
            Value::Bool(_) => 0,
            Value::Bits(bits) => bits.width() as usize / 8,
            Value::Varbit(varbit) => varbit.len() as usize / 8,
        };
        size_of::<DigestMessage>()
            + self.values.iter().map(|value| size_of::<Value>() + bytes(value)).sum::<usize>()
    }
}

impl Effects {
    /// Sends a message, if there is room for it.
    pub fn send(&mut self, message: DigestMessage) {
        if self.has_room(0, message.bytes()) {
            self.digests.push(message);
        }
    }

    /// Writes a line to the log, if there is room for it.
    pub fn say(&mut self, line: String) {
        if self.has_room(1, size_of::<String>() + line.len()) {
            self.log.push(line);
        }
    }

    /// Sends a packet that a plugin answers with, if there is room for it.
    pub fn answer(&mut self, packet: &[u8]) {
        if self.has_room(2, size_of::<Vec<u8>>() + packet.len()) {
            self.answers.push(packet.to_vec());
        }
    }

    /// Takes room for messages, lines or packets. Once there is none, nothing has room until all are taken: so what is kept is the
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

    /// Whether nothing was sent out, or lost.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty() && self.log.is_empty() && self.answers.is_empty() && self.lost == 0
    }

    /// Adds what another one holds, after what is there.
    pub fn append(&mut self, mut other: Effects) {
        if other.is_empty() {
            return;
        }
        let mut together = self.taken;
        together.iter_mut().zip(other.taken).for_each(|(taken, more)| *taken = taken.saturating_add(more));
        if together.iter().all(|taken| *taken <= MAX_EFFECTS) {
            // All of it fits.
            self.taken = together;
            self.lost += other.lost;
            self.digests.append(&mut other.digests);
            self.log.append(&mut other.log);
            self.answers.append(&mut other.answers);
            return;
        }
        self.lost += other.lost;
        other.digests.into_iter().for_each(|message| self.send(message));
        other.log.into_iter().for_each(|line| self.say(line));
        other.answers.iter().for_each(|packet| self.answer(packet));
    }

    /// Takes the messages and the lines; there is room again.
    pub fn take(&mut self) -> (Vec<DigestMessage>, Vec<String>) {
        (self.taken[0], self.taken[1]) = (0, 0);
        (std::mem::take(&mut self.digests), std::mem::take(&mut self.log))
    }

    /// Takes the packets of plugins; there is room again.
    pub fn take_answers(&mut self) -> Vec<Vec<u8>> {
        self.taken[2] = 0;
        std::mem::take(&mut self.answers)
    }

    /// So many that were taken are lost too.
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
        (0..5000).for_each(|_| effects.send(message(8000)));
        let kept = effects.digests.len();
        assert!((1900..2100).contains(&kept), "{kept} messages of 8000 bytes in 16 MiB");
        // A small one would fit, but comes after one that is lost.
        effects.send(message(1));
        effects.say("x".repeat(MAX_EFFECT));
        effects.say("fits".to_owned());
        assert_eq!((effects.digests.len(), effects.log.len()), (kept, 1));
        assert_eq!(effects.take_lost(), 5000 - kept as u64 + 2);
        assert_eq!(effects.take().0.len(), kept);
        effects.send(message(1));
        assert_eq!((effects.digests.len(), effects.take_lost()), (1, 0));
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
        effects.send(message(1));
        assert_eq!((effects.take_answers().len(), effects.take().0.len()), (kept, 1));
        let mut other = Effects::default();
        other.answer(&[1]);
        effects.append(other);
        assert_eq!(effects.take_answers(), [[1]]);
    }

    #[test]
    fn what_is_kept_is_the_same_wherever_it_was_collected() {
        let (mut whole, mut parts) = (Effects::default(), Effects::default());
        for size in [30_000, 60_000, 10] {
            let mut part = Effects::default();
            for _ in 0..250 {
                whole.send(message(size / 8 * 8));
                part.send(message(size / 8 * 8));
            }
            parts.append(part);
        }
        assert_eq!(whole, parts);
    }

    #[test]
    fn log_lines_take_their_arguments_in_order() {
        let args = [Value::Bits(Bits::new(8, 7)), Value::Bool(true)];
        assert_eq!(format_log("a {} b {} c {}", &args), "a 7 b true c {}");
        assert_eq!(format_log("none", &args), "none");
        assert_eq!(format_log("{}{}", &args), "7true");
    }
}
