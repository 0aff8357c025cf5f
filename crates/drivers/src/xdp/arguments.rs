//! The arguments of the driver: `INTERFACE[,mode=MODE][,queue=N]...`.

use super::DRIVER;
use crate::link::LinkName;
use crate::port::PortError;

/// Most receive queues of an interface that a port takes.
pub(super) const MAX_SOCKETS: usize = 64;

/// The largest number of a queue.
const MAX_QUEUE: u32 = 4095;

/// How frames come from the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The best that works.
    Best,
    /// The program runs in the driver of the interface; frames are copied only if that cannot put them in place.
    Native,
    /// As native, with frames that are copied in any case.
    Copy,
    /// As native, with frames that are not copied, or not at all.
    ZeroCopy,
    /// The program runs in the kernel's own stack, for every interface.
    Generic,
}

const MODES: [(Mode, &str); 4] = [
    (Mode::Native, "native"),
    (Mode::Generic, "generic"),
    (Mode::Copy, "copy"),
    (Mode::ZeroCopy, "zerocopy"),
];

#[derive(Clone, Debug)]
pub(super) struct Arguments {
    pub(super) link: LinkName,
    pub(super) mode: Mode,
    /// Receive queues, each once; all when none is named.
    pub(super) queues: Vec<u32>,
}

impl Arguments {
    pub(super) fn parse(args: &str) -> Result<Arguments, PortError> {
        let wrong = |reason| PortError::Arguments { driver: DRIVER, reason };
        let mut words = args.split(',');
        let link = LinkName::new(DRIVER, words.next().unwrap_or_default())?;
        let (mut mode, mut queues) = (None, Vec::new());
        for word in words {
            match word.split_once('=') {
                Some(("mode", name)) => {
                    let known = MODES.iter().find(|(_, known)| *known == name);
                    let Some((wanted, _)) = known else {
                        let reason = format!(
                            "`{name}` is not a mode (native, generic, copy, zerocopy; the best that works without one)"
                        );
                        return Err(wrong(reason));
                    };
                    mode = Some(*wanted);
                }
                Some(("queue", number)) => {
                    // A plus sign would parse as a number too.
                    let digits = Some(number).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                    let parsed =
                        digits.and_then(|text| text.parse().ok()).filter(|number| *number <= MAX_QUEUE);
                    let Some(number) = parsed else {
                        let reason = format!("`{number}` is not the number of a queue (0 to {MAX_QUEUE})");
                        return Err(wrong(reason));
                    };
                    if !queues.contains(&number) {
                        queues.push(number);
                    }
                }
                _ => {
                    let reason = format!("`{word}` is neither `mode=MODE` nor `queue=NUMBER`");
                    return Err(wrong(reason));
                }
            }
        }
        if queues.len() > MAX_SOCKETS {
            let count = queues.len();
            return Err(wrong(format!(
                "a port has at most {MAX_SOCKETS} queues of an interface, not {count}"
            )));
        }
        Ok(Arguments { link, mode: mode.unwrap_or(Mode::Best), queues })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_may_have_a_mode_and_queues() {
        let parsed = |args| {
            let Arguments { link, mode, queues } = Arguments::parse(args).unwrap();
            (link.as_str().to_owned(), mode, queues)
        };
        assert_eq!(parsed("eth0"), ("eth0".to_owned(), Mode::Best, vec![]));
        assert_eq!(parsed("eth0,mode=copy"), ("eth0".to_owned(), Mode::Copy, vec![]));
        let two = parsed("eth0,queue=3,mode=zerocopy,queue=0,queue=3");
        assert_eq!(two, ("eth0".to_owned(), Mode::ZeroCopy, vec![3, 0]));
    }

    #[test]
    fn other_arguments_are_refused_by_name() {
        let many = format!("eth0{}", (0..65).map(|n| format!(",queue={n}")).collect::<String>());
        for (args, message) in [
            ("", "xdp: `` is not an interface name"),
            ("eth0,mode=fast", "xdp: `fast` is not a mode (native, generic, copy, zerocopy;"),
            ("eth0,queue=x", "xdp: `x` is not the number of a queue"),
            ("eth0,queue=+1", "xdp: `+1` is not the number of a queue"),
            ("eth0,queue=4096", "xdp: `4096` is not the number of a queue (0 to 4095)"),
            ("eth0,generic", "xdp: `generic` is neither `mode=MODE` nor `queue=NUMBER`"),
            (&many, "xdp: a port has at most 64 queues of an interface, not 65"),
        ] {
            let error = Arguments::parse(args).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
