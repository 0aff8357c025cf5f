//! Search trees over 32-bit boundaries, sixteen to a cache line.

/// A cache line of boundaries.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct Line(pub(super) [u32; 16]);

/// Boundaries in a line, and lines below one.
pub(super) const BOUNDS: usize = 16;
pub(super) const CHILDREN: usize = 17;

/// Most levels; they hold 78608 boundaries, more than an axis has.
pub(super) const MAX_LEVELS: usize = 4;

/// Rising boundaries. The place of a value is how many are less than it. Unused ones are the largest number, which none is
/// larger than. The lines of the levels follow one another, the single line of the top level first.
pub(super) struct Tree {
    pub(super) lines: Vec<Line>,
    pub(super) levels: usize,
    /// Where each level begins in `lines`, from the top.
    pub(super) starts: [u32; MAX_LEVELS],
}

impl Tree {
    pub(super) fn new(bounds: &[u32]) -> Tree {
        let fits = |levels: &usize| bounds.len() <= BOUNDS * CHILDREN.pow(*levels as u32 - 1);
        let levels = (1..MAX_LEVELS).find(fits).unwrap_or(MAX_LEVELS);
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

    pub(super) fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }
}
