//! The worst case of a route as a linear program: FIFO servers in a row, their service, their order and all arrival curves as inequalities
//! over a few dates.
//!
//! The last bit of a frame leaves the last server at date 0. It arrived there at an earlier date, before which everything that left until 0 had
//! arrived (FIFO), and some earlier date still is the one from which the service curve counts. Both are dates at which the server before sent;
//! each of these has a date of arrival there, and the earliest a service date too, and so on to the first server. How much of each flow had
//! arrived by each date is a variable. The largest time between the first and the last date of the bit is the bound.
//!
//! docs/dev/network-bounds.md has the theorems, and what is changed for frames.

use std::collections::HashMap;

use crate::curve::{self, Line};
use crate::deviation::{LONGEST, Service};
use crate::network::{Network, RouteId, Scheduler, ServerId, Transfer};
use crate::outcome::PathBound;
use crate::pmoo::{Finder, Run, strict};
use crate::program::{Kind, MAX_COEFFICIENTS, Program, clamp};
use crate::refusal::Refusal;
use crate::separated_flow::conclude;
use crate::tandem::{self, Tandems};
use crate::total_flow;
use crate::units::{self, Data, Ps};

/// Bounds of single routes of a network by linear programs.
pub struct LinearPrograms<'a> {
    tandems: Tandems<'a>,
}

impl<'a> LinearPrograms<'a> {
    /// Analyses what crosses the routes.
    pub fn new(network: &'a Network) -> LinearPrograms<'a> {
        LinearPrograms { tandems: Tandems::new(network) }
    }

    /// The bound of a route. It can take some seconds.
    ///
    /// # Errors
    /// Why there is none. A server whose technological latency varies, or that is not first in, first out within a level, has no such program.
    ///
    /// # Panics
    /// If the route is not one of the network.
    pub fn bound(&self, route: RouteId) -> Result<PathBound, Refusal> {
        let network = self.tandems.network;
        let hops = network.hops_of(route);
        if let Some(refusal) = total_flow::refused(network, hops, &self.tandems.found) {
            return Err(refusal);
        }
        for &hop in hops {
            let server = network.hops[hop as usize].server as usize;
            let refused = |needs| Err(Refusal::NotApplicable { server: ServerId(server), needs });
            if tandem::variable(network, server) != 0 {
                return refused("a technological latency that is the same for all frames");
            }
            if network.servers()[server].scheduler == Scheduler::Arbitrary {
                return refused("first in, first out within a level");
            }
        }
        let mut best: Option<Ps> = None;
        let mut refusal = None;
        for piece in 0..self.tandems.pieces(hops) {
            match self.tandem(hops, piece).and_then(|tandem| tandem.program().bound()) {
                Ok(delay) => best = Some(best.map_or(delay, |best| best.min(delay))),
                Err(it) => refusal = Some(it),
            }
        }
        let Some(best) = best else { return Err(refusal.expect("at least one was tried")) };
        let latency =
            |&hop: &u32| network.servers()[network.hops[hop as usize].server as usize].latency.lowest;
        conclude(
            &self.tandems,
            route,
            Some(best + hops.iter().map(latency).map(|it| Ps::from(it.ps())).sum::<Ps>()),
        )
    }

    fn tandem(&self, hops: &[u32], piece: usize) -> Result<Tandem, Refusal> {
        let network = self.tandems.network;
        let first = ServerId(network.hops[hops[0] as usize].server as usize);
        let services = strict(&self.tandems, hops, piece, false).ok_or(Refusal::TooLate(first))?;
        let mut busy = Vec::with_capacity(hops.len());
        for (&hop, service) in hops.iter().zip(&services) {
            let line = self.tandems.level(hop).own;
            let spare = service.rate - line.rate;
            if spare <= 0 {
                let server = ServerId(network.hops[hop as usize].server as usize);
                return Err(Refusal::NotApplicable { server, needs: "less load than 100 %" });
            }
            busy.push(units::div_up(line.burst + service.rate * service.latency, spare));
            if busy.last().is_some_and(|&time| time > LONGEST) {
                return Err(Refusal::TooMuch("a server can be busy for more than 1000 s"));
            }
        }
        let delays = hops.iter().map(|&hop| {
            let lowest = network.servers()[network.hops[hop as usize].server as usize].latency.lowest;
            self.tandems.found.delay[hop as usize] - Ps::from(lowest.ps())
        });
        let delays = delays.collect::<Vec<_>>();
        let mut finder = Finder::new(network);
        let mut runs = finder.find(&self.tandems, hops, &hops[..1])?;
        runs.insert(0, Run { from: 0, to: hops.len() - 1, hops: vec![hops[0]] });
        let horizon = delays.iter().sum();
        let crossings = runs.iter().flat_map(|run| self.by_input(run, horizon)).collect::<Vec<_>>();
        let size = crossings.iter().map(|it| it.coefficients(hops.len())).sum::<usize>();
        if size > MAX_COEFFICIENTS {
            return Err(Refusal::TooMuch("the linear program is too large"));
        }
        let links = hops.iter().map(|&hop| link(network, network.hops[hop as usize].server)).collect();
        Ok(Tandem { services, busy, delays, links, crossings })
    }

    /// The flows of a run, those that come by the same link together.
    fn by_input(&self, run: &Run, horizon: Ps) -> Vec<Crossing> {
        let network = self.tandems.network;
        let mut hops = run.hops.clone();
        hops.sort_by_key(|&hop| network.input(hop));
        let together = hops.chunk_by(|&one, &other| network.input(one) == network.input(other));
        let crossing = |hops: &[u32]| {
            let mut lines =
                HORIZONS.iter().map(|part| self.line(hops, Some(horizon * part / 8))).collect::<Vec<_>>();
            lines.push(self.line(hops, None));
            lines.dedup();
            let frame = match network.transfer() {
                Transfer::Frames => total_flow::blocking(network, hops),
                Transfer::Fluid => 0,
            };
            let input = network.input(hops[0]).map(|input| (input, link(network, input)));
            Crossing { from: run.from, to: run.to, lines, frame, input }
        };
        together.map(crossing).collect()
    }

    /// The sum of the token buckets that allow least in a time, or in the long run.
    fn line(&self, hops: &[u32], time: Option<Ps>) -> Line {
        let mut sum = Line::default();
        for &hop in hops {
            let arrival =
                &self.tandems.network.flows()[self.tandems.network.hops[hop as usize].flow as usize].arrival;
            let shift = self.tandems.found.shift[hop as usize];
            sum.add(time.map_or_else(
                || curve::long_term_line(arrival, shift),
                |time| curve::least_line(arrival, shift, time),
            ));
        }
        sum
    }
}

/// For which times a sum of arrival curves is to be described best, in eighths of the sum of all delays.
const HORIZONS: [Ps; 5] = [0, 1, 2, 4, 8];

fn link(network: &Network, server: u32) -> Option<i128> {
    network.servers()[server as usize].link.rate.map(units::rate)
}

/// Flows that join the route at one place by the same link and leave it at one place.
struct Crossing {
    from: usize,
    to: usize,
    /// Each bounds their sum where they join.
    lines: Vec<Line>,
    /// The largest frame.
    frame: Data,
    /// The server before, and the rate of its link.
    input: Option<(u32, Option<i128>)>,
}

impl Crossing {
    /// About how many coefficients it has in a program of so many servers: four for each line and each pair of dates, and two for each
    /// server and pair of dates.
    fn coefficients(&self, servers: usize) -> usize {
        let dates = servers - self.from + 1;
        dates * (dates - 1) / 2 * (4 * self.lines.len() + 2 * (self.to - self.from + 1))
    }
}

/// Servers in a row and what passes them; the first crossing is the flow itself.
struct Tandem {
    services: Vec<Service>,
    /// Of each server, the longest time over which its service can count.
    busy: Vec<Ps>,
    /// Of each server, the largest delay.
    delays: Vec<Ps>,
    /// Of each server, the rate of its link.
    links: Vec<Option<i128>>,
    crossings: Vec<Crossing>,
}

/// The variables of a program: the dates of arrival at each server, and how much of each crossing had arrived. Date number u of a server is
/// when that arrived which left it at date u of the server after it; the last is its service date, for the last of those.
struct Dates {
    arrivals: Vec<Vec<Option<usize>>>,
    /// Of each crossing what had arrived by date u of the server where it joins, and, as FIFO servers keep the order, of each on its way. What had
    /// arrived by the last date is taken as 0.
    data: Vec<Vec<Option<usize>>>,
}

impl Tandem {
    /// How many dates of arrival a server has: one for each date at which something leaves it, and the service date.
    fn dates(&self, server: usize) -> usize {
        self.services.len() - server + 1
    }

    fn program(&self) -> Program {
        let rate = self
            .services
            .iter()
            .map(|service| service.rate)
            .chain(self.links.iter().flatten().copied())
            .max();
        let mut program = Program::new(rate.unwrap_or(1));
        let dates = self.variables(&mut program);
        self.order(&mut program, &dates);
        self.service(&mut program, &dates);
        self.arrivals(&mut program, &dates);
        self.shaping(&mut program, &dates);
        // From the arrival of the bit at the first server to date 0, at which it leaves the last.
        program.maximise(&[(dates.arrivals[0][0].expect("only date 0 is no variable"), -1)]);
        program
    }

    fn variables(&self, program: &mut Program) -> Dates {
        let mut earliest = 0;
        let mut arrivals = vec![Vec::new(); self.services.len()];
        for server in (0..self.services.len()).rev() {
            earliest -= self.busy[server].max(self.delays[server]);
            arrivals[server] =
                (0..self.dates(server)).map(|_| Some(program.variable(Kind::Time, earliest, 0))).collect();
        }
        let data = self.crossings.iter().map(|crossing| {
            let most = crossing
                .lines
                .iter()
                .map(|line| line.rate.saturating_mul(-earliest).saturating_add(line.burst))
                .min()
                .unwrap_or(0);
            let last = self.dates(crossing.from) - 1;
            let variable = |date| (date < last).then(|| program.variable(Kind::Data, 0, clamp(most)));
            (0..=last).map(variable).collect()
        });
        let data = data.collect();
        Dates { arrivals, data }
    }

    /// The dates at which what arrived at a server at its dates left it. The last server has one, date 0, which is no variable.
    fn departures<'d>(&self, dates: &'d Dates, server: usize) -> &'d [Option<usize>] {
        dates.arrivals.get(server + 1).map_or(&[None], Vec::as_slice)
    }

    /// What is earlier and what is less; and that nothing is in a server for longer than its delay.
    fn order(&self, program: &mut Program, dates: &Dates) {
        for server in 0..self.services.len() {
            let arrivals = &dates.arrivals[server];
            for pair in arrivals.windows(2) {
                program.at_most(Kind::Time, &[(pair[1], 1), (pair[0], -1)], 0);
            }
            for (&departure, &arrival) in self.departures(dates, server).iter().zip(arrivals) {
                program.at_most(Kind::Time, &[(arrival, 1), (departure, -1)], 0);
                program.at_most(Kind::Time, &[(departure, 1), (arrival, -1)], self.delays[server]);
            }
        }
        for data in &dates.data {
            for pair in data.windows(2) {
                program.at_most(Kind::Data, &[(pair[1], 1), (pair[0], -1)], 0);
            }
        }
    }

    /// Between its service date and the last date at which it sent, each server served at least its service curve.
    fn service(&self, program: &mut Program, dates: &Dates) {
        for (server, service) in self.services.iter().enumerate() {
            let last = self.dates(server) - 1;
            let (departure, start) = (self.departures(dates, server)[last - 1], dates.arrivals[server][last]);
            let mut terms = vec![(departure, service.rate), (start, -service.rate)];
            for (crossing, data) in self.crossings.iter().zip(&dates.data) {
                if (crossing.from..=crossing.to).contains(&server) {
                    terms.extend([(data[last - 1], -1), (data[last], 1)]);
                }
            }
            program.at_most(Kind::Data, &terms, service.rate * service.latency);
            program.at_most(Kind::Time, &[(departure, 1), (start, -1)], self.busy[server]);
        }
    }

    /// Between any two dates, no more of a crossing arrived than its arrival curves allow.
    fn arrivals(&self, program: &mut Program, dates: &Dates) {
        for (crossing, data) in self.crossings.iter().zip(&dates.data) {
            let arrivals = &dates.arrivals[crossing.from];
            for (late, early) in pairs(arrivals.len()) {
                for line in &crossing.lines {
                    let terms = [
                        (data[late], 1),
                        (data[early], -1),
                        (arrivals[late], -line.rate),
                        (arrivals[early], line.rate),
                    ];
                    program.at_most(Kind::Data, &terms, line.burst);
                }
            }
        }
    }

    /// Between any two dates, no more arrived by a link than it can carry: by links from elsewhere, and by those of the route.
    fn shaping(&self, program: &mut Program, dates: &Dates) {
        let mut inputs: HashMap<(usize, u32), Vec<usize>> = HashMap::new();
        for (at, crossing) in self.crossings.iter().enumerate() {
            if let Some((input, Some(_))) = crossing.input {
                inputs.entry((crossing.from, input)).or_default().push(at);
            }
        }
        let mut inputs = inputs.into_iter().collect::<Vec<_>>();
        inputs.sort_unstable();
        for ((server, _), members) in inputs {
            let rate = self.crossings[members[0]].input.and_then(|(_, rate)| rate);
            self.link(program, dates, server, rate, &members);
        }
        for server in 1..self.services.len() {
            let all = 0..self.crossings.len();
            let members = all
                .filter(|&at| self.crossings[at].from < server && self.crossings[at].to >= server)
                .collect::<Vec<_>>();
            self.link(program, dates, server, self.links[server - 1], &members);
        }
    }

    fn link(
        &self,
        program: &mut Program,
        dates: &Dates,
        server: usize,
        rate: Option<i128>,
        members: &[usize],
    ) {
        let Some(rate) = rate else { return };
        let frame = members.iter().map(|&at| self.crossings[at].frame).max().unwrap_or(0);
        let arrivals = &dates.arrivals[server];
        for (late, early) in pairs(arrivals.len()) {
            let mut terms = vec![(arrivals[late], -rate), (arrivals[early], rate)];
            terms.extend(
                members.iter().flat_map(|&at| [(dates.data[at][late], 1), (dates.data[at][early], -1)]),
            );
            program.at_most(Kind::Data, &terms, frame);
        }
    }
}

/// All pairs of dates, the later one, which has the smaller number, first.
fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |late| (late + 1..count).map(move |early| (late, early)))
}
