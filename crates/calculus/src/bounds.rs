//! The bounds of all routes, each the least of several analyses.

use crate::network::{Network, RouteId};
use crate::outcome::{Cross, Method, Outcome, PathBound, ServerBound};
use crate::refusal::Refusal;
use crate::tandem::Tandems;
use crate::total_flow::{self, TotalFlow};
use crate::{pmoo, separated_flow};

/// What [`bounds`] found: each analysis by itself, and the least of them.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Each analysis, the total flow analysis first.
    pub outcomes: Vec<Outcome>,
}

/// Bounds of all routes and servers by the analyses that take no more than a fraction of a second: [`TotalFlow::BEST`], and separated flow
/// analysis and PMOO with its arrival curves of crossing flows.
pub fn bounds(network: &Network) -> Bounds {
    let tandems = Tandems::new(network);
    let separated = separated_flow::separated(&tandems, Cross::Total);
    let once = pmoo::once(&tandems, Cross::Total);
    Bounds { outcomes: vec![total_flow::outcome(network, TotalFlow::BEST, tandems.found), separated, once] }
}

impl Bounds {
    /// The least bound of a route, and by which analysis.
    ///
    /// # Errors
    /// Why there is none: what the first analysis says.
    pub fn best(&self, network: &Network, route: RouteId) -> Result<(Method, PathBound), &Refusal> {
        let found = self
            .outcomes
            .iter()
            .filter_map(|it| it.path(network, route).ok().map(|bound| (it.method, bound)));
        match found.min_by_key(|(_, bound)| bound.delay) {
            Some(best) => Ok(best),
            None => Err(self.outcomes[0].path(network, route).expect_err("no analysis has a bound")),
        }
    }

    /// The bounds of each server.
    pub fn servers(&self) -> &[Result<ServerBound, Refusal>] {
        &self.outcomes[0].servers
    }
}
