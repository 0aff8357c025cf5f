//! The common name of a certificate (X.509, RFC 5280), whose signature somebody else has checked.

/// The common name of the subject of a certificate in DER. None where it has none or several, or none that is text: then
/// nobody knows which of them is meant.
pub fn common_name(certificate: &[u8]) -> Option<String> {
    let mut subject = subject(certificate)?;
    let mut found = None;
    while !subject.0.is_empty() {
        // Each part of a name is a set of attributes.
        let mut set = Der(subject.take(SET)?);
        while !set.0.is_empty() {
            let mut attribute = Der(set.take(SEQUENCE)?);
            if attribute.take(OBJECT_ID)? != COMMON_NAME {
                continue;
            }
            let (tag, value) = attribute.next()?;
            if !TEXTS.contains(&tag) || found.is_some() {
                return None;
            }
            let text = std::str::from_utf8(value).ok()?;
            let is_plain = !text.is_empty() && !text.chars().any(char::is_control);
            found = Some(is_plain.then(|| text.to_owned())?);
        }
    }
    found
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const OBJECT_ID: u8 = 0x06;
/// The version of a certificate is the only element with this tag.
const VERSION: u8 = 0xa0;
/// 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
/// UTF8String, PrintableString, IA5String.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];

/// The parts of the subject.
fn subject(certificate: &[u8]) -> Option<Der<'_>> {
    let mut signed = Der(Der(certificate).take(SEQUENCE)?);
    let mut body = Der(signed.take(SEQUENCE)?);
    if body.0.first() == Some(&VERSION) {
        body.take(VERSION)?;
    }
    body.take(INTEGER)?;
    // Algorithm, issuer, validity.
    for _ in 0..3 {
        body.take(SEQUENCE)?;
    }
    body.take(SEQUENCE).map(Der)
}

/// What is left of a row of elements.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next element, which has this tag.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, value) = self.next()?;
        (found == tag).then_some(value)
    }

    /// The next element: its tag and what is in it.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], rest) = self.0.split_first_chunk::<2>()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (
                    bytes.iter().try_fold(0usize, |length, byte| {
                        length.checked_mul(256)?.checked_add((*byte).into())
                    })?,
                    rest,
                )
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    fn certificate(names: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["other.example".to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), *name);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn the_common_name_is_that_of_the_subject() {
        let long = "n".repeat(300);
        for name in ["controller", "a b", "é", &long] {
            let der = certificate(&[(DnType::OrganizationName, "red"), (DnType::CommonName, name)]);
            assert_eq!(common_name(&der).as_deref(), Some(name));
        }
        assert_eq!(common_name(&certificate(&[(DnType::OrganizationName, "red")])), None);
        assert_eq!(common_name(&certificate(&[])), None);
        assert_eq!(common_name(&certificate(&[(DnType::CommonName, "a\0b")])), None);
        assert_eq!(common_name(&certificate(&[(DnType::CommonName, "")])), None);
    }

    /// The attribute `2.5.4.3`, twice: in one set, and in two.
    #[test]
    fn of_two_names_none_counts() {
        let attribute = |name: &str| {
            let value = [&[0x0c, name.len() as u8], name.as_bytes()].concat();
            element(SEQUENCE, &[element(OBJECT_ID, COMMON_NAME), value].concat())
        };
        let with = |subject: &[u8]| {
            let empty = element(SEQUENCE, &[]);
            let subject = element(SEQUENCE, subject);
            let body = [&element(INTEGER, &[1])[..], &empty, &empty, &empty, &subject].concat();
            common_name(&element(SEQUENCE, &element(SEQUENCE, &body)))
        };
        let (a, b) = (attribute("a"), attribute("b"));
        assert_eq!(with(&element(SET, &a)), Some("a".into()));
        assert_eq!(with(&element(SET, &[a.clone(), b.clone()].concat())), None);
        assert_eq!(with(&[element(SET, &a), element(SET, &b)].concat()), None);
    }

    fn element(tag: u8, value: &[u8]) -> Vec<u8> {
        [&[tag, value.len() as u8], value].concat()
    }

    #[test]
    fn damaged_bytes_have_no_name_and_do_no_harm() {
        let der = certificate(&[(DnType::CommonName, "controller")]);
        for length in 0..der.len() {
            common_name(&der[..length]);
        }
        for at in 0..der.len().min(300) {
            for value in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut changed = der.clone();
                changed[at] = value;
                common_name(&changed);
            }
        }
        assert_eq!(common_name(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
