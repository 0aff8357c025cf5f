//! `Set`: what may be written is read, checked as a whole, and only then done.

use crate::path::{Pattern, check_count};
use crate::proto::update_result::Operation;
use crate::proto::{Path, PathElem, SetRequest, SetResponse, Update, UpdateResult};
use crate::target::{Change, Health, Setting, Snapshot};
use crate::tree::{Leaf, Nature, Value, check_known, matching};
use crate::value::{plain, read};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use tonic::Status;

/// What a request asks for: the changes in order, and the answer when they are made.
pub(crate) fn set(
    request: &SetRequest,
    snapshot: &Snapshot,
    leaves: &[Leaf],
    timestamp: i64,
) -> Result<(Vec<Change>, SetResponse), Status> {
    if !request.union_replace.is_empty() {
        return Err(Status::unimplemented("union_replace: there is one origin only"));
    }
    check_count(request.delete.len() + request.replace.len() + request.update.len())?;
    let prefix = request.prefix.as_ref();
    let mut setter = Setter::new(snapshot, leaves);
    let mut response = Vec::new();
    let mut done = |path: Option<&Path>, op: Operation| {
        response.push(UpdateResult { path: path.cloned(), op: op as i32, ..UpdateResult::default() });
    };
    for path in &request.delete {
        let pattern = Pattern::read(prefix, path)?;
        match setter.reset(&pattern) {
            Reset::Done => {}
            Reset::Nothing => check_known(&pattern)?,
            Reset::ReadOnly => {
                return Err(Status::invalid_argument(format!("{} cannot be written", pattern.text())));
            }
        }
        done(Some(path), Operation::Delete);
    }
    for (updates, op) in [(&request.replace, Operation::Replace), (&request.update, Operation::Update)] {
        for Update { path, val, .. } in updates {
            let pattern = Pattern::read(prefix, path.as_ref().unwrap_or(&Path::default()))?;
            let value = read(val.as_ref())?;
            if op == Operation::Replace {
                check_replacement(&pattern, &value)?;
                setter.reset(&pattern);
            }
            setter.write(pattern.elements().to_vec(), &value)?;
            done(path.as_ref(), op);
        }
    }
    // The paths of the answer are those of the request, below the same prefix.
    let response = SetResponse { prefix: prefix.cloned(), response, timestamp, ..SetResponse::default() };
    Ok((setter.changes(), response))
}

fn nothing(pattern: &Pattern) -> Status {
    Status::not_found(format!("there is nothing at {}", pattern.text()))
}

/// Refuses an empty object in place of an entry of a list: it would have no key, and nothing is deleted this way.
fn check_replacement(pattern: &Pattern, value: &Json) -> Result<(), Status> {
    let is_entry = pattern.elements().last().is_some_and(|element| !element.key.is_empty());
    match value {
        Json::Object(members) if is_entry && members.is_empty() => Err(Status::invalid_argument(format!(
            "{}: an entry of a list is not replaced with an empty object, `delete` removes it",
            pattern.text()
        ))),
        _ => Ok(()),
    }
}

/// What there was to bring back to what it was at first.
enum Reset {
    Done,
    /// Nothing is there.
    Nothing,
    /// All that is there cannot be written.
    ReadOnly,
}

/// Gathers changes.
struct Setter<'a> {
    leaves: &'a [Leaf],
    /// The ports of interfaces by name.
    ports: BTreeMap<&'a str, u32>,
    /// The leaves of each entry of a list, by the container of the list and the name of the entry.
    entries: BTreeMap<(&'a str, &'a str), &'a [Leaf]>,
    /// What becomes of each port. All is done at once, so of several values of a leaf the last one counts.
    enabled: BTreeMap<u32, bool>,
    health: BTreeMap<u32, Health>,
}

/// The container of the list that a leaf is in, and the name of its entry.
fn entry(leaf: &Leaf) -> Option<(&str, &str)> {
    let (_, name) = leaf.path.get(1)?.key.as_ref()?;
    Some((leaf.path[0].name, name))
}

impl<'a> Setter<'a> {
    fn new(snapshot: &'a Snapshot, leaves: &'a [Leaf]) -> Setter<'a> {
        let ports = snapshot.interfaces.iter().map(|interface| (interface.name.as_str(), interface.port));
        let entries = leaves.chunk_by(|one, next| entry(one) == entry(next));
        let entries = entries.filter_map(|leaves| Some((entry(leaves.first()?)?, leaves)));
        Setter {
            leaves,
            ports: ports.collect(),
            entries: entries.collect(),
            enabled: BTreeMap::new(),
            health: BTreeMap::new(),
        }
    }

    fn put(&mut self, port: u32, setting: Setting) {
        match setting {
            Setting::Enabled(enabled) => _ = self.enabled.insert(port, enabled),
            Setting::Health(health) => _ = self.health.insert(port, health),
        }
    }

    /// The changes that were gathered.
    fn changes(self) -> Vec<Change> {
        let enabled = self.enabled.into_iter().map(|(port, enabled)| (port, Setting::Enabled(enabled)));
        let health = self.health.into_iter().map(|(port, health)| (port, Setting::Health(health)));
        enabled.chain(health).map(|(port, setting)| Change { port, setting }).collect()
    }

    /// What is at a path and below it becomes as it was at first, as far as it can be written.
    fn reset(&mut self, pattern: &Pattern) -> Reset {
        let mut done = Reset::Nothing;
        for (_, leaf) in matching(self.leaves, pattern) {
            if let Reset::Nothing = done {
                done = Reset::ReadOnly;
            }
            let setting = match leaf.path.last().map(|elem| elem.name) {
                _ if leaf.nature() != Nature::Config => None,
                Some("enabled") => Some(Setting::Enabled(true)),
                Some("health-indicator") => Some(Setting::Health(Health::Unknown)),
                _ => None,
            };
            if let (Some(setting), Some(port)) = (setting, self.port(leaf)) {
                self.put(port, setting);
                done = Reset::Done;
            }
        }
        done
    }

    /// The port of the interface that a leaf is of.
    fn port(&self, leaf: &Leaf) -> Option<u32> {
        let (list, name) = entry(leaf)?;
        (list == "interfaces").then(|| self.ports.get(name).copied())?
    }

    /// Writes what a value holds for a path: a leaf, or all that it names below a node.
    fn write(&mut self, mut path: Vec<PathElem>, value: &Json) -> Result<(), Status> {
        match value {
            Json::Object(members) if members.is_empty() => self.check_there(path),
            Json::Array(entries) if entries.is_empty() => self.check_there(path),
            Json::Object(members) => {
                for (name, value) in members {
                    let name = plain(name);
                    // The keys of an entry are in its path already.
                    let is_key = path.last().is_some_and(|entry| {
                        entry.key.get(name).is_some_and(|key| value.as_str() == Some(key))
                    });
                    if !is_key {
                        path.push(PathElem { name: name.to_owned(), ..PathElem::default() });
                        self.write(path.clone(), value)?;
                        path.pop();
                    }
                }
                Ok(())
            }
            Json::Array(entries) => {
                for entry in entries {
                    let Some(name) = entry.get("name").and_then(Json::as_str) else {
                        return Err(Status::invalid_argument("an entry of a list has no key `name`"));
                    };
                    let mut path = path.clone();
                    if let Some(list) = path.last_mut() {
                        list.key.insert("name".into(), name.into());
                    }
                    self.write(path, entry)?;
                }
                Ok(())
            }
            leaf => self.write_leaf(path, leaf),
        }
    }

    /// Refuses to write nothing where nothing is.
    fn check_there(&self, elem: Vec<PathElem>) -> Result<(), Status> {
        let pattern = Pattern::read(None, &Path { elem, ..Path::default() })?;
        match matching(self.near(&pattern), &pattern).next() {
            Some(_) => Ok(()),
            None => Err(nothing(&pattern)),
        }
    }

    /// Leaves among which are all that a pattern means: those of its entry, if it names one.
    fn near(&self, pattern: &Pattern) -> &'a [Leaf] {
        let [list, entry, ..] = pattern.elements() else { return self.leaves };
        match entry.key.get("name") {
            Some(name) if !pattern.has_wildcards() => {
                self.entries.get(&(list.name.as_str(), name.as_str())).copied().unwrap_or_default()
            }
            _ => self.leaves,
        }
    }

    fn write_leaf(&mut self, elem: Vec<PathElem>, value: &Json) -> Result<(), Status> {
        let pattern = Pattern::read(None, &Path { elem, ..Path::default() })?;
        let text = pattern.text();
        let is_concrete =
            !pattern.has_wildcards() && pattern.elements().get(1).is_some_and(|list| !list.key.is_empty());
        if !is_concrete {
            return Err(Status::invalid_argument(format!(
                "{text}: what is written has one name, without wildcards"
            )));
        }
        let mut found = matching(self.near(&pattern), &pattern);
        let found = found.find(|(_, leaf)| leaf.path.len() == pattern.elements().len());
        let Some((_, leaf)) = found else {
            return Err(Status::not_found(format!("there is no leaf {text}")));
        };
        let wrong = |what: &str| Err(Status::invalid_argument(format!("{text}: {what} is expected")));
        let port = self.port(leaf);
        let setting = match (leaf.nature(), leaf.path.last().map(|elem| elem.name), port) {
            (Nature::Config, Some("enabled"), Some(_)) => match value.as_bool() {
                Some(enabled) => Setting::Enabled(enabled),
                None => return wrong("true or false"),
            },
            (Nature::Config, Some("health-indicator"), Some(_)) => {
                match value.as_str().and_then(|name| Health::of_name(plain(name))) {
                    Some(health) => Setting::Health(health),
                    None => return wrong("GOOD, BAD or UNKNOWN"),
                }
            }
            // A client that writes a whole entry repeats what is so anyway.
            (Nature::Config | Nature::Key, ..) if is_same(&leaf.value, value) => return Ok(()),
            (Nature::Config, ..) => {
                return Err(Status::unimplemented(format!(
                    "{text} is what the interface has, and cannot be changed here"
                )));
            }
            _ => return Err(Status::invalid_argument(format!("{text} cannot be written"))),
        };
        if let Some(port) = port {
            self.put(port, setting);
        }
        Ok(())
    }
}

fn is_same(own: &Value, given: &Json) -> bool {
    match own {
        Value::Text(text) => {
            given.as_str().is_some_and(|given| plain(given) == plain(text) || given == &**text)
        }
        Value::Bool(bool) => given.as_bool() == Some(*bool),
        Value::Number(number) => given.as_u64() == Some((*number).into()),
        Value::Large(number) | Value::Count(number) => {
            given.as_u64() == Some(*number) || given.as_str() == Some(&number.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::tests::path;
    use crate::proto::{TypedValue, typed_value};
    use crate::target::Interface;
    use crate::tree::leaves;

    #[test]
    fn the_last_value_of_a_leaf_is_the_one_that_is_set() {
        let interface = |port: u32| Interface { name: format!("port{port}"), port, ..Interface::default() };
        let snapshot = Snapshot { interfaces: (0..3).map(interface).collect(), ..Snapshot::default() };
        let value = TypedValue { value: Some(typed_value::Value::BoolVal(false)) };
        let request = SetRequest {
            delete: vec![path("/"); 200],
            update: vec![Update {
                path: Some(path("/interfaces/interface[name=port1]/config/enabled")),
                val: Some(value),
                ..Update::default()
            }],
            ..SetRequest::default()
        };
        let (changes, answer) = set(&request, &snapshot, &leaves(&snapshot), 0).unwrap();
        let enabled = [true, false, true].map(Setting::Enabled);
        let settings = enabled.into_iter().chain([Setting::Health(Health::Unknown); 3]);
        let expected: Vec<Change> =
            (0..3).cycle().zip(settings).map(|(port, setting)| Change { port, setting }).collect();
        assert_eq!(changes, expected);
        assert_eq!(answer.response.len(), 201);
    }

    #[test]
    fn nothing_is_written_where_nothing_is() {
        let interface = Interface { name: "port1".into(), port: 1, ..Interface::default() };
        let snapshot = Snapshot { interfaces: vec![interface], ..Snapshot::default() };
        let write = |at: &str, json: &str| {
            let value = TypedValue { value: Some(typed_value::Value::JsonVal(json.as_bytes().to_vec())) };
            let update = Update { path: Some(path(at)), val: Some(value), ..Update::default() };
            let request = SetRequest { update: vec![update], ..SetRequest::default() };
            let done = set(&request, &snapshot, &leaves(&snapshot), 0);
            done.map(drop).map_err(|status| status.message().to_owned())
        };
        for (at, json) in [
            ("/", "{}"),
            ("/interfaces", "{\"interface\": []}"),
            ("/interfaces/interface[name=port1]", "{\"config\": {}}"),
        ] {
            assert_eq!(write(at, json), Ok(()), "{at} {json}");
        }
        for (at, json, what) in [
            ("/interface", "{}", "/interface"),
            (
                "/interfaces",
                "{\"interface\": [{\"name\": \"x\", \"config\": {}}]}",
                "/interfaces/interface[name=x]/config",
            ),
            (
                "/interfaces/interface[name=port1]",
                "{\"configs\": []}",
                "/interfaces/interface[name=port1]/configs",
            ),
        ] {
            assert_eq!(write(at, json), Err(format!("there is nothing at {what}")), "{at} {json}");
        }
    }
}
