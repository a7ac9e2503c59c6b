//! The nodes of a run side by side: what each one did, and how fast it is.
//!
//! Arms and instances differ far more than machines do, so speeds are compared only on what several nodes ran: the same arm on
//! the same instance under the same limit. The logarithm of what a run consumed is the effect of what it ran plus the
//! effect of its node, fitted by least squares.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::round::{Observation, Pull, Seen};

/// Speeds are fitted again when this part of the runs is new.
const REFIT: f64 = 0.1;
/// A node that ran less than this in common with others is not compared.
const LEAST_SHARED: f64 = 5.0;
/// Alternating steps of the fit.
const STEPS: usize = 30;
/// Differences above this are worth a warning.
const NOTABLE: f64 = 0.05;

/// What one node did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeRow {
    /// Its name.
    pub node: String,
    /// Pulls at a time in the last session that used it.
    pub slots: u64,
    /// Pulls that ended there.
    pub rounds: u64,
    /// Pulls that were lost with it.
    pub lost: u64,
    /// How it compares with the others, where they ran the same.
    pub pace: Option<Pace>,
}

/// How long a node takes, beside the mean of all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pace {
    /// What the same run consumes there: 1.2 is a fifth more than on the mean node.
    pub factor: f64,
    /// Standard error of the factor.
    pub error: f64,
    /// Runs that could be compared.
    pub runs: u64,
    /// Whether the node differs from the mean of the others by more than 5 %, and by more than chance explains.
    pub is_notable: bool,
}

/// A sum of logarithms.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Mean {
    fn value(&self) -> f64 {
        self.sum / self.count
    }
}

/// What was run: arm, limit, instance.
type Cell = (usize, u64, Option<u32>);

/// What every node did so far.
#[derive(Debug, Clone, Default)]
pub struct NodeStats {
    names: Vec<String>,
    places: HashMap<String, usize>,
    rounds: Vec<u64>,
    lost: BTreeMap<String, u64>,
    slots: BTreeMap<String, u64>,
    cells: HashMap<Cell, Vec<(usize, Mean)>>,
    /// In the order in which they were first run, so that sums do not depend on hashes.
    order: Vec<Cell>,
    runs: u64,
    fitted: u64,
    /// As of then.
    latest: Vec<Option<Pace>>,
}

impl NodeStats {
    /// A pull ended on a node.
    pub fn add(&mut self, node: &str, observation: &Observation) {
        let place = self.place(node);
        self.rounds[place] += 1;
        let Seen::Rewarded { consumption, .. } = observation.seen() else {
            return;
        };
        if consumption.is_nan() || consumption <= 0.0 {
            return;
        }
        let Pull {
            arm,
            limit,
            instance,
        } = observation.pull();
        let cell = (arm.index(), limit.get().to_bits(), instance);
        let order = &mut self.order;
        let means = self.cells.entry(cell).or_insert_with(|| {
            order.push(cell);
            vec![]
        });
        let at = means
            .iter()
            .position(|(of, _)| *of == place)
            .unwrap_or_else(|| {
                means.push((place, Mean::default()));
                means.len() - 1
            });
        let mean = &mut means[at].1;
        let log = consumption.ln();
        mean.count += 1.0;
        mean.sum += log;
        mean.squares += log * log;
        self.runs += 1;
        if self.names.len() > 1 && self.runs as f64 >= (1.0 + REFIT) * self.fitted as f64 {
            self.fitted = self.runs;
            self.latest = self.paces();
        }
    }

    /// A session uses this many slots of a node.
    pub fn set_slots(&mut self, node: &str, slots: u64) {
        self.slots.insert(node.to_owned(), slots);
    }

    /// A pull was lost with its node.
    pub fn add_lost(&mut self, node: &str) {
        *self.lost.entry(node.to_owned()).or_default() += 1;
    }

    /// By how much what runs consume on this node is divided to compare it with the others; from what is known so far.
    pub fn factor(&self, node: &str) -> f64 {
        let place = self.places.get(node);
        let pace = place.and_then(|place| *self.latest.get(*place)?);
        pace.map_or(1.0, |pace| pace.factor)
    }

    /// The same lines as [`rows`](Self::rows), with speeds that leave out some of the last runs: fast enough to be asked for
    /// several times a second.
    pub fn recent_rows(&self) -> Vec<NodeRow> {
        self.rows_with(&self.latest)
    }

    /// A line for every node; none if all pulls ran at home.
    pub fn rows(&self) -> Vec<NodeRow> {
        self.rows_with(&self.paces())
    }

    fn rows_with(&self, paces: &[Option<Pace>]) -> Vec<NodeRow> {
        let all: BTreeSet<&String> = (self.names.iter())
            .chain(self.lost.keys())
            .chain(self.slots.keys())
            .collect();
        let count = |of: &BTreeMap<String, u64>, name: &str| of.get(name).copied().unwrap_or(0);
        let row = |name: &String| {
            let place = self.places.get(name);
            NodeRow {
                node: name.clone(),
                slots: count(&self.slots, name),
                rounds: place.map_or(0, |place| self.rounds[*place]),
                lost: count(&self.lost, name),
                pace: place.and_then(|place| *paces.get(*place)?),
            }
        };
        all.into_iter().map(row).collect()
    }

    fn place(&mut self, node: &str) -> usize {
        if let Some(place) = self.places.get(node) {
            return *place;
        }
        self.names.push(node.to_owned());
        self.rounds.push(0);
        self.places.insert(node.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// The speed of every node that ran enough in common with others.
    fn paces(&self) -> Vec<Option<Pace>> {
        let nodes = self.names.len();
        let shared: Vec<&Vec<(usize, Mean)>> = self
            .order
            .iter()
            .map(|cell| &self.cells[cell])
            .filter(|means| means.len() > 1)
            .collect();
        // What a node's runs weigh: those of a cell that one node ran almost alone say little.
        let mut weights = vec![0.0; nodes];
        let mut runs = vec![0.0; nodes];
        for means in &shared {
            let all: f64 = means.iter().map(|(_, mean)| mean.count).sum();
            for (node, mean) in *means {
                weights[*node] += mean.count * (1.0 - mean.count / all);
                runs[*node] += mean.count;
            }
        }
        let is_compared = |node: usize| weights[node] >= LEAST_SHARED;
        let compared = (0..nodes).filter(|node| is_compared(*node)).count();
        if compared < 2 {
            return vec![None; nodes];
        }
        let mut effects = vec![0.0; nodes];
        let mut left = (0.0, 0.0);
        for step in 0..=STEPS {
            let mut sums = vec![(0.0, 0.0); nodes];
            left = (0.0, 0.0);
            for means in &shared {
                let all: f64 = means.iter().map(|(_, mean)| mean.count).sum();
                let of_cell: f64 = means
                    .iter()
                    .map(|(node, mean)| mean.count * (mean.value() - effects[*node]))
                    .sum();
                let cell = of_cell / all;
                for (node, mean) in *means {
                    sums[*node].0 += mean.count;
                    sums[*node].1 += mean.count * (mean.value() - cell);
                    let expected = cell + effects[*node];
                    left.0 +=
                        mean.squares - 2.0 * expected * mean.sum + mean.count * expected * expected;
                }
                left.1 += all - 1.0;
            }
            if step < STEPS {
                for (effect, (count, sum)) in effects.iter_mut().zip(&sums) {
                    *effect = if *count > 0.0 { sum / count } else { 0.0 };
                }
                let known = effects
                    .iter()
                    .enumerate()
                    .filter(|(node, _)| is_compared(*node));
                let middle = known.map(|(_, effect)| effect).sum::<f64>() / compared as f64;
                for effect in &mut effects {
                    *effect -= middle;
                }
            }
        }
        let variance = left.0.max(0.0) / (left.1 - (compared - 1) as f64).max(1.0);
        // The mean node includes the node itself. The others alone are farther away: with two nodes, twice as far.
        let from_others = compared as f64 / (compared - 1) as f64;
        (0..nodes)
            .map(|node| {
                is_compared(node).then(|| {
                    let factor = effects[node].exp();
                    let error = (variance / weights[node]).sqrt();
                    let is_large = (effects[node] * from_others).abs() > (1.0 + NOTABLE).ln();
                    Pace {
                        factor,
                        error: factor * error,
                        runs: runs[node] as u64,
                        is_notable: is_large && effects[node].abs() > 3.0 * error,
                    }
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::round::{ArmId, Limit};

    fn run(nodes: &mut NodeStats, node: &str, arm: usize, seconds: f64) {
        let pull = Pull {
            arm: ArmId::from_index(arm),
            limit: Limit::new(100.0).unwrap(),
            instance: Some(0),
        };
        let seen = if seconds <= 100.0 {
            Observation::ended(pull, 1.0, seconds).unwrap()
        } else {
            Observation::censored(pull, 100.0).unwrap()
        };
        nodes.add(node, &seen);
    }

    /// Arms differ a thousandfold and run more often on one node than on the other; the node is a fifth slower.
    #[test]
    fn a_slower_node_is_found_whatever_it_ran() {
        let mut rng = Pcg64Mcg::seed_from_u64(3);
        let mut nodes = NodeStats::default();
        for round in 0..400 {
            let arm = rng.random_range(0..20_usize);
            let own = 0.01 * 1.4_f64.powi(i32::try_from(arm).unwrap());
            let is_slow = rng.random_range(0..20_usize) < arm || round < 2;
            let noise = rng.random_range(0.9..1.1);
            let (node, pace) = if is_slow {
                ("slow", 1.2)
            } else {
                ("fast", 1.0)
            };
            run(&mut nodes, node, arm, own * noise * pace);
        }
        let rows = nodes.rows();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].rounds + rows[1].rounds, 400);
        let (fast, slow) = (rows[0].pace.unwrap(), rows[1].pace.unwrap());
        let ratio = slow.factor / fast.factor;
        assert!((ratio - 1.2).abs() < 0.03, "{ratio}");
        assert!(slow.error < 0.02 && slow.is_notable, "{slow:?}");
        let used = nodes.factor("slow") / nodes.factor("fast");
        assert!((used - 1.2).abs() < 0.05, "{used}");
        assert!((nodes.factor("unknown") - 1.0).abs() < f64::EPSILON);
    }

    /// Two nodes that differ by 8 % are each 4 % away from their mean.
    #[test]
    fn a_small_difference_between_two_nodes_is_notable() {
        let notable = |slower: f64| {
            let mut nodes = NodeStats::default();
            for round in 0..200_u32 {
                let noise = 1.0 + 0.01 * f64::from(round / 2 % 3);
                run(&mut nodes, "fast", 0, noise);
                run(&mut nodes, "slow", 0, slower * noise);
            }
            let rows = nodes.rows();
            rows.iter().any(|row| row.pace.unwrap().is_notable)
        };
        assert!(notable(1.08));
        assert!(!notable(1.04));
    }

    #[test]
    fn equal_nodes_are_not_blamed_and_what_differs_is_not_compared() {
        let mut rng = Pcg64Mcg::seed_from_u64(4);
        let mut nodes = NodeStats::default();
        for _ in 0..300 {
            let arm = rng.random_range(0..5_usize);
            let node = ["a", "b", "c"][rng.random_range(0..3_usize)];
            run(&mut nodes, node, arm, rng.random_range(0.5..1.5));
        }
        nodes.add_lost("b");
        nodes.add_lost("never");
        let rows = nodes.rows();
        assert!(
            rows[..3].iter().all(|row| !row.pace.unwrap().is_notable),
            "{rows:?}"
        );
        assert_eq!((rows[1].lost, rows[3].lost, rows[3].pace), (1, 1, None));
        let mut apart = NodeStats::default();
        for arm in 0..50 {
            run(&mut apart, ["a", "b"][arm % 2], arm, 1.0 + arm as f64);
        }
        assert!(apart.rows().iter().all(|row| row.pace.is_none()));
    }
}
