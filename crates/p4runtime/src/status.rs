//! The status of a batch: one error for each update (specification, "Error Reporting"), as far as the client takes it.
//!
//! Errors travel in metadata, of which clients of gRPC take 8 KiB unless they say otherwise; more would end the call, and
//! for some clients the connection, without any answer. So what is too long is cut: first messages, then all errors. The
//! client then learns which updates were refused from the message of a RESOURCE_EXHAUSTED, which is what gRPC's own
//! servers answer then (specification, "gRPC Metadata Maximum Size").

use crate::refusal::Refusal;
use millrace_p4runtime_api::{google::rpc, v1};
use prost::Message;
use std::fmt::Write;
use tonic::{Code, Status};
use tracing::debug;

/// Metadata that every client takes, in bytes as HTTP/2 counts them (RFC 9113, 6.5.2).
pub(crate) const USUAL_METADATA: u32 = 8192;
/// What the metadata of an answer takes besides the errors: its other fields, and the name of this one.
const OTHER_FIELDS: usize = 512;
/// Most characters of a list of numbers of updates.
const MAX_NUMBERS: usize = 1024;
/// Most characters that are told of the first error.
const MAX_FIRST: usize = 512;

/// OK, or UNKNOWN with one `p4.v1.Error` for each element, in order, in so many bytes of metadata; RESOURCE_EXHAUSTED
/// where they do not fit. `failed` names what has failed.
pub(crate) fn batch_status(
    results: &[Result<(), Refusal>],
    failed: &str,
    metadata: u32,
) -> Result<(), Status> {
    let refused = || results.iter().enumerate().filter_map(|(at, result)| Some((at, result.as_ref().err()?)));
    if refused().next().is_none() {
        return Ok(());
    }
    for (number, refusal) in refused() {
        debug!(number, code = ?refusal.code, reason = refusal.message, "{failed}");
    }
    // Details are encoded as Base64 without padding.
    let room = (metadata as usize).saturating_sub(OTHER_FIELDS) / 4 * 3;
    let details = fitting(results, failed, room).ok_or_else(|| {
        Status::resource_exhausted(format!(
            "{failed} {} of {} refused ({}), and their errors do not fit in {metadata} bytes of metadata. {}",
            refused().count(),
            results.len(),
            numbers(refused().map(|(at, _)| at)),
            first(refused())
        ))
    })?;
    Err(Status::with_details(Code::Unknown, failed, details.into()))
}

/// The details in so many bytes, with as many messages as they have room for; none if they have no room at all.
fn fitting(results: &[Result<(), Refusal>], failed: &str, room: usize) -> Option<Vec<u8>> {
    let error = |result: &Result<(), Refusal>, with_message: bool| {
        let mut error = v1::Error::default();
        if let Err(refusal) = result {
            error.canonical_code = refusal.code as i32;
            if with_message {
                error.message.clone_from(&refusal.message);
            }
        }
        prost_types::Any { type_url: "type.googleapis.com/p4.v1.Error".into(), value: error.encode_to_vec() }
    };
    let status = |details| rpc::Status { code: Code::Unknown as i32, message: failed.to_owned(), details };
    let short: Vec<_> = results.iter().map(|result| error(result, false)).collect();
    let mut status = status(short);
    let mut length = status.encoded_len();
    if length > room {
        return None;
    }
    // What was refused itself says more than what went with it.
    let is_own =
        |result: &Result<(), Refusal>| !matches!(result, Err(refusal) if refusal.code == Code::Aborted);
    for own in [true, false] {
        for (result, short) in results.iter().zip(&mut status.details) {
            if result.is_err() && is_own(result) == own {
                let whole = error(result, true);
                let of = |any: &prost_types::Any| prost::encoding::message::encoded_len(3, any);
                let more = of(&whole) - of(short);
                if length + more <= room {
                    length += more;
                    *short = whole;
                }
            }
        }
    }
    Some(status.encode_to_vec())
}

/// Ascending numbers, counted from 1, in ranges: `1-3, 7`.
fn numbers(refused: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in refused.map(|at| at + 1) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let mut text = String::new();
    for (first, last) in ranges {
        if text.len() > MAX_NUMBERS {
            text.push_str(", ...");
            break;
        }
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = match first == last {
            true => write!(text, "{comma}{first}"),
            false => write!(text, "{comma}{first}-{last}"),
        };
    }
    text
}

/// The first error, which others may have followed from.
fn first<'a>(refused: impl Iterator<Item = (usize, &'a Refusal)> + Clone) -> String {
    let own = refused.clone().find(|(_, refusal)| refusal.code != Code::Aborted);
    let Some((at, refusal)) = own.or_else(|| refused.clone().next()) else { return String::new() };
    let message: String = refusal.message.chars().take(MAX_FIRST).collect();
    format!("The first is {}, {:?}: {message}", at + 1, refusal.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Results = Vec<Result<(), Refusal>>;

    fn errors(status: &Status) -> Vec<v1::Error> {
        let details = rpc::Status::decode(status.details()).unwrap().details;
        details.iter().map(|any| v1::Error::decode(&*any.value).unwrap()).collect()
    }

    /// Its size as a client counts it: name, value and 32 bytes for each field (RFC 9113, 6.5.2).
    fn metadata(status: &Status) -> usize {
        let headers = status.clone().into_http::<()>().headers().clone();
        headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum()
    }

    fn refused(count: usize) -> Results {
        (0..count).map(|_| Err(Refusal::not_found("m".repeat(60)))).collect()
    }

    #[test]
    fn what_fits_is_told_in_full() {
        let mut results = refused(40);
        results[7] = Ok(());
        let status = batch_status(&results, "Write failure.", USUAL_METADATA).unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unknown, "Write failure."));
        let errors = errors(&status);
        assert_eq!(errors.len(), 40);
        assert_eq!(errors[7], v1::Error::default());
        assert!((0..40).all(|at| at == 7 || errors[at].message.len() == 60));
        assert!(batch_status(&[Ok(()), Ok(())], "Write failure.", USUAL_METADATA).is_ok());
    }

    #[test]
    fn messages_are_left_out_where_they_do_not_fit_and_the_others_last() {
        let mut results: Results =
            vec![Err(Refusal::new(Code::Aborted, "not done, as another update of the batch failed")); 120];
        results[119] = Err(Refusal::invalid("why"));
        let status = batch_status(&results, "Write failure.", USUAL_METADATA).unwrap_err();
        assert!(metadata(&status) <= USUAL_METADATA as usize, "{}", metadata(&status));
        let errors = errors(&status);
        assert!(errors[..119].iter().all(|error| error.canonical_code == Code::Aborted as i32));
        assert!(!errors[0].message.is_empty() && errors[118].message.is_empty());
        assert_eq!(errors[119].message, "why");
    }

    #[test]
    fn more_errors_than_fit_become_one_that_says_so() {
        let mut results = refused(1000);
        results[3] = Ok(());
        results[5] = Ok(());
        let status = batch_status(&results, "Write failure.", USUAL_METADATA).unwrap_err();
        assert_eq!((status.code(), status.details()), (Code::ResourceExhausted, &[][..]));
        assert_eq!(
            status.message(),
            format!(
                "Write failure. 998 of 1000 refused (1-3, 5, 7-1000), and their errors do not fit in 8192 bytes of \
                 metadata. The first is 1, NotFound: {}",
                "m".repeat(60)
            )
        );
        // A client that takes more gets more.
        let status = batch_status(&results, "Write failure.", 200_000).unwrap_err();
        assert_eq!(errors(&status).len(), 1000);
        assert!(errors(&status)[999].message.len() == 60);
        // However many ranges there are, and whatever the message.
        let results: Results = (0..10_000)
            .map(|at| if at % 2 == 0 { Ok(()) } else { Err(Refusal::invalid("ö".repeat(9000))) })
            .collect();
        let status = batch_status(&results, "Write failure.", USUAL_METADATA).unwrap_err();
        assert!(metadata(&status) <= USUAL_METADATA as usize, "{}", metadata(&status));
    }
}
