//! Search trees over 32-bit boundaries, sixteen to a cache line.

/// A cache line of boundaries.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct Line(pub(super) [u32; 16]);

/// Boundaries in a line, and lines below one.
pub(super) const BOUNDS: usize = 16;
pub(super) const CHILDREN: usize = 17;

/// Most levels; they hold 4624 boundaries.
pub(super) const MAX_LEVELS: usize = 3;

/// Rising boundaries. The place of a value is how many are less than it. Unused ones are the largest number, which none is
/// larger than. The lines of the levels follow one another, the single line of the top level first.
pub(super) struct Tree {
    pub(super) lines: Vec<Line>,
    pub(super) levels: usize,
    /// Where each level begins in `lines`, from the top.
    pub(super) starts: [u32; MAX_LEVELS],
}

/// Levels that so many boundaries need.
pub(super) fn levels_for(bounds: usize) -> usize {
    match bounds {
        0..=16 => 1,
        17..=272 => 2,
        _ => 3,
    }
}

impl Tree {
    /// A tree of at least this many levels.
    pub(super) fn new(bounds: &[u32], levels: usize) -> Tree {
        let levels = levels.max(levels_for(bounds.len())).min(MAX_LEVELS);
        let mut lines = Vec::new();
        let mut starts = [0; MAX_LEVELS];
        for (level, start) in starts.iter_mut().enumerate().take(levels) {
            *start = lines.len() as u32;
            // How many boundaries of the lowest level lie below one child of a node of this level.
            let below = levels - 1 - level;
            let span = if below == 0 { 1 } else { BOUNDS * CHILDREN.pow(below as u32 - 1) };
            let per_line = if below == 0 { BOUNDS } else { span * CHILDREN };
            let count = if level == 0 { 1 } else { bounds.len().div_ceil(per_line).max(1) };
            for node in 0..count {
                let mut line = Line([u32::MAX; 16]);
                for (at, to) in line.0.iter_mut().enumerate() {
                    let from =
                        if below == 0 { node * BOUNDS + at } else { node * per_line + (at + 1) * span };
                    *to = bounds.get(from).copied().unwrap_or(u32::MAX);
                }
                lines.push(line);
            }
        }
        Tree { lines, levels, starts }
    }

    /// The place of a value, without vectors.
    pub(super) fn place(&self, value: u32) -> usize {
        let mut node = 0;
        for level in 0..self.levels {
            let line = &self.lines[self.starts[level] as usize + node];
            let less = line.0.iter().filter(|bound| **bound < value).count();
            node = if level + 1 == self.levels { node * BOUNDS } else { node * CHILDREN } + less;
        }
        node
    }

    pub(super) fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_the_boundaries_below_a_value() {
        for count in [0usize, 1, 15, 16, 17, 100, 271, 272, 273, 2000, 4624] {
            let bounds: Vec<u32> = (0..count as u32).map(|at| at * 7 + 3).collect();
            for levels in 1..=3 {
                let tree = Tree::new(&bounds, levels);
                for value in (0..count as u32 * 7 + 20).step_by(3).chain([u32::MAX]) {
                    let expected = bounds.iter().filter(|bound| **bound < value).count();
                    assert_eq!(tree.place(value), expected, "{value} of {count}");
                }
            }
        }
    }
}
