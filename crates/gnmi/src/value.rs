//! Values of leaves and of whole subtrees, as they go to clients and come from them.

use crate::proto::{Encoding, TypedValue, typed_value};
use crate::tree::{Elem, Leaf, Value};
use serde_json::{Map, Value as Json};
use tonic::Status;

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each leaf by itself.
    Scalars,
    Json,
    /// RFC 7951: with names of modules, and numbers of 64 bits as text.
    JsonIetf,
}

impl Form {
    /// The form that a request asks for.
    pub(crate) fn of(encoding: i32) -> Result<Form, Status> {
        match Encoding::try_from(encoding) {
            Ok(Encoding::Json) => Ok(Form::Json),
            Ok(Encoding::JsonIetf) => Ok(Form::JsonIetf),
            Ok(Encoding::Proto) => Ok(Form::Scalars),
            Ok(other) => {
                let name = other.as_str_name();
                Err(Status::unimplemented(format!(
                    "values are written as JSON, JSON_IETF or PROTO, not as {name}"
                )))
            }
            Err(_) => Err(Status::invalid_argument("there is no such encoding")),
        }
    }
}

impl Value {
    /// A leaf's value.
    pub(crate) fn message(&self, form: Form) -> TypedValue {
        use typed_value::Value as Typed;
        let value = match (form, self) {
            (Form::Json | Form::JsonIetf, _) => return json_message(&self.json(form), form),
            (Form::Scalars, Value::Text(text)) => Typed::StringVal(text.to_string()),
            (Form::Scalars, Value::Bool(bool)) => Typed::BoolVal(*bool),
            (Form::Scalars, Value::Number(number)) => Typed::UintVal((*number).into()),
            (Form::Scalars, Value::Large(number) | Value::Count(number)) => Typed::UintVal(*number),
        };
        TypedValue { value: Some(value) }
    }

    fn json(&self, form: Form) -> Json {
        match self {
            Value::Text(text) => text.as_ref().into(),
            Value::Bool(bool) => (*bool).into(),
            Value::Number(number) => (*number).into(),
            Value::Large(number) | Value::Count(number) if form == Form::JsonIetf => {
                number.to_string().into()
            }
            Value::Large(number) | Value::Count(number) => (*number).into(),
        }
    }
}

fn json_message(json: &Json, form: Form) -> TypedValue {
    let bytes = json.to_string().into_bytes();
    let value = match form {
        Form::JsonIetf => typed_value::Value::JsonIetfVal(bytes),
        Form::Json | Form::Scalars => typed_value::Value::JsonVal(bytes),
    };
    TypedValue { value: Some(value) }
}

/// A node with all of the leaves below it, whose paths begin with the same elements, so many.
pub(crate) fn subtree(node: usize, leaves: &[&Leaf], form: Form) -> TypedValue {
    let mut whole = Json::Object(Map::new());
    for leaf in leaves {
        put(&mut whole, &leaf.path, node, leaf.value.json(form), form);
    }
    json_message(&whole, form)
}

/// Puts a value at the end of a path below a node; a path that ends there is the node itself.
fn put(whole: &mut Json, path: &[Elem], node: usize, value: Json, form: Form) {
    let mut place = whole;
    for at in node..path.len() {
        let elem = &path[at];
        let qualified = form == Form::JsonIetf && (at == node || module(path, at) != module(path, at - 1));
        let name = match qualified {
            true => format!("{}:{}", module(path, at), elem.name),
            false => elem.name.to_owned(),
        };
        let Json::Object(object) = place else { return };
        let inner = object.entry(name).or_insert_with(|| match elem.key {
            Some(_) => Json::Array(Vec::new()),
            None => Json::Object(Map::new()),
        });
        place = match (&elem.key, inner) {
            (Some((key, own)), Json::Array(entries)) => {
                let is_own = |entry: &Json| entry.get(*key).and_then(Json::as_str) == Some(&**own);
                // Leaves of one entry follow each other.
                let found = entries.iter().rposition(is_own).unwrap_or_else(|| {
                    entries.push(serde_json::json!({ *key: **own }));
                    entries.len() - 1
                });
                &mut entries[found]
            }
            (_, inner) => inner,
        };
    }
    *place = value;
}

/// The module that defines the element at a place.
fn module(path: &[Elem], at: usize) -> &'static str {
    match (path[0].name, path[at].name) {
        (_, "id" | "node-id") => "openconfig-p4rt",
        ("components", _) => "openconfig-platform",
        (_, "hardware-port") => "openconfig-platform-port",
        (_, "health-indicator") => "openconfig-hercules-interfaces",
        _ if path[..=at].iter().any(|elem| elem.name == "ethernet") => "openconfig-if-ethernet",
        _ => "openconfig-interfaces",
    }
}

/// A value of a client as JSON: what it wrote, or a scalar.
pub(crate) fn read(value: Option<&TypedValue>) -> Result<Json, Status> {
    use typed_value::Value as Typed;
    let value = value.and_then(|value| value.value.as_ref());
    Ok(match value.ok_or_else(|| Status::invalid_argument("an update has no value (`val`)"))? {
        Typed::StringVal(text) | Typed::AsciiVal(text) => text.as_str().into(),
        Typed::BoolVal(bool) => (*bool).into(),
        Typed::IntVal(number) => (*number).into(),
        Typed::UintVal(number) => (*number).into(),
        Typed::JsonVal(bytes) | Typed::JsonIetfVal(bytes) => serde_json::from_slice(bytes)
            .map_err(|error| Status::invalid_argument(format!("the value is no JSON: {error}")))?,
        _ => return Err(Status::unimplemented("a value is a text, a number, a bool or JSON")),
    })
}

/// A name without that of its module.
pub(crate) fn plain(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}
