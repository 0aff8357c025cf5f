//! Turns: how long a live switch works on packets before it looks around.
//!
//! A batch whose packets make thousands of copies, or pass a hundred times, keeps a worker busy for long. So what is
//! beyond one turn is put off: it waits, in order, and has a turn of its own after the other ports and the requests of
//! controllers had theirs. Until then nothing is taken from the ports that it came in on, so that packets of a port keep
//! their order; they wait at the port. A switch in a library has no turns; there everything ends at once, always in the same
//! order.

use std::time::{Duration, Instant};

/// How long one turn is.
pub(crate) const TURN: Duration = Duration::from_millis(2);
/// Passes between two looks at the clock, of a program whose passes are short.
const PASSES: u32 = 64;

/// The turn that a switch has.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Whether there are turns at all.
    are_taken: bool,
    /// Passes from one look at the clock to the next.
    passes: u32,
    until_look: u32,
    /// When the turn ends, as soon as somebody has looked.
    ends: Option<Instant>,
    is_over: bool,
}

impl Turns {
    /// From now on the switch takes turns.
    pub(crate) fn take(&mut self) {
        self.are_taken = true;
    }

    /// Says whether passes may be long.
    pub(crate) fn set_heavy(&mut self, heavy: bool) {
        self.passes = if heavy { 1 } else { PASSES };
    }

    /// Another turn begins.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.ends = None;
        self.is_over = false;
    }

    /// Whether the turn is over, before another pass.
    #[inline]
    pub(crate) fn look(&mut self) -> bool {
        if !self.are_taken || self.is_over {
            return self.is_over;
        }
        match self.until_look.checked_sub(1) {
            Some(left) => self.until_look = left,
            None => self.look_at_clock(),
        }
        self.is_over
    }

    #[cold]
    fn look_at_clock(&mut self) {
        self.until_look = self.passes.saturating_sub(1);
        let now = Instant::now();
        // The first look begins the turn, so that each has at least one pass.
        self.is_over = now >= *self.ends.get_or_insert(now + TURN);
    }

    /// Whether it was over at the last look.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use crate::{EngineKind, Switch, SwitchConfig};
    use millrace_pipeline::text;
    use std::sync::Arc;

    fn switch() -> Switch {
        let program = text::parse(
            "program t architecture test errors (NoError)
             ingress (ingress) egress ()
             intrinsic egress_spec = port
             metadata port: bit<32>
             body control ingress { block0: port = 32w1 end }",
        );
        let config = SwitchConfig { engine: EngineKind::Interp, ..SwitchConfig::default() };
        Switch::new(Arc::new(program.unwrap()), config).unwrap()
    }

    #[test]
    fn a_port_waits_until_what_came_in_on_it_before_is_done() {
        let mut switch = switch();
        switch.take_turns();
        assert!(!switch.traffic.holds_back(3));
        // A turn that is over at once.
        for port in [3, 5] {
            switch.receive(port, &[1, 2], None);
        }
        let turns = &mut switch.traffic.turns;
        (turns.is_over, turns.are_taken) = (true, true);
        switch.process();
        assert_eq!(
            (switch.traffic.holds_back(3), switch.traffic.holds_back(5), switch.traffic.holds_back(1)),
            (true, true, false)
        );
        assert_eq!(switch.go_on().sent.len(), 2);
        assert!(!switch.traffic.has_put_off() && !switch.traffic.holds_back(3));
    }
}
