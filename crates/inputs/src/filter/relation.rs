//! Comparisons of numbers: `tcp[13] & 2 != 0`, `len > 100`.

use super::code;
use super::layers::{ARP, IP, IP6, RARP};
use super::parser::{Parsed, Parser};
use super::program::{Operator, Test, Width};
use super::tree::{Node, Number};
use super::words::Kind;

/// Names of numbers, in groups of places: bytes of a header, types of ICMP, flags of TCP.
const NUMBERS: [(&str, u32); 46] = [
    ("icmptype", 0),
    ("icmpcode", 1),
    ("icmp6type", 0),
    ("icmp6code", 1),
    ("tcpflags", 13),
    ("icmp-echoreply", 0),
    ("icmp-unreach", 3),
    ("icmp-sourcequench", 4),
    ("icmp-redirect", 5),
    ("icmp-echo", 8),
    ("icmp-routeradvert", 9),
    ("icmp-routersolicit", 10),
    ("icmp-timxceed", 11),
    ("icmp-paramprob", 12),
    ("icmp-tstamp", 13),
    ("icmp-tstampreply", 14),
    ("icmp-ireq", 15),
    ("icmp-ireqreply", 16),
    ("icmp-maskreq", 17),
    ("icmp-maskreply", 18),
    ("icmp6-destinationrunreach", 1),
    ("icmp6-packettoobig", 2),
    ("icmp6-timeexceeded", 3),
    ("icmp6-parameterproblem", 4),
    ("icmp6-echo", 128),
    ("icmp6-echoreply", 129),
    ("icmp6-multicastlistenerquery", 130),
    ("icmp6-multicastlistenerreportv1", 131),
    ("icmp6-multicastlistenerdone", 132),
    ("icmp6-routersolicit", 133),
    ("icmp6-routeradvert", 134),
    ("icmp6-neighborsolicit", 135),
    ("icmp6-neighboradvert", 136),
    ("icmp6-redirect", 137),
    ("icmp6-routerrenum", 138),
    ("icmp6-nodeinformationquery", 139),
    ("icmp6-nodeinformationresponse", 140),
    ("icmp6-multicastlistenerreportv2", 143),
    ("tcp-fin", 1),
    ("tcp-syn", 2),
    ("tcp-rst", 4),
    ("tcp-push", 8),
    ("tcp-ack", 16),
    ("tcp-urg", 32),
    ("tcp-ece", 64),
    ("tcp-cwr", 128),
];

/// The signs between numbers, those that bind most last.
const OPERATORS: [&[(&str, Operator)]; 5] = [
    &[("|", Operator::Or), ("^", Operator::Xor)],
    &[("&", Operator::And)],
    &[("<<", Operator::ShiftLeft), (">>", Operator::ShiftRight)],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Modulo)],
];

/// The signs of comparisons: the test, and whether it is to fail.
const TESTS: [(&str, Test, bool); 7] = [
    ("=", Test::Equal, false),
    ("==", Test::Equal, false),
    ("!=", Test::Equal, true),
    (">", Test::Above, false),
    (">=", Test::AtLeast, false),
    ("<", Test::AtLeast, true),
    ("<=", Test::Above, true),
];

/// What the bytes of a header demand of a frame, for each header once.
type Demands = Vec<(String, Node)>;

fn is_operator(kind: &Kind) -> bool {
    let Kind::Sign(sign) = kind else { return false };
    OPERATORS.iter().flat_map(|level| level.iter()).any(|(known, _)| known == sign)
        || TESTS.iter().any(|(known, ..)| known == sign)
}

/// Whether numbers come next. A parenthesis is of numbers when a sign follows its end.
pub(super) fn begins(parser: &Parser<'_>) -> bool {
    let next = &parser.ahead(1).kind;
    match &parser.word().kind {
        Kind::Number(_) => is_operator(next),
        Kind::Sign("-") => true,
        Kind::Name { name, is_escaped: false } => {
            name == "len" || *next == Kind::Sign("[") || NUMBERS.iter().any(|(known, _)| known == name)
        }
        Kind::Sign("(") => {
            let mut open = 0usize;
            let mut ahead = 0;
            loop {
                match parser.ahead(ahead).kind {
                    Kind::Sign("(") => open += 1,
                    Kind::Sign(")") if open == 1 => return is_operator(&parser.ahead(ahead + 1).kind),
                    Kind::Sign(")") => open -= 1,
                    Kind::End => return false,
                    _ => {}
                }
                ahead += 1;
            }
        }
        _ => false,
    }
}

/// Two numbers with the sign of a comparison.
pub(super) fn relation(parser: &mut Parser<'_>) -> Parsed<Node> {
    let mut demands = Demands::new();
    let left = number(parser, 0, &mut demands)?;
    let sign = match parser.word().kind {
        Kind::Sign(sign) => TESTS.into_iter().find(|(known, ..)| *known == sign),
        _ => None,
    };
    let Some((_, test, is_negated)) = sign else {
        return Err(parser.wrong("a comparison was expected: `=`, `!=`, `<`, `<=`, `>` or `>=`"));
    };
    parser.advance();
    let right = number(parser, 0, &mut demands)?;
    let compared = code::relation(left, test, right);
    let compared = if is_negated { compared.not() } else { compared };
    let mut nodes: Vec<Node> = demands.into_iter().map(|(_, node)| node).collect();
    if nodes.is_empty() {
        return Ok(compared);
    }
    nodes.push(compared);
    Ok(Node::All(nodes))
}

fn number(parser: &mut Parser<'_>, level: usize, demands: &mut Demands) -> Parsed<Number> {
    let Some(operators) = OPERATORS.get(level) else { return operand(parser, demands) };
    let mut left = number(parser, level + 1, demands)?;
    while let Kind::Sign(sign) = parser.word().kind
        && let Some((_, operator)) = operators.iter().find(|(known, _)| *known == sign)
    {
        parser.advance();
        let start = parser.word().at.start;
        let right = number(parser, level + 1, demands)?;
        if matches!(operator, Operator::Divide | Operator::Modulo) && right == Number::Given(0) {
            return Err(parser.wrong_since(start, "a division by zero"));
        }
        left = left.combined(*operator, right);
    }
    Ok(left)
}

fn operand(parser: &mut Parser<'_>, demands: &mut Demands) -> Parsed<Number> {
    if parser.takes("-") {
        return Ok(code::negative(parser.nested(|parser| operand(parser, demands))?));
    }
    if parser.takes("(") {
        let inner = parser.nested(|parser| number(parser, 0, demands))?;
        parser.expects(")")?;
        return Ok(inner);
    }
    if let Kind::Number(given) = parser.word().kind {
        parser.advance();
        return Ok(Number::Given(given));
    }
    let Some(name) = parser.name().map(str::to_owned) else {
        return Err(parser.wrong("a number was expected, or bytes of a header as `ip[8]`"));
    };
    if parser.ahead(1).kind == Kind::Sign("[") {
        return bytes(parser, &name, demands);
    }
    let known = match name.as_str() {
        "len" => Some(Number::Length),
        name => NUMBERS.iter().find(|(known, _)| *known == name).map(|(_, value)| Number::Given(*value)),
    };
    let known = known.ok_or_else(|| parser.wrong(format!("there is no number `{name}`")))?;
    parser.advance();
    Ok(known)
}

/// `NAME[INDEX:SIZE]`.
fn bytes(parser: &mut Parser<'_>, name: &str, demands: &mut Demands) -> Parsed<Number> {
    let (start, layers) = (parser.word().at.start, parser.layers);
    parser.advance();
    parser.advance();
    let index = parser.nested(|parser| number(parser, 0, demands))?;
    let width = match parser.takes(":") {
        false => Width::Byte,
        true => {
            let width = match parser.word().kind {
                Kind::Number(1) => Width::Byte,
                Kind::Number(2) => Width::Half,
                Kind::Number(4) => Width::Word,
                _ => return Err(parser.wrong("1, 2 or 4 bytes were expected")),
            };
            parser.advance();
            width
        }
    };
    parser.expects("]")?;
    let payload = layers.payload();
    let of_ip = |protocol| {
        layers.of_ip(protocol).map(|node| (Some(node.and(layers.is_first())), payload, Some(payload as u16)))
    };
    let of = |ether_type| layers.ether_type(ether_type).map(|node| (Some(node), payload, None));
    let found = match name {
        "ether" => Ok((None, 0, None)),
        "ip" => of(IP),
        "ip6" => of(IP6),
        "arp" => of(ARP),
        "rarp" => of(RARP),
        "icmp6" => layers.of_ip6(58).map(|node| (Some(node), payload + 40, None)),
        name => match super::primitive::protocol(name) {
            Some(protocol) => of_ip(protocol),
            None => Err(format!(
                "`{name}` has no bytes: there are ether, ip, ip6, arp, rarp, icmp, icmp6, tcp, udp, sctp"
            )),
        },
    };
    let (demand, base, header) = found.map_err(|message| parser.wrong_since(start, message))?;
    if let Some(node) = demand
        && !demands.iter().any(|(known, _)| known == name)
    {
        demands.push((name.to_owned(), node));
    }
    Ok(code::at(index, base, header, width))
}
