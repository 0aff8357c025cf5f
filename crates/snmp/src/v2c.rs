//! Requests of version 2c (RFC 1901, RFC 3416 4.2).

use crate::agent::{MAX_BINDINGS, Malformed, Opened, check_names, decode};
use crate::statistics::Count;
use crate::value::identifier;
use crate::view::{Found, Missing, View, Width};
use rasn::prelude::*;
use rasn_snmp::v2::{Pdu, Pdus, Response, VarBind, VarBindList, VarBindValue};
use rasn_snmp::v2c::Message;

/// What is wrong with a request, and with which of its bindings, from 1.
struct Refusal(u32, usize);

/// The first byte of a request in bulk.
const BULK: u8 = 0xa5;

/// A request in bulk with numbers as they may come: what is less than zero stands for zero (RFC 3416, 4.2.3).
#[derive(AsnType, Clone, Decode, Debug)]
struct BulkPdu {
    request_id: i32,
    non_repeaters: i64,
    max_repetitions: i64,
    variable_bindings: VarBindList,
}

#[derive(AsnType, Clone, Decode, Debug)]
#[rasn(tag(5))]
#[rasn(delegate)]
struct BulkRequest(BulkPdu);

/// What a request asks for.
enum Asked {
    Get(Pdu),
    Next(Pdu),
    Bulk(BulkPdu),
    Set(Pdu),
}

/// Answers a request.
pub(crate) fn answer(opened: &Opened<'_>) -> Result<Option<Vec<u8>>, Malformed> {
    let statistics = opened.agent.statistics();
    let Some(asked) = asked(opened)? else { return Ok(None) };
    let (id, bindings) = match &asked {
        Asked::Get(pdu) | Asked::Next(pdu) | Asked::Set(pdu) => (pdu.request_id, &pdu.variable_bindings),
        Asked::Bulk(pdu) => (pdu.request_id, &pdu.variable_bindings),
    };
    check_names(bindings.iter().map(|binding| &binding.name))?;
    statistics.count(match &asked {
        Asked::Get(_) => Count::InGetRequests,
        // The group has no counter of its own for what came later.
        Asked::Next(_) | Asked::Bulk(_) => Count::InGetNexts,
        Asked::Set(_) => Count::InSetRequests,
    });
    let done = match &asked {
        // Nothing is asked for.
        _ if bindings.is_empty() => Ok(VarBindList::new()),
        _ if bindings.len() > MAX_BINDINGS => Err(Refusal(Pdu::ERROR_STATUS_TOO_BIG, 0)),
        Asked::Set(_) => refuse_set(opened),
        _ => look_up(opened, &asked),
    };
    let refusal = match done {
        Ok(found) => {
            let count = found.len();
            let whole = encode(opened, id, Pdu::ERROR_STATUS_NO_ERROR, 0, found);
            if let Some(whole) = whole.filter(|whole| whole.len() <= opened.limit) {
                statistics.add(Count::InTotalReqVars, u32::try_from(count).unwrap_or(u32::MAX));
                return Ok(Some(whole));
            }
            Refusal(Pdu::ERROR_STATUS_TOO_BIG, 0)
        }
        Err(refusal) => refusal,
    };
    let Refusal(status, index) = refusal;
    // `tooBig` has no bindings (RFC 3416, 4.2.1); other errors repeat those of the request.
    let repeated = match status {
        Pdu::ERROR_STATUS_TOO_BIG => {
            statistics.count(Count::OutTooBigs);
            VarBindList::new()
        }
        Pdu::ERROR_STATUS_GEN_ERR => {
            statistics.count(Count::OutGenErrs);
            bindings.clone()
        }
        _ => bindings.clone(),
    };
    let repeated = encode(opened, id, status, index, repeated);
    let repeated = repeated.filter(|repeated| repeated.len() <= opened.limit);
    if repeated.is_none() {
        statistics.count(Count::SilentDrops);
    }
    Ok(repeated)
}

/// What a request asks for; none: it is nothing to answer.
fn asked(opened: &Opened<'_>) -> Result<Option<Asked>, Malformed> {
    if opened.pdu.first() == Some(&BULK) {
        return decode::<BulkRequest>(opened.pdu).map(|request| Some(Asked::Bulk(request.0)));
    }
    let statistics = opened.agent.statistics();
    Ok(match decode::<Pdus>(opened.pdu)? {
        Pdus::GetRequest(request) => Some(Asked::Get(request.0)),
        Pdus::GetNextRequest(request) => Some(Asked::Next(request.0)),
        Pdus::SetRequest(request) => Some(Asked::Set(request.0)),
        // What agents say is nothing to answer, and nobody informs one.
        Pdus::Response(_) => {
            statistics.count(Count::InGetResponses);
            None
        }
        Pdus::Trap(_) | Pdus::InformRequest(_) | Pdus::Report(_) => {
            statistics.count(Count::InTraps);
            None
        }
        // With another byte first.
        Pdus::GetBulkRequest(_) => return Err(Malformed),
    })
}

/// Finds what is asked for.
fn look_up(opened: &Opened<'_>, asked: &Asked) -> Result<VarBindList, Refusal> {
    let view = (opened.view)().ok_or(Refusal(Pdu::ERROR_STATUS_GEN_ERR, 1))?;
    match asked {
        Asked::Get(pdu) => (1..)
            .zip(&pdu.variable_bindings)
            .map(|(index, binding)| get(opened, &view, index, binding))
            .collect(),
        Asked::Next(pdu) => {
            let each = (1..).zip(&pdu.variable_bindings);
            each.map(|(index, binding)| next(opened, &view, index, &binding.name)).collect()
        }
        Asked::Bulk(pdu) => bulk(opened, &view, pdu),
        Asked::Set(_) => Ok(VarBindList::new()),
    }
}

/// RFC 3416, 4.2.1.
fn get(opened: &Opened<'_>, view: &View, index: usize, binding: &VarBind) -> Result<VarBind, Refusal> {
    let value = match view.get(&binding.name, Width::Wide) {
        Ok(found) => value(opened, found).ok_or(Refusal(Pdu::ERROR_STATUS_GEN_ERR, index))?,
        Err(Missing::Object) => VarBindValue::NoSuchObject,
        Err(Missing::Instance) => VarBindValue::NoSuchInstance,
    };
    Ok(VarBind { name: binding.name.clone(), value })
}

/// RFC 3416, 4.2.2.
fn next(opened: &Opened<'_>, view: &View, index: usize, name: &ObjectIdentifier) -> Result<VarBind, Refusal> {
    let Some(found) = view.after(name, Width::Wide) else {
        return Ok(VarBind { name: name.clone(), value: VarBindValue::EndOfMibView });
    };
    let (name, value) = (identifier(&found.name()), value(opened, found));
    match (name, value) {
        (Some(name), Some(value)) => Ok(VarBind { name, value }),
        _ => Err(Refusal(Pdu::ERROR_STATUS_GEN_ERR, index)),
    }
}

fn value(opened: &Opened<'_>, found: Found<'_>) -> Option<VarBindValue> {
    opened.agent.value(found.cell).v2().map(VarBindValue::Value)
}

/// RFC 3416, 4.2.3: the first bindings once, the others so often, as far as an answer has room for them. What a client asks for beyond
/// that costs nothing: nothing is looked up that does not fit, but for the first that does not.
fn bulk(opened: &Opened<'_>, view: &View, pdu: &BulkPdu) -> Result<VarBindList, Refusal> {
    let once = usize::try_from(pdu.non_repeaters.max(0)).unwrap_or(usize::MAX);
    let once = once.min(pdu.variable_bindings.len());
    let (first, repeated) = pdu.variable_bindings.split_at(once);
    let mut answer = Answer::new(opened, pdu.request_id);
    for (index, binding) in (1..).zip(first) {
        if !answer.add(next(opened, view, index, &binding.name)?) {
            return Ok(answer.bindings);
        }
    }
    let mut names: Vec<ObjectIdentifier> = repeated.iter().map(|binding| binding.name.clone()).collect();
    for _ in 0..pdu.max_repetitions {
        let mut goes_on = false;
        for (index, name) in (once + 1..).zip(&mut names) {
            let binding = next(opened, view, index, name)?;
            goes_on |= binding.value != VarBindValue::EndOfMibView;
            name.clone_from(&binding.name);
            if !answer.add(binding) {
                return Ok(answer.bindings);
            }
        }
        // Further repetitions would all say that there is no more.
        if !goes_on {
            break;
        }
    }
    Ok(answer.bindings)
}

/// Bindings that fit an answer.
struct Answer {
    bindings: VarBindList,
    /// Bytes that are left.
    room: usize,
}

/// Bytes that the lengths around the bindings of a message may take, more than those of an empty list.
const LENGTHS: usize = 3 * 2;

impl Answer {
    fn new(opened: &Opened<'_>, id: i32) -> Answer {
        let empty = encode(opened, id, Pdu::ERROR_STATUS_NO_ERROR, 0, VarBindList::new());
        let taken = empty.map_or(usize::MAX, |empty| empty.len() + LENGTHS);
        Answer { bindings: VarBindList::new(), room: opened.limit.saturating_sub(taken) }
    }

    /// Adds a binding; says whether it did.
    fn add(&mut self, binding: VarBind) -> bool {
        let bytes = rasn::ber::encode(&binding).map_or(usize::MAX, |bytes| bytes.len());
        let Some(left) = self.room.checked_sub(bytes) else { return false };
        self.room = left;
        self.bindings.push(binding);
        true
    }
}

/// Nothing can be set, whatever the value (RFC 3416, 4.2.5, rule 2).
fn refuse_set(opened: &Opened<'_>) -> Result<VarBindList, Refusal> {
    opened.agent.statistics().count(Count::InBadCommunityUses);
    Err(Refusal(Pdu::ERROR_STATUS_NOT_WRITABLE, 1))
}

fn encode(
    opened: &Opened<'_>,
    request_id: i32,
    error_status: u32,
    index: usize,
    variable_bindings: VarBindList,
) -> Option<Vec<u8>> {
    let error_index = u32::try_from(index).ok()?;
    let data = Response(Pdu { request_id, error_status, error_index, variable_bindings });
    rasn::ber::encode(&Message { version: 1.into(), community: opened.community.clone(), data }).ok()
}
