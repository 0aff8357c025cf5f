//! JSON values that know their path, so that every problem has a place.

use millrace_commands::nearest;
use serde_json::Value;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// What is wrong with a value, and which.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) path: Vec<Step>,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Problem {
    pub(super) fn with_help(self, help: String) -> Problem {
        Problem { help: Some(help), ..self }
    }

    /// `table_entries[3].match`.
    pub(super) fn path_text(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) if text.is_empty() => text.push_str(key),
                Step::Key(key) => {
                    text.push('.');
                    text.push_str(key);
                }
                Step::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        text
    }
}

/// A value with its path.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    path: Vec<Step>,
}

impl<'a> Node<'a> {
    pub(super) fn top(value: &'a Value) -> Node<'a> {
        Node { value, path: Vec::new() }
    }

    fn child(&self, step: Step, value: &'a Value) -> Node<'a> {
        let mut path = self.path.clone();
        path.push(step);
        Node { value, path }
    }

    pub(super) fn problem(&self, message: String) -> Problem {
        Problem { path: self.path.clone(), message, help: None }
    }

    fn wanted(&self, what: &str) -> Problem {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a truth value",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        self.problem(format!("{what} is expected, this is {found}"))
    }

    /// The members of an object.
    pub(super) fn members(&self) -> Result<Vec<(&'a str, Node<'a>)>, Problem> {
        let Value::Object(members) = self.value else { return Err(self.wanted("an object")) };
        Ok(members
            .iter()
            .map(|(key, value)| (key.as_str(), self.child(Step::Key(key.clone()), value)))
            .collect())
    }

    /// The elements of a list.
    pub(super) fn elements(&self) -> Result<Vec<Node<'a>>, Problem> {
        let Value::Array(elements) = self.value else { return Err(self.wanted("a list")) };
        Ok(elements.iter().enumerate().map(|(at, value)| self.child(Step::Index(at), value)).collect())
    }

    /// A member of an object; `null` counts as none.
    pub(super) fn get(&self, key: &str) -> Result<Option<Node<'a>>, Problem> {
        let Value::Object(members) = self.value else { return Err(self.wanted("an object")) };
        let member = members.get(key).filter(|value| !value.is_null());
        Ok(member.map(|value| self.child(Step::Key(key.to_owned()), value)))
    }

    /// A member that must be there.
    pub(super) fn need(&self, key: &str) -> Result<Node<'a>, Problem> {
        self.get(key)?.ok_or_else(|| self.problem(format!("`{key}` is missing")))
    }

    /// Refuses members of other names.
    pub(super) fn only(&self, keys: &[&str]) -> Result<(), Problem> {
        for (key, node) in self.members()? {
            if !keys.contains(&key) {
                let help = match nearest(key, keys.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known here: {}", keys.join(", ")),
                };
                return Err(node.problem(format!("there is no `{key}` here")).with_help(help));
            }
        }
        Ok(())
    }

    pub(super) fn text(&self) -> Result<&'a str, Problem> {
        self.value.as_str().ok_or_else(|| self.wanted("a text"))
    }

    pub(super) fn truth(&self) -> Result<bool, Problem> {
        self.value.as_bool().ok_or_else(|| self.wanted("true or false"))
    }

    pub(super) fn u32(&self) -> Result<u32, Problem> {
        let number = self.value.as_u64().and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.wanted(&format!("a number from 0 to {}", u32::MAX)))
    }
}
