//! The agent: a datagram in, a datagram out, or none.
//!
//! It knows no socket, so that it answers over UDP and inside of a virtual link alike. Everything that a datagram can cause has a bound:
//! its bytes ([`MAX_REQUEST`]), its bindings ([`MAX_BINDINGS`]), the numbers of a name ([`MAX_NAME`]), the bytes of the answer
//! ([`MAX_RESPONSE`]), and with these the objects that are looked up, each by two binary searches.

use crate::statistics::{Count, Statistics};
use crate::value::Value;
use crate::view::{Cell, View};
use crate::{v1, v2c};
use rasn::types::{Any, Integer, ObjectIdentifier, OctetString};
use rasn_snmp::v2c::Message;
use std::sync::Arc;
use std::time::Instant;
use subtle::ConstantTimeEq;

/// Most bytes of a request: several times what RFC 3417 wants an agent to take (484, better 1472).
pub const MAX_REQUEST: usize = 8192;
/// Most bytes of an answer: what fits an Ethernet frame with the headers of IP and UDP, so that none is fragmented, and nobody gets many
/// times what they sent to somebody else's address. An answer that repeats a longer request may be as long as that.
pub const MAX_RESPONSE: usize = 1472;
/// Most bindings of a request; a request with more is answered with `tooBig`.
pub const MAX_BINDINGS: usize = 256;
/// Most numbers of a name (RFC 2578, 3.5).
pub const MAX_NAME: usize = 128;
/// Most bytes of a community.
pub const MAX_COMMUNITY: usize = 255;

/// An agent.
#[derive(Debug)]
pub struct Agent {
    community: Vec<u8>,
    statistics: Statistics,
    started: Instant,
}

/// A message that an agent may answer, of its community.
pub(crate) struct Opened<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) community: OctetString,
    /// The bytes of what is asked.
    pub(crate) pdu: &'a [u8],
    /// The most bytes of an answer.
    pub(crate) limit: usize,
    /// The objects; none: they cannot be had now.
    pub(crate) view: &'a dyn Fn() -> Option<Arc<View>>,
}

/// A datagram is no message of SNMP, or not one that is understood.
pub(crate) struct Malformed;

impl Agent {
    /// An agent that answers messages of this community.
    pub fn new(community: &str) -> Agent {
        let community = community.as_bytes().to_vec();
        Agent { community, statistics: Statistics::default(), started: Instant::now() }
    }

    /// What it has counted of its messages.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// How long it has run, in hundredths of a second; wraps after 497 days, as `TimeTicks` do.
    pub fn ticks(&self) -> u32 {
        (self.started.elapsed().as_millis() / 10) as u32
    }

    /// Its community.
    pub fn community(&self) -> &[u8] {
        &self.community
    }

    /// Answers a datagram with what the objects are like; none: nobody is to hear of it. The objects are asked for only when
    /// a message of the community wants some.
    pub fn answer(&self, datagram: &[u8], view: &dyn Fn() -> Option<Arc<View>>) -> Option<Vec<u8>> {
        self.answer_within(datagram, MAX_RESPONSE, view)
    }

    /// As [`Agent::answer`], in at most so many bytes, and never more than [`MAX_RESPONSE`]; or as many as the request has, if that is more.
    pub fn answer_within(
        &self,
        datagram: &[u8],
        limit: usize,
        view: &dyn Fn() -> Option<Arc<View>>,
    ) -> Option<Vec<u8>> {
        self.statistics.count(Count::InPkts);
        let limit = limit.min(MAX_RESPONSE).max(datagram.len());
        let answered = self.open(datagram, limit, view);
        match answered {
            Ok(answer) => {
                if answer.is_some() {
                    self.statistics.count(Count::OutPkts);
                    self.statistics.count(Count::OutGetResponses);
                }
                answer
            }
            Err(Malformed) => {
                self.statistics.count(Count::InAsnParseErrs);
                None
            }
        }
    }

    fn open(
        &self,
        datagram: &[u8],
        limit: usize,
        view: &dyn Fn() -> Option<Arc<View>>,
    ) -> Result<Option<Vec<u8>>, Malformed> {
        if datagram.len() > MAX_REQUEST {
            return Err(Malformed);
        }
        // Who says nothing of the community is not listened to any further: its PDU stays bytes.
        let Message { version, community, data } = decode::<Message<Any>>(datagram)?;
        let is_first = version == Integer::from(0);
        if !is_first && version != Integer::from(1) {
            self.statistics.count(Count::InBadVersions);
            return Ok(None);
        }
        if !bool::from(self.community[..].ct_eq(&community)) {
            self.statistics.count(Count::InBadCommunityNames);
            return Ok(None);
        }
        let opened = Opened { agent: self, community, pdu: data.as_bytes(), limit, view };
        if is_first { v1::answer(&opened) } else { v2c::answer(&opened) }
    }

    /// What an object holds.
    pub(crate) fn value(&self, cell: &Cell) -> Value {
        match cell {
            Cell::Value(value) => value.clone(),
            Cell::UpTime => Value::Ticks(self.ticks()),
            Cell::OfAgent(number) => Value::Counter32(self.statistics.get(*number)),
        }
    }
}

/// Reads a whole message, with nothing after it.
pub(crate) fn decode<T: rasn::Decode>(bytes: &[u8]) -> Result<T, Malformed> {
    match rasn::ber::decode_with_remainder::<T>(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(Malformed),
    }
}

/// Looks at the names of a request: whether one is longer than there can be.
pub(crate) fn check_names<'n>(
    names: impl IntoIterator<Item = &'n ObjectIdentifier>,
) -> Result<(), Malformed> {
    match names.into_iter().all(|name| name.len() <= MAX_NAME) {
        true => Ok(()),
        false => Err(Malformed),
    }
}
