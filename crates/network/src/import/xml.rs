//! A look at a text before it is parsed as XML. The parser goes as deep as the text does, and compares each attribute of an element, and
//! each name space, with all others.

/// Deepest element.
const MAX_LEVELS: usize = 32;
/// Most attributes of an element.
const MAX_ATTRIBUTES: usize = 64;
/// Most declarations of name spaces in a file.
const MAX_NAME_SPACES: usize = 64;

/// What of a text a parser would take too long or go too deep for: its place, and the limit.
pub(super) fn too_much(text: &str) -> Option<(usize, String)> {
    let (mut depth, mut name_spaces, bytes) = (0usize, 0, text.as_bytes());
    let mut at = 0;
    while let Some(start) = bytes[at..].iter().position(|byte| *byte == b'<').map(|start| at + start) {
        let skip = |end: &str| {
            text.get(start..).and_then(|rest| rest.find(end)).map(|found| start + found + end.len())
        };
        let end = match bytes.get(start + 1) {
            Some(b'!') if bytes[start..].starts_with(b"<!--") => skip("-->"),
            Some(b'!') if bytes[start..].starts_with(b"<![CDATA[") => skip("]]>"),
            Some(b'?') => skip("?>"),
            Some(b'/') => {
                depth = depth.saturating_sub(1);
                skip(">")
            }
            _ => {
                let tag = Tag::of(bytes, start);
                if tag.attributes > MAX_ATTRIBUTES {
                    let limit =
                        format!("an element has {MAX_ATTRIBUTES} attributes at most (MAX_ATTRIBUTES)");
                    return Some((start, limit));
                }
                name_spaces += tag.name_spaces;
                if tag.end.is_some_and(|end| bytes[end - 2] != b'/') {
                    depth += 1;
                }
                tag.end
            }
        };
        if depth > MAX_LEVELS {
            return Some((start, format!("elements are {MAX_LEVELS} levels deep at most (MAX_LEVELS)")));
        }
        if name_spaces > MAX_NAME_SPACES {
            let limit = format!("a file declares {MAX_NAME_SPACES} name spaces at most (MAX_NAME_SPACES)");
            return Some((start, limit));
        }
        at = end?;
    }
    None
}

/// The tag that begins an element.
#[derive(Default)]
struct Tag {
    /// After its `>`, which may also be in the value of an attribute; none if the text ends before, or where attributes are too many.
    end: Option<usize>,
    attributes: usize,
    /// How many of the attributes declare a name space.
    name_spaces: usize,
}

impl Tag {
    fn of(bytes: &[u8], start: usize) -> Tag {
        let (mut tag, mut quote) = (Tag::default(), None);
        for (at, byte) in bytes.iter().enumerate().skip(start) {
            match (quote, byte) {
                (None, b'"' | b'\'') => quote = Some(*byte),
                (Some(open), byte) if open == *byte => quote = None,
                (None, b'>') => {
                    tag.end = Some(at + 1);
                    break;
                }
                (None, b'=') => {
                    let name = bytes[start..at].trim_ascii_end();
                    let name = name.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
                    tag.attributes += 1;
                    tag.name_spaces += usize::from(name.starts_with(b"xmlns"));
                    if tag.attributes > MAX_ATTRIBUTES {
                        break;
                    }
                }
                _ => {}
            }
        }
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_attributes_and_name_spaces_have_limits() {
        let limit =
            |text: &str| too_much(text).map(|(at, limit)| (at, limit.rsplit(' ').next().unwrap().to_owned()));
        let deep = |levels: usize| format!("{}{}", "<a>".repeat(levels), "</a>".repeat(levels));
        assert_eq!(limit(&deep(MAX_LEVELS)), None);
        assert_eq!(limit(&deep(MAX_LEVELS + 1)), Some((3 * MAX_LEVELS, "(MAX_LEVELS)".into())));
        let wide = |attributes: usize| {
            let attributes: Vec<String> = (0..attributes).map(|at| format!("a{at}='<= xmlns='")).collect();
            format!("<r><!-- a='' --><e {}/></r>", attributes.join(" "))
        };
        assert_eq!(limit(&wide(MAX_ATTRIBUTES)), None);
        assert_eq!(limit(&wide(MAX_ATTRIBUTES + 1)), Some((16, "(MAX_ATTRIBUTES)".into())));
        let spaces = |elements: usize| format!("<r>{}</r>", "<e xmlns:a = 'u' b='xmlns='/>".repeat(elements));
        assert_eq!(limit(&spaces(MAX_NAME_SPACES)), None);
        assert_eq!(
            limit(&spaces(MAX_NAME_SPACES + 1)).map(|(_, limit)| limit),
            Some("(MAX_NAME_SPACES)".into())
        );
    }
}
