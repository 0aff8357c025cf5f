//! An expression as a tree of tests.

use super::program::{Field, Operator, Test, Width};

/// What a frame is to fulfil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Always(bool),
    /// A field of the frame compared with a number.
    Field(Field, Test, u32),
    /// The length of the frame compared with a number.
    Length(Test, u32),
    /// Two numbers made from the frame.
    Relation(Number, Test, Number),
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
}

/// A number made from the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Given(u32),
    Length,
    /// At a place that is known.
    Field(Field),
    /// At a place of which a part is computed; after the IPv4 header at `header` if there is one.
    At {
        index: Box<Number>,
        base: u32,
        header: Option<u16>,
        width: Width,
    },
    Both(Box<Number>, Operator, Box<Number>),
}

impl Node {
    /// A field of the frame that is a number.
    pub(super) fn is(at: u32, width: Width, value: u32) -> Node {
        Node::masked(at, width, !0, value)
    }

    /// The same with only the bits of a mask.
    pub(super) fn masked(at: u32, width: Width, mask: u32, value: u32) -> Node {
        Node::Field(Field { at, header: None, width, mask }, Test::Equal, value & mask)
    }

    pub(super) fn and(self, other: Node) -> Node {
        match self {
            Node::All(mut nodes) => {
                nodes.push(other);
                Node::All(nodes)
            }
            first => Node::All(vec![first, other]),
        }
    }

    pub(super) fn or(self, other: Node) -> Node {
        match self {
            Node::Any(mut nodes) => {
                nodes.push(other);
                Node::Any(nodes)
            }
            first => Node::Any(vec![first, other]),
        }
    }

    pub(super) fn not(self) -> Node {
        Node::Not(Box::new(self))
    }
}

impl Number {
    /// Two numbers combined: done at once where both are known.
    pub(super) fn combined(self, operator: Operator, other: Number) -> Number {
        match (self, operator, other) {
            (Number::Given(left), operator, Number::Given(right))
                if operator.apply(left, right).is_some() =>
            {
                Number::Given(operator.apply(left, right).unwrap_or(0))
            }
            (Number::Field(field), Operator::And, Number::Given(mask)) => {
                Number::Field(Field { mask: field.mask & mask, ..field })
            }
            (left, operator, right) => Number::Both(Box::new(left), operator, Box::new(right)),
        }
    }
}
