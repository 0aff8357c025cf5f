//! Requests of version 1 (RFC 1157, 4.1).

use crate::agent::{MAX_BINDINGS, Malformed, Opened, check_names, decode};
use crate::statistics::Count;
use crate::value::identifier;
use crate::view::Width;
use rasn::types::Integer;
use rasn_snmp::v1::{GetResponse, Message, Pdu, Pdus, VarBind, VarBindList};

const NO_ERROR: u64 = Pdu::ERROR_STATUS_NO_ERROR;
const TOO_BIG: u64 = Pdu::ERROR_STATUS_TOO_BIG;
const NO_SUCH_NAME: u64 = Pdu::ERROR_STATUS_NO_SUCH_NAME;
const GEN_ERR: u64 = Pdu::ERROR_STATUS_GEN_ERR;

/// What is wrong with a request, and with which of its bindings, from 1.
struct Refusal(u64, usize);

/// Answers a request.
pub(crate) fn answer(opened: &Opened<'_>) -> Result<Option<Vec<u8>>, Malformed> {
    let statistics = opened.agent.statistics();
    let pdus = decode::<Pdus>(opened.pdu)?;
    let (request, is_next) = match pdus {
        Pdus::GetRequest(request) => (request.0, Some(false)),
        Pdus::GetNextRequest(request) => (request.0, Some(true)),
        Pdus::SetRequest(request) => (request.0, None),
        // What agents say is nothing to answer.
        Pdus::GetResponse(_) => {
            statistics.count(Count::InGetResponses);
            return Ok(None);
        }
        Pdus::Trap(_) => {
            statistics.count(Count::InTraps);
            return Ok(None);
        }
    };
    let bindings = &request.variable_bindings;
    check_names(bindings.iter().map(|binding| &binding.name))?;
    statistics.count(match is_next {
        Some(false) => Count::InGetRequests,
        Some(true) => Count::InGetNexts,
        None => Count::InSetRequests,
    });
    let done = match is_next {
        // Nothing is asked for.
        _ if bindings.is_empty() => Ok(VarBindList::new()),
        _ if bindings.len() > MAX_BINDINGS => Err(Refusal(TOO_BIG, 0)),
        Some(is_next) => look_up(opened, bindings, is_next),
        None => refuse_set(opened),
    };
    let id = request.request_id;
    let refusal = match done {
        Ok(found) => {
            let count = found.len();
            let whole = encode(opened, id.clone(), NO_ERROR, 0, found);
            if let Some(whole) = whole.filter(|whole| whole.len() <= opened.limit) {
                statistics.add(Count::InTotalReqVars, u32::try_from(count).unwrap_or(u32::MAX));
                return Ok(Some(whole));
            }
            Refusal(TOO_BIG, 0)
        }
        Err(refusal) => refusal,
    };
    statistics.count(match refusal.0 {
        TOO_BIG => Count::OutTooBigs,
        NO_SUCH_NAME => Count::OutNoSuchNames,
        _ => Count::OutGenErrs,
    });
    let Refusal(status, index) = refusal;
    // "Identical in form" to the request: its bindings come back.
    let repeated = encode(opened, id, status, index, request.variable_bindings);
    let repeated = repeated.filter(|repeated| repeated.len() <= opened.limit);
    if repeated.is_none() {
        statistics.count(Count::SilentDrops);
    }
    Ok(repeated)
}

/// Finds what is asked for, all of it or nothing.
fn look_up(opened: &Opened<'_>, bindings: &VarBindList, is_next: bool) -> Result<VarBindList, Refusal> {
    let view = (opened.view)().ok_or(Refusal(GEN_ERR, 1))?;
    let mut found = VarBindList::with_capacity(bindings.len());
    for (index, binding) in (1..).zip(bindings) {
        let name = &**binding.name;
        let object = match is_next {
            false => view.get(name, Width::Narrow).ok(),
            true => view.after(name, Width::Narrow),
        };
        let object = object.ok_or(Refusal(NO_SUCH_NAME, index))?;
        // A narrow view has no value that version 1 has not.
        let value = opened.agent.value(object.cell).v1();
        let name = if is_next { identifier(&object.name()) } else { Some(binding.name.clone()) };
        let (Some(name), Some(value)) = (name, value) else { return Err(Refusal(GEN_ERR, index)) };
        found.push(VarBind { name, value });
    }
    Ok(found)
}

/// Nothing can be set: each object is "not available for set operations", and that is `noSuchName` (RFC 1157, 4.1.5). `readOnly` is in the
/// list of errors, but no rule of the protocol gives it (RFC 3584, 4.4: `notWritable` of version 2 is `noSuchName` here).
fn refuse_set(opened: &Opened<'_>) -> Result<VarBindList, Refusal> {
    opened.agent.statistics().count(Count::InBadCommunityUses);
    Err(Refusal(NO_SUCH_NAME, 1))
}

fn encode(
    opened: &Opened<'_>,
    request_id: Integer,
    status: u64,
    index: usize,
    variable_bindings: VarBindList,
) -> Option<Vec<u8>> {
    let pdu = Pdu { request_id, error_status: status.into(), error_index: index.into(), variable_bindings };
    let data = GetResponse(pdu);
    rasn::ber::encode(&Message { version: 0.into(), community: opened.community.clone(), data }).ok()
}
