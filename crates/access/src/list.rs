//! The access list: who is known, and what each of them may do. Here it is decided, for all servers.

use crate::right::{Right, Rights};
use crate::tenant::Tenant;
use crate::token::Token;
use std::fmt;
use subtle::ConstantTimeEq;

/// Most entries of a list.
pub const MAX_ENTRIES: usize = 4096;
/// Most bytes in the name of an entry.
const MAX_NAME: usize = 256;

/// What a client shows to be known by. A token counts before a certificate: who brings a wrong one is nobody.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// The common name of its certificate, whose signature has been checked.
    pub certificate: Option<String>,
    /// The token that it presents.
    pub token: Option<Token>,
}

/// What an entry knows its client by.
#[derive(Clone, Debug)]
pub enum Credential {
    /// A certificate with this common name.
    Certificate(String),
    /// A token.
    Token(Token),
}

/// Whose devices an entry is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All there are, and the chassis itself: an operator's.
    Operator,
    /// Those of a tenant.
    Tenant(Tenant),
}

/// A client with its rights. One client may have several entries.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What the log of changes calls the client.
    pub name: String,
    /// What it is known by.
    pub credential: Credential,
    /// Whose devices it sees.
    pub scope: Scope,
    /// What it may do with them.
    pub rights: Rights,
}

/// What somebody wants to do something with.
#[derive(Clone, Copy, Debug)]
pub enum Resource<'a> {
    /// A device and whatever belongs to it; without a tenant it is the operator's.
    Device(Option<&'a Tenant>),
    /// A device that there is not.
    NoDevice,
    /// What all devices share: the chassis, its physical ports and links.
    Chassis,
}

/// Why somebody may not do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody knows the client.
    Unknown,
    /// The client does not see the resource: to be answered as if there were none.
    Hidden,
    /// The client sees the resource and lacks this right.
    Forbidden(Right),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unknown => f.write_str("no client on the access list has this certificate or token"),
            Refusal::Hidden => f.write_str("there is no such device"),
            Refusal::Forbidden(right) => {
                write!(f, "the access list does not give this client the right `{right}`")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Why an entry cannot be on a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// There are [`MAX_ENTRIES`] already.
    TooMany,
    /// The name, or the common name, is empty, too long, or not for a line of text.
    Name(String),
    /// Two entries of different names have one credential.
    Ambiguous(String, String),
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessError::TooMany => write!(f, "an access list has at most {MAX_ENTRIES} entries"),
            AccessError::Name(name) => {
                write!(f, "`{}` is no name of a client: 1 to {MAX_NAME} bytes of text", name.escape_debug())
            }
            AccessError::Ambiguous(one, other) => {
                write!(f, "`{one}` and `{other}` have the same credential")
            }
        }
    }
}

impl std::error::Error for AccessError {}

/// Who may do what. Whoever is not on it may do nothing.
#[derive(Clone, Debug, Default)]
pub struct AccessList {
    entries: Vec<Entry>,
}

impl AccessList {
    /// One more entry.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn add(&mut self, entry: Entry) -> Result<(), AccessError> {
        if self.entries.len() >= MAX_ENTRIES {
            return Err(AccessError::TooMany);
        }
        check_name(&entry.name)?;
        if let Credential::Certificate(name) = &entry.credential {
            check_name(name)?;
        }
        let who = Who::of(&entry.credential);
        if let Some(other) = self.entries_of(&who).find(|other| other.name != entry.name) {
            return Err(AccessError::Ambiguous(other.name.clone(), entry.name));
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Whether somebody may do something with a resource.
    ///
    /// # Errors
    /// Why not, and so what the answer has to be.
    pub fn may(&self, who: &Who, right: Right, resource: Resource<'_>) -> Result<(), Refusal> {
        decide(self.entries_of(who), right, resource)
    }

    /// Whether somebody who shows nothing to be known by, and acts as the client of that name, may do something with a resource.
    ///
    /// # Errors
    /// As of [`AccessList::may`].
    pub fn may_as(&self, name: &str, right: Right, resource: Resource<'_>) -> Result<(), Refusal> {
        decide(self.entries.iter().filter(|entry| entry.name == name), right, resource)
    }

    /// What the log of changes calls somebody, if they are known.
    pub fn name(&self, who: &Who) -> Option<&str> {
        self.entries_of(who).next().map(|entry| entry.name.as_str())
    }

    /// All entries are compared with the token, however many of them are the client's.
    fn entries_of(&self, who: &Who) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| who.is(&entry.credential))
    }
}

impl Who {
    fn of(credential: &Credential) -> Who {
        match credential.clone() {
            Credential::Certificate(name) => Who { certificate: Some(name), token: None },
            Credential::Token(token) => Who { certificate: None, token: Some(token) },
        }
    }

    fn is(&self, credential: &Credential) -> bool {
        match (credential, self) {
            (Credential::Token(token), Who { token: Some(presented), .. }) => token.is(presented).into(),
            (Credential::Certificate(name), Who { certificate: Some(presented), token: None }) => {
                name.as_bytes().ct_eq(presented.as_bytes()).into()
            }
            _ => false,
        }
    }
}

/// Whether a client with these entries may do something with a resource.
fn decide<'e>(
    entries: impl Iterator<Item = &'e Entry>,
    right: Right,
    resource: Resource<'_>,
) -> Result<(), Refusal> {
    let (mut refusal, mut is_allowed) = (Refusal::Unknown, false);
    for entry in entries {
        if refusal == Refusal::Unknown {
            refusal = Refusal::Hidden;
        }
        if entry.scope.sees(resource) {
            refusal = Refusal::Forbidden(right);
            is_allowed |= entry.rights.has(right);
        }
    }
    if is_allowed { Ok(()) } else { Err(refusal) }
}

impl Scope {
    fn sees(&self, resource: Resource<'_>) -> bool {
        match (self, resource) {
            (_, Resource::NoDevice) => false,
            (Scope::Operator, _) => true,
            (Scope::Tenant(tenant), Resource::Device(Some(owner))) => tenant == owner,
            (Scope::Tenant(_), Resource::Device(None) | Resource::Chassis) => false,
        }
    }
}

fn check_name(name: &str) -> Result<(), AccessError> {
    let is_text = !name.is_empty() && !name.chars().any(char::is_control);
    match is_text && name.len() <= MAX_NAME {
        true => Ok(()),
        false => Err(AccessError::Name(name.chars().take(MAX_NAME).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"a secret of many letters";

    fn token(text: &str) -> Token {
        Token::presented(text.as_bytes())
    }

    fn tenant(name: &str) -> Tenant {
        name.parse().unwrap()
    }

    fn entry(name: &str, credential: Credential, scope: Scope, rights: Rights) -> Entry {
        Entry { name: name.into(), credential, scope, rights }
    }

    /// Each right alone, of a tenant and of an operator, by certificate and by token, for each kind of resource.
    #[test]
    fn every_combination_of_right_resource_and_credential() {
        let (red, blue) = (tenant("red"), tenant("blue"));
        for given in Right::ALL {
            for scope in [Scope::Operator, Scope::Tenant(red.clone())] {
                for is_token in [false, true] {
                    let credential = match is_token {
                        true => Credential::Token(Token::presented(SECRET)),
                        false => Credential::Certificate("one".into()),
                    };
                    let who = Who::of(&credential);
                    let mut list = AccessList::default();
                    list.add(entry("one", credential, scope.clone(), [given].into_iter().collect())).unwrap();
                    for asked in Right::ALL {
                        let with = |resource| {
                            let may = list.may(&who, asked, resource);
                            // Who acts as the client may do what the client may, however that is known.
                            assert_eq!(list.may_as("one", asked, resource), may);
                            assert_eq!(list.may_as("two", asked, resource), Err(Refusal::Unknown));
                            may
                        };
                        let seen = if given == asked { Ok(()) } else { Err(Refusal::Forbidden(asked)) };
                        let of_operator = if scope == Scope::Operator { seen } else { Err(Refusal::Hidden) };
                        assert_eq!(with(Resource::Device(Some(&red))), seen);
                        assert_eq!(with(Resource::Device(Some(&blue))), of_operator);
                        assert_eq!(with(Resource::Device(None)), of_operator);
                        assert_eq!(with(Resource::Chassis), of_operator);
                        assert_eq!(with(Resource::NoDevice), Err(Refusal::Hidden));
                        for stranger in [
                            Who::default(),
                            Who { certificate: Some("two".into()), token: None },
                            Who { certificate: Some(String::new()), token: None },
                            Who { certificate: None, token: Some(token("another")) },
                            Who { certificate: Some("one".into()), token: Some(token("another")) },
                        ] {
                            for resource in
                                [Resource::Device(Some(&red)), Resource::NoDevice, Resource::Chassis]
                            {
                                assert_eq!(list.may(&stranger, asked, resource), Err(Refusal::Unknown));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn entries_of_one_client_add_up() {
        let mut list = AccessList::default();
        let credential = || Credential::Certificate("one".into());
        let (red, blue) = (tenant("red"), tenant("blue"));
        list.add(entry("one", credential(), Scope::Tenant(red.clone()), Rights::all())).unwrap();
        list.add(entry("one", credential(), Scope::Tenant(blue.clone()), "read".parse().unwrap())).unwrap();
        let who = Who::of(&credential());
        assert_eq!(list.may(&who, Right::Write, Resource::Device(Some(&red))), Ok(()));
        assert_eq!(list.may(&who, Right::Read, Resource::Device(Some(&blue))), Ok(()));
        let refused = list.may(&who, Right::Write, Resource::Device(Some(&blue)));
        assert_eq!(refused, Err(Refusal::Forbidden(Right::Write)));
        assert_eq!(list.name(&who), Some("one"));
        assert_eq!(list.name(&Who::default()), None);
    }

    #[test]
    fn lists_are_bounded_and_their_entries_have_names() {
        let mut list = AccessList::default();
        let add = |list: &mut AccessList, name: &str, secret: &str| {
            list.add(entry(name, Credential::Token(token(secret)), Scope::Operator, Rights::all()))
        };
        add(&mut list, "one", "first").unwrap();
        let same = AccessError::Ambiguous("one".into(), "two".into());
        assert_eq!(add(&mut list, "two", "first"), Err(same));
        for name in ["", "a\nb", &"a".repeat(MAX_NAME + 1)] {
            assert!(matches!(add(&mut list, name, "other"), Err(AccessError::Name(_))));
        }
        list.entries = vec![list.entries[0].clone(); MAX_ENTRIES];
        assert_eq!(add(&mut list, "more", "other"), Err(AccessError::TooMany));
    }
}
