//! Runs of configurations that were not recorded, made from the runs of those that were.
//!
//! One small forest per instance is fitted on the recorded arms' log times, when the instance is first met. A configuration
//! ends in a leaf of one of its trees, and one of the recorded runs in that leaf becomes its run: ended, unsolved or failed,
//! as it was. Tree and run are chosen by a hash of seed, configuration and instance, so the same configuration always meets
//! the same run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use captime_forest::{Dataset, Forest, Params, Stop, fit_until};
use captime_forest::{FitError, FitOutcome};
use serde::{Deserialize, Serialize};

use super::cell::RecordedRun;
use super::{Recorded, Spec};
use crate::regular_file;
use crate::round::{ArmId, Limit, Price, Pull, Round};
use crate::simulated::{Ran, TargetError, VirtualTarget};
use crate::space::{Configuration, Parameter, Space, Value};

/// How many trees a forest has: enough to draw from, few enough to fit in milliseconds.
const TREES: usize = 10;
/// A node of at most this many recorded arms is not split.
const LEAF: usize = 5;
/// Runs that differ by less than this many seconds count as equal.
const LEAST: f64 = 1e-3;

/// A surrogate as a scenario asks for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurrogateSpec {
    /// The recorded runs.
    #[serde(flatten)]
    pub runs: Spec,
    /// `arms:` a CSV file with the configuration of every recorded arm, in the order of the matrix.
    pub arms: PathBuf,
    /// `seed:` another one gives other luck to every configuration.
    pub seed: u64,
}

/// A target in virtual time for any configuration.
pub struct Surrogate {
    recorded: Recorded,
    features: Features,
    /// One for each instance, fitted when it is first met.
    forests: Vec<OnceLock<Vec<Tree>>>,
    /// The arms that are known by their numbers.
    arms: Space,
    seed: u64,
}

/// One tree, with the recorded arms in each of its leaves.
struct Tree {
    forest: Forest,
    /// By the value of the leaf. Leaves of equal values are as good as one.
    leaves: HashMap<u64, Vec<u32>>,
}

impl Surrogate {
    /// Reads the recorded runs and their configurations. `arms` are those that pulls name by number, and their parameters are
    /// the ones that count.
    pub fn open(
        spec: &SurrogateSpec,
        arms: &Space,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Option<Self>, TargetError> {
        let recorded = Recorded::open(&spec.runs)?;
        let names: Vec<&str> = arms.parameters().iter().map(Parameter::name).collect();
        let columns = read_columns(&spec.arms, &names)?;
        let found = columns.first().map_or(0, |column| column.cells.len());
        if found != recorded.arms.len() {
            return Err(TargetError::ArmCount {
                path: spec.runs.consumption.clone(),
                found: recorded.arms.len(),
                expected: found,
            });
        }
        let recorded = recorded.with_instances_where(is_wanted);
        Ok(recorded.map(|recorded| Self::new(recorded, &columns, arms.clone(), spec.seed)))
    }

    fn new(recorded: Recorded, columns: &[Column], arms: Space, seed: u64) -> Self {
        Self {
            forests: recorded.instances.iter().map(|_| OnceLock::new()).collect(),
            features: Features::of(columns),
            recorded,
            arms,
            seed,
        }
    }

    /// The recorded runs that all others are made from.
    pub fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// The runs of these arms on every instance, as if they had been recorded.
    #[must_use]
    pub fn tabulated(&self, arms: &Space) -> Recorded {
        let rows: Vec<(Vec<f64>, String)> = arms
            .arms()
            .map(|arm| arms.configuration(arm))
            .map(|one| (self.features.row(&one), plain(&one)))
            .collect();
        let cells: Vec<Vec<RecordedRun>> = (0..self.recorded.instances.len())
            .flat_map(|instance| rows.iter().map(move |row| (instance, row)))
            .map(|(instance, (row, words))| vec![self.drawn(row, words, instance)])
            .collect();
        let names = arms.arms().map(|arm| arm.to_string()).collect();
        let instances = self.recorded.instances.clone();
        Recorded::new(names, instances, &cells, self.recorded.cutoff)
    }

    /// The run of a configuration on an instance.
    fn drawn(&self, row: &[f64], words: &str, instance: usize) -> RecordedRun {
        let name = &self.recorded.instances[instance];
        let trees = self.forests[instance].get_or_init(|| self.fitted(instance));
        let hash = hash(self.seed, words, name);
        // Without a tree all arms are alike; and every leaf holds an arm that the tree was grown on.
        let tree = trees.get((hash % TREES as u64) as usize);
        let alike = tree.and_then(|tree| {
            let leaf = tree.forest.predict_values(row, row.len());
            tree.leaves.get(&leaf.first()?.to_bits())
        });
        let arm = match alike {
            Some(alike) => u64::from(alike[(hash / 64 % alike.len() as u64) as usize]),
            None => hash / 64 % self.recorded.arms.len() as u64,
        };
        let runs = self.recorded.cell(arm as usize, instance);
        runs[(hash >> 40) as usize % runs.len()]
    }

    fn fitted(&self, instance: usize) -> Vec<Tree> {
        let arms = self.recorded.arms.len();
        let y: Vec<f64> = (0..arms)
            .map(|arm| self.recorded.log_time(arm, instance))
            .collect();
        // Nothing to learn, as on an instance that no arm solved.
        if y.iter().all(|time| *time == y[0]) {
            return vec![];
        }
        let rows: Vec<u32> = (0..arms as u32).collect();
        let columns = self.features.table.clone();
        let width = columns.len();
        let data = Dataset::from_columns(columns, "log_time", y, vec![])
            .expect("the columns are as long as there are arms, and times are finite and differ");
        let first = hash(self.seed, "", &self.recorded.instances[instance]);
        let tree = |number: u64| {
            let params = Params {
                trees: 1,
                mtry: Some(width.div_ceil(2)),
                min_node_size: Some(LEAF),
                seed: first.wrapping_add(number),
                ..Params::default()
            };
            let grown: Result<_, FitError> = fit_until(&data, &rows, &params, &Stop::new(), None);
            let Ok(FitOutcome::Done { forest, .. }) = grown else {
                unreachable!("nothing stops this fit, and its parameters are fine");
            };
            let mut leaves: HashMap<u64, Vec<u32>> = HashMap::new();
            for (row, leaf) in (0..).zip(forest.predict(&data, &rows)) {
                leaves.entry(leaf.to_bits()).or_default().push(row);
            }
            Tree { forest, leaves }
        };
        (0..TREES as u64).map(tree).collect()
    }

    /// PAR10 of a configuration.
    pub fn par10(&self, configuration: &Configuration) -> f64 {
        self.average(configuration, |run| run.par10(self.recorded.cutoff))
    }

    /// What a configuration gains under a limit.
    pub fn gain_of(&self, configuration: &Configuration, limit: Limit, price: &Price) -> f64 {
        self.average(configuration, |run| run.gain(limit, price))
    }

    fn average(&self, configuration: &Configuration, of: impl Fn(&RecordedRun) -> f64) -> f64 {
        let (row, words) = (self.features.row(configuration), plain(configuration));
        let instances = 0..self.recorded.instances.len();
        let runs = instances.map(|instance| of(&self.drawn(&row, &words, instance)));
        runs.sum::<f64>() / self.recorded.instances.len() as f64
    }
}

impl VirtualTarget for Surrogate {
    fn arms(&self) -> usize {
        self.arms.len()
    }

    fn instances(&self) -> usize {
        self.recorded.instances.len()
    }

    fn instance_names(&self) -> &[String] {
        &self.recorded.instances
    }

    fn with_instance(&self, seed: u64, round: Round, pull: Pull) -> Pull {
        self.recorded.with_instance(seed, round, pull)
    }

    fn run(&self, seed: u64, round: Round, pull: Pull) -> Ran {
        self.run_configuration(seed, round, pull, &self.arms.configuration(pull.arm))
    }

    fn run_configuration(
        &self,
        seed: u64,
        round: Round,
        pull: Pull,
        configuration: &Configuration,
    ) -> Ran {
        let pull = self.with_instance(seed, round, pull);
        let instance = pull.instance.map_or(0, |instance| instance as usize);
        let row = self.features.row(configuration);
        self.drawn(&row, &plain(configuration), instance).ran(pull)
    }

    fn gain(&self, arm: ArmId, limit: Limit, price: &Price) -> f64 {
        self.gain_of(&self.arms.configuration(arm), limit, price)
    }

    fn censored(&self, arm: ArmId, limit: Limit) -> f64 {
        let configuration = self.arms.configuration(arm);
        self.average(&configuration, |run| f64::from(!run.is_rewarded(limit)))
    }
}

impl Recorded {
    /// The mean log time of a cell; ten cutoffs where it brought nothing.
    fn log_time(&self, arm: usize, instance: usize) -> f64 {
        let cell = self.cell(arm, instance);
        let seconds = |run: &RecordedRun| match run {
            RecordedRun::Ended { consumption, .. } => consumption.max(LEAST * self.cutoff.min(1.0)),
            RecordedRun::Unsolved | RecordedRun::Failed { .. } => 10.0 * self.cutoff,
        };
        cell.iter().map(|run| seconds(run).ln()).sum::<f64>() / cell.len() as f64
    }

    fn with_arms(&self, kept: &[usize]) -> Self {
        let cells: Vec<Vec<RecordedRun>> = (0..self.instances.len())
            .flat_map(|instance| {
                kept.iter()
                    .map(move |arm| self.cell(*arm, instance).to_vec())
            })
            .collect();
        let names = kept.iter().map(|arm| self.arms[*arm].clone()).collect();
        Self::new(names, self.instances.clone(), &cells, self.cutoff)
    }
}

/// One parameter of the recorded arms; a cell is none where an arm does not have it.
struct Column {
    name: String,
    cells: Vec<Option<Value>>,
}

/// The columns of these names in a CSV file of configurations. Others do not matter.
fn read_columns(path: &Path, names: &[&str]) -> Result<Vec<Column>, TargetError> {
    let unreadable = |error: std::io::Error| TargetError::Unreadable {
        path: path.into(),
        reason: error.to_string(),
    };
    let bad = |error: csv::Error| TargetError::BadLine {
        path: path.into(),
        line: error.position().map_or(1, csv::Position::line),
        reason: error.to_string(),
    };
    let file = regular_file::open(path).map_err(unreadable)?;
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(file);
    let header = reader.headers().map_err(bad)?.clone();
    let place = |name: &&str| {
        let place = header.iter().position(|known| known == *name);
        place.ok_or_else(|| TargetError::NoColumn {
            path: path.into(),
            name: (*name).to_owned(),
        })
    };
    let places: Vec<usize> = names.iter().map(place).collect::<Result<_, _>>()?;
    let mut columns: Vec<Column> = names
        .iter()
        .map(|name| Column {
            name: (*name).to_owned(),
            cells: vec![],
        })
        .collect();
    for record in reader.records() {
        let record = record.map_err(bad)?;
        for (column, place) in columns.iter_mut().zip(&places) {
            let cell = record
                .get(*place)
                .filter(|cell| !matches!(*cell, "" | "NA"));
            column.cells.push(cell.map(Value::read));
        }
    }
    Ok(columns)
}

/// Configurations as rows of numbers: numbers as they are, one column for each word of a parameter that has any; what is
/// absent is missing.
struct Features {
    known: Vec<(String, Option<Vec<String>>)>,
    table: Vec<(String, Vec<f64>)>,
}

impl Features {
    fn of(columns: &[Column]) -> Self {
        let mut features = Self {
            known: vec![],
            table: vec![],
        };
        for Column { name, cells } in columns {
            let given = || cells.iter().flatten();
            let are_numbers = given().all(|value| value.number().is_some());
            let words = (!are_numbers).then(|| {
                let mut words: Vec<String> = given().map(ToString::to_string).collect();
                words.sort();
                words.dedup();
                words
            });
            let is_it = |word: &str| {
                let cell = |cell: &Option<Value>| feature(cell.as_ref(), Some(word));
                (format!("{name}={word}"), cells.iter().map(cell).collect())
            };
            if let Some(words) = &words {
                features.table.extend(words.iter().map(|word| is_it(word)));
            } else {
                let cell = |cell: &Option<Value>| feature(cell.as_ref(), None);
                let numbers = cells.iter().map(cell).collect();
                features.table.push((name.clone(), numbers));
            }
            features.known.push((name.clone(), words));
        }
        features
    }

    fn row(&self, configuration: &Configuration) -> Vec<f64> {
        let mut row = Vec::with_capacity(self.table.len());
        for (name, words) in &self.known {
            let value = configuration.get(name);
            match words {
                Some(words) => row.extend(words.iter().map(|word| feature(value, Some(word)))),
                None => row.push(feature(value, None)),
            }
        }
        row
    }
}

/// A number, or whether it is this word.
fn feature(value: Option<&Value>, word: Option<&str>) -> f64 {
    match (value, word) {
        (None, _) => f64::NAN,
        (Some(value), None) => value.number().unwrap_or(f64::NAN),
        (Some(Value::Text(text)), Some(word)) => f64::from(**text == *word),
        (Some(value), Some(word)) => f64::from(value.to_string() == word),
    }
}

/// A configuration in words that do not depend on the order of parameters.
fn plain(configuration: &Configuration) -> String {
    let mut words: Vec<String> = configuration
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    words.sort();
    words.join("\n")
}

fn hash(seed: u64, configuration: &str, instance: &str) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(&(configuration.len() as u64).to_le_bytes());
    hasher.update(configuration.as_bytes());
    hasher.update(instance.as_bytes());
    let bytes = hasher.finalize();
    u64::from_le_bytes(*bytes.as_bytes().first_chunk().unwrap_or(&[0; 8]))
}

/// How well made-up runs rank arms that were left out: Spearman's correlation of their PAR10 with the true one.
///
/// Arms are left out in this many parts, each once; the others make their runs. `arms` has the parameters that count, and
/// the configurations of the recorded arms in their order.
pub fn fidelity(recorded: &Recorded, arms: &Space, parts: usize, seed: u64) -> f64 {
    let (mut truth, mut made) = (vec![], vec![]);
    for part in 0..parts {
        let (out, kept): (Vec<usize>, Vec<usize>) =
            (0..recorded.arms.len()).partition(|arm| arm % parts == part);
        let listed = |kept: &[usize]| {
            let arms_of = kept
                .iter()
                .map(|arm| arms.configuration(ArmId::from_index(*arm)));
            arms_of.collect::<Vec<_>>()
        };
        let (left_out, known) = (listed(&out), listed(&kept));
        let columns: Vec<Column> = (arms.parameters().iter())
            .map(|parameter| Column {
                name: parameter.name().to_owned(),
                cells: (known.iter())
                    .map(|one| one.get(parameter.name()).cloned())
                    .collect(),
            })
            .collect();
        let surrogate = Surrogate::new(recorded.with_arms(&kept), &columns, arms.clone(), seed);
        for (arm, configuration) in out.into_iter().zip(&left_out) {
            let arm = ArmId::from_index(arm);
            truth.push(recorded.par10(arm));
            made.push(surrogate.par10(configuration));
        }
    }
    rank_correlation(&truth, &made)
}

/// Spearman's correlation; equal values share their rank.
fn rank_correlation(one: &[f64], other: &[f64]) -> f64 {
    let ranks = |values: &[f64]| {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut ranks = vec![0.0; values.len()];
        let mut from = 0;
        while from < order.len() {
            let alike = order[from..]
                .iter()
                .take_while(|place| values[**place] == values[order[from]]);
            let count = alike.count();
            for place in &order[from..from + count] {
                ranks[*place] = from as f64 + (count - 1) as f64 / 2.0;
            }
            from += count;
        }
        ranks
    };
    let (a, b) = (ranks(one), ranks(other));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let sum = |x: &[f64], y: &[f64]| {
        x.iter()
            .zip(y)
            .map(|(x, y)| (x - mean) * (y - mean))
            .sum::<f64>()
    };
    sum(&a, &b) / (sum(&a, &a) * sum(&b, &b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Parameter;

    /// Arms from a grid whose times depend on both parameters, on eight instances.
    fn made() -> (Recorded, Space) {
        let numbers = |count: i64| (0..count).map(Value::Integer).collect();
        let words = ["a", "b", "c"].map(|word| Value::Text(word.into())).into();
        let parameters = vec![Parameter::new("x", numbers(40)), Parameter::new("w", words)];
        let space = Space::grid(parameters, &[], &[]).unwrap();
        let cells = (0..8_usize)
            .flat_map(|instance| (0..space.len()).map(move |arm| (instance, arm / 3, arm % 3)))
            .map(|(instance, x, word)| {
                let seconds =
                    (0.1 * x as f64 + word as f64).exp() / 20.0 * (1.0 + instance as f64 / 8.0);
                // No arm solves the last instance.
                vec![if seconds > 10.0 || instance == 7 {
                    RecordedRun::Unsolved
                } else {
                    RecordedRun::Ended {
                        consumption: seconds,
                        reward: 1.0,
                    }
                }]
            })
            .collect::<Vec<_>>();
        let names = space.arms().map(|arm| arm.to_string()).collect();
        let instances = (0..8).map(|instance| format!("i{instance}")).collect();
        (Recorded::new(names, instances, &cells, 10.0), space)
    }

    fn surrogate(seed: u64) -> (Surrogate, Space) {
        let (recorded, space) = made();
        let columns: Vec<Column> = (space.parameters().iter())
            .map(|parameter| Column {
                name: parameter.name().to_owned(),
                cells: (space.arms())
                    .map(|arm| space.configuration(arm).get(parameter.name()).cloned())
                    .collect(),
            })
            .collect();
        let surrogate = Surrogate::new(recorded, &columns, space.clone(), seed);
        (surrogate, space)
    }

    #[test]
    fn arms_that_were_left_out_are_ranked_well() {
        let (recorded, space) = made();
        let correlation = fidelity(&recorded, &space, 5, 1);
        assert!(correlation > 0.8, "{correlation}");
    }

    #[test]
    fn the_same_configuration_always_meets_the_same_run() {
        let times = |seed| {
            let (surrogate, space) = surrogate(seed);
            let table = surrogate.tabulated(&space);
            let all: Vec<f64> = space.arms().map(|arm| table.par10(arm)).collect();
            all
        };
        assert_eq!(times(3), times(3));
        assert_ne!(times(3), times(4));
        let (surrogate, space) = surrogate(3);
        let limit = Limit::new(2.0).unwrap();
        for arm in space.arms().step_by(17) {
            let pull = Pull {
                instance: Some(2),
                ..Pull::new(arm, limit)
            };
            let by_number = surrogate.run(1, Round(5), pull);
            let configuration = space.configuration(arm);
            let by_values = surrogate.run_configuration(9, Round(6), pull, &configuration);
            assert_eq!(
                by_number, by_values,
                "neither the run's seed nor the round matter"
            );
            let table = surrogate.tabulated(&space);
            assert_eq!(by_number, table.run(1, Round(5), pull));
        }
    }

    #[test]
    fn values_between_and_beyond_the_recorded_ones_have_runs_like_their_neighbours() {
        let (surrogate, _) = surrogate(1);
        let run = |x: f64| {
            let values = [("x", Value::Number(x)), ("w", Value::Text("a".into()))];
            let values = values.map(|(name, value)| (name.to_owned(), value));
            let configuration: Configuration = values.into_iter().collect();
            let row = surrogate.features.row(&configuration);
            let all =
                (0..8).map(|instance| surrogate.drawn(&row, &plain(&configuration), instance));
            all.map(|run| run.par10(10.0)).sum::<f64>() / 8.0
        };
        assert!(run(-3.0) < run(20.5), "{} {}", run(-3.0), run(20.5));
        assert!(run(20.5) < run(38.7), "{} {}", run(20.5), run(38.7));
    }

    #[test]
    fn ranks_correlate_as_spearman_says() {
        assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[10.0, 20.0, 21.0]), 1.0);
        assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
        let tied = rank_correlation(&[1.0, 1.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]);
        assert!((tied - 0.948_683).abs() < 1e-5, "{tied}");
    }
}
