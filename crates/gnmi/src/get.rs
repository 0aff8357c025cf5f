//! `Get`.

use crate::path::{Pattern, check_count};
use crate::proto::get_request::DataType;
use crate::proto::{GetRequest, GetResponse, Notification, Path, Update};
use crate::tree::{Elem, Leaf, Nature, check_known, matching};
use crate::value::{Form, subtree};
use std::collections::{BTreeMap, BTreeSet};
use tonic::Status;

/// Most values of one answer.
const MAX_VALUES: usize = 65_536;

/// Answers a request: a notification for each path.
pub(crate) fn get(request: &GetRequest, leaves: &[Leaf], timestamp: i64) -> Result<GetResponse, Status> {
    check_count(request.path.len())?;
    let form = Form::of(request.encoding)?;
    let kind = DataType::try_from(request.r#type)
        .map_err(|_| Status::invalid_argument("there is no such data type"))?;
    // No path at all means the one of the prefix.
    let root = [Path::default()];
    let paths = if request.path.is_empty() { &root[..] } else { &request.path };
    let configured = match kind {
        DataType::Operational => configured(leaves),
        _ => BTreeSet::new(),
    };
    let mut values = 0;
    let mut answer = GetResponse::default();
    for path in paths {
        let pattern = Pattern::read(request.prefix.as_ref(), path)?;
        check_known(&pattern)?;
        let mut found = matching(leaves, &pattern).peekable();
        if found.peek().is_none() && !pattern.has_wildcards() {
            return Err(Status::not_found(format!("there is nothing at {}", pattern.text())));
        }
        let found: Vec<_> = found.filter(|(_, leaf)| is_wanted(leaf, kind, &configured)).collect();
        values += found.len();
        if values > MAX_VALUES {
            return Err(Status::resource_exhausted(format!("an answer has at most {MAX_VALUES} values")));
        }
        let update = match form {
            Form::Scalars => found
                .iter()
                .map(|(_, leaf)| Update {
                    path: Some(leaf.message(leaf.path.len())),
                    val: Some(leaf.value.message(form)),
                    ..Update::default()
                })
                .collect(),
            Form::Json | Form::JsonIetf => subtrees(&found, form),
        };
        answer.notification.push(Notification {
            timestamp,
            prefix: prefix(request.prefix.as_ref()),
            update,
            ..Notification::default()
        });
    }
    Ok(answer)
}

/// The prefix of an answer: paths are whole, only the target is told again.
pub(crate) fn prefix(asked: Option<&Path>) -> Option<Path> {
    let asked = asked.filter(|prefix| !prefix.target.is_empty())?;
    Some(Path { target: asked.target.clone(), ..Path::default() })
}

/// Each node that was asked for, with all below it.
fn subtrees(found: &[(usize, &Leaf)], form: Form) -> Vec<Update> {
    let mut nodes: BTreeMap<_, Vec<&Leaf>> = BTreeMap::new();
    for (node, leaf) in found {
        nodes.entry(&leaf.path[..*node]).or_default().push(leaf);
    }
    let update = |(node, leaves): (&[_], Vec<&Leaf>)| Update {
        path: leaves.first().map(|leaf| leaf.message(node.len())),
        val: Some(subtree(node.len(), &leaves, form)),
        ..Update::default()
    };
    nodes.into_iter().map(update).collect()
}

/// The paths of state that is configured too.
fn configured(leaves: &[Leaf]) -> BTreeSet<Vec<Elem>> {
    let as_state = |elem: &Elem| match elem.name {
        "config" => Elem { name: "state", key: elem.key.clone() },
        _ => elem.clone(),
    };
    let configures = leaves.iter().filter(|leaf| leaf.nature() == Nature::Config);
    configures.map(|leaf| leaf.path.iter().map(as_state).collect()).collect()
}

/// Whether a leaf is of the kind that was asked for. OPERATIONAL is state that nobody configures.
fn is_wanted(leaf: &Leaf, kind: DataType, configured: &BTreeSet<Vec<Elem>>) -> bool {
    match (kind, leaf.nature()) {
        (DataType::All, _) => true,
        (DataType::Config, nature) => nature == Nature::Config,
        (DataType::State, nature) => nature == Nature::State,
        (DataType::Operational, Nature::State) => !configured.contains(&leaf.path),
        (DataType::Operational, _) => false,
    }
}
