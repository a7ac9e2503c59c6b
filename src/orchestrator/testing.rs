//! A test of a run's answer: some arms side by side on held-out instances, in its own folder within the run's.

use std::path::{Path, PathBuf};

use super::{
    Plan, Planned, ResolvedScenario, RunError, RunReader, Schedule, Sequence, target_seed,
};
use crate::answer::{Differences, Evidence, Tested};
use crate::journal::{By, Learned, Reader, Step};
use crate::round::{Limit, LimitGrid, Pull, Round};
use crate::scenario::{LimitSource, Resource, Scenario, Target, TestPlan, difference};
use crate::space::Space;
use crate::target::TargetError;
use crate::target::recorded::{Recorded, Spec};

/// The folder of tests in a run's folder.
const TESTS: &str = "tests";

/// What a test runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestOn {
    /// The instances under `test`.
    Test,
    /// Those that the run was tuned on.
    Training,
    /// These.
    Listed(Vec<String>),
}

/// Why a run cannot be tested as asked.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// There is no `test`.
    #[error("the scenario of this run holds out no instances for testing")]
    NothingKeptBack,
    /// There are no instances at all.
    #[error("the pulls of this run have no instances")]
    NoInstances,
    /// A listed instance that was not recorded.
    #[error("`{name}` is not an instance of the recorded runs")]
    Unknown {
        /// The instance.
        name: String,
    },
    /// Your own program runs the pulls.
    #[error("captime does not run the pulls of `target: external`, so it cannot test them")]
    External,
    /// Configurations that were not recorded.
    #[error("not all configurations between the default and the answer were recorded")]
    Unrecorded,
    /// The recorded runs cannot be read, or were not measured so far.
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl TestError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NothingKeptBack => Some(
                "use `--on training`, or list other instances in a file and use `--on FILE`; \
                 for the next run, keep some back with `test:` under `target`"
                    .into(),
            ),
            Self::NoInstances => Some(
                "leave out `--on`: the test then uses fresh seeds, as many as `--seeds` says"
                    .into(),
            ),
            Self::Unknown { .. } => {
                Some("write one name a line, as the file of recorded runs has them".into())
            }
            Self::Unrecorded => Some(
                "`--ablation` needs a target that can run any configuration, such as `surrogate`"
                    .into(),
            ),
            Self::External => Some("run them yourself, with other seeds or instances".into()),
            Self::Target(error) => error.hint(),
        }
    }
}

impl ResolvedScenario {
    /// What a test runs on by default: the held-out instances if there are any, else the training instances.
    pub fn test_on(&self) -> Option<TestOn> {
        let kept = match &self.scenario.target {
            Target::Command(command) => !command.test.is_empty(),
            Target::Recorded(recorded) => !recorded.test.is_empty(),
            Target::Surrogate(surrogate) => !surrogate.test.is_empty(),
            Target::External(_) | Target::Forest(_) | Target::Synthetic(_) => false,
        };
        match (kept, self.instances.is_empty()) {
            (true, _) => Some(TestOn::Test),
            (false, false) => Some(TestOn::Training),
            (false, true) => None,
        }
    }

    /// The scenario of a test: every pull gets this limit, gains are counted in the same unit as in the run, and chance has not
    /// been seen by the run. `space` has the arms of the run, of an open space those that it opened.
    pub fn for_test(
        &self,
        space: &Space,
        test: TestPlan,
        on: Option<&TestOn>,
        limit: Limit,
        unit: f64,
    ) -> Result<Scenario, TestError> {
        let mut scenario = self.scenario.clone();
        scenario.space = space.listed_now().into_owned();
        scenario.open = None;
        scenario.at_largest_limit();
        let grid = LimitGrid::new([limit.get()]).expect("a limit makes a grid");
        scenario.limits.from = LimitSource::Grid(grid.clone());
        scenario.price.unit = Some(unit);
        scenario.seed = target_seed(self.scenario.seed, Round(u64::MAX));
        match (&mut scenario.target, on) {
            (Target::External(_), _) => return Err(TestError::External),
            (Target::Command(command), Some(on)) => {
                let test = std::mem::take(&mut command.test);
                match on {
                    TestOn::Test if test.is_empty() => return Err(TestError::NothingKeptBack),
                    TestOn::Test => command.instances = test,
                    TestOn::Training if command.instances.is_empty() => {
                        return Err(TestError::NoInstances);
                    }
                    TestOn::Training => {}
                    TestOn::Listed(names) => {
                        let names = names.clone();
                        command.instances = match &mut command.expect {
                            Some(expect) => expect.instances(names),
                            None => names,
                        };
                    }
                }
            }
            (Target::Recorded(_), _) if space.len() != self.scenario.space.len() => {
                return Err(TestError::Unrecorded);
            }
            (Target::Recorded(recorded), on) => {
                recorded.test = not_tested(&recorded.spec, &recorded.test, on, &grid)?;
            }
            (Target::Surrogate(surrogate), on) => {
                surrogate.test = not_tested(&surrogate.spec.runs, &surrogate.test, on, &grid)?;
            }
            (Target::Forest(_) | Target::Synthetic(_), Some(_)) => {
                return Err(TestError::NoInstances);
            }
            (Target::Command(_) | Target::Forest(_) | Target::Synthetic(_), None) => {}
        }
        scenario.test = Some(test);
        Ok(scenario)
    }
}

/// The instances of recorded runs that a test leaves out.
fn not_tested(
    spec: &Spec,
    kept: &[String],
    on: Option<&TestOn>,
    grid: &LimitGrid,
) -> Result<Vec<String>, TestError> {
    let all = Recorded::open(spec)?;
    all.check_limits(grid)?;
    let is_kept = |name: &String| kept.contains(name);
    let is_tested = |name: &String| match on {
        Some(TestOn::Test) => is_kept(name),
        Some(TestOn::Training) | None => !is_kept(name),
        Some(TestOn::Listed(names)) => names.contains(name),
    };
    if let Some(TestOn::Listed(names)) = on {
        let unknown = |name: &&String| !all.instance_names().contains(name);
        if let Some(name) = names.iter().find(unknown) {
            return Err(TestError::Unknown { name: name.clone() });
        }
    } else if on == Some(&TestOn::Test) && kept.is_empty() {
        return Err(TestError::NothingKeptBack);
    }
    let others = all.instance_names().iter().filter(|name| !is_tested(name));
    Ok(others.cloned().collect())
}

impl TestPlan {
    /// How many pulls it takes on this many instances.
    pub fn rounds(&self, instances: usize) -> u64 {
        (self.arms.len() * instances.max(1)) as u64 * u64::from(self.seeds)
    }

    /// Instance by instance, arm by arm, then again with the next seed. All arms of an instance get the same seed.
    pub fn sequence(&self, plan: &Plan) -> impl Schedule + use<> {
        let (arms, instances) = (self.arms.clone(), plan.instances as u64);
        let (limit, seed) = (plan.limits.largest(), plan.seed);
        Sequence::new(self.rounds(plan.instances), move |round| {
            let (row, place) = place_of(round, arms.len());
            let mut pull = Pull::new(arms[place], limit);
            pull.instance = (instances > 0).then(|| (row % instances) as u32);
            Planned {
                pull,
                seed: Some(target_seed(seed, Round(row + 1))),
                by: Some(By::Test),
            }
        })
    }
}

/// Which row of instances and seeds a round of a test belongs to, and which of its arms it runs, both counted from 0.
fn place_of(round: Round, arms: usize) -> (u64, usize) {
    let at = round.0 - 1;
    (at / arms as u64, (at % arms as u64) as usize)
}

/// The folder of the test with this scenario in the run's `folder`: one that was begun before, or a new one.
pub fn test_folder(folder: &Path, scenario: &Scenario) -> PathBuf {
    let wanted = scenario.stored();
    let is_same = |test: &PathBuf| {
        let header = Reader::open(test).map(|reader| reader.header().resolved["scenario"].clone());
        header.is_ok_and(|stored| difference(&stored, &wanted).is_empty())
    };
    let all = tests_in(folder);
    let last = all.last().map_or(0, |(number, _)| *number);
    let same = all.into_iter().map(|(_, test)| test).find(is_same);
    same.unwrap_or_else(|| folder.join(TESTS).join((last + 1).to_string()))
}

/// The tests in a run's folder, in the order in which they were begun.
pub fn tests_in(folder: &Path) -> Vec<(u64, PathBuf)> {
    let entries = std::fs::read_dir(folder.join(TESTS)).into_iter().flatten();
    let numbered = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let number = entry.file_name().to_str()?.parse().ok()?;
        Some((number, entry.path()))
    };
    let mut tests: Vec<(u64, PathBuf)> = entries.filter_map(numbered).collect();
    tests.sort();
    tests
}

/// A test as recorded in its journal, finished or not.
#[derive(Debug)]
pub struct TestReader {
    /// What was asked for.
    pub test: TestPlan,
    /// The limit of every pull.
    pub limit: Limit,
    /// What is limited.
    pub resource: Resource,
    /// How many instances it runs on; 0 if there are none.
    pub instances: usize,
    /// Pulls with an outcome.
    pub done: u64,
    /// Pulls there are in all.
    pub total: u64,
    /// What every arm did so far.
    pub arms: Vec<Tested>,
    /// Along a path from the default to the answer: how each arm differs from the one before it.
    pub steps: Vec<Option<Differences>>,
    /// The arms; those on a path may have been added to those of the run.
    pub space: Space,
}

impl TestReader {
    /// Reads the test in `folder`; none if the folder holds something else.
    pub fn read(folder: &Path) -> Result<Option<Self>, RunError> {
        let mut outcomes: Vec<Box<Learned>> = vec![];
        let run = RunReader::read(folder, |step| {
            if let Step::Learned(learned) = step {
                outcomes.push(learned.clone());
            }
        })?;
        let Some(test) = run.resolved.scenario.test.clone() else {
            return Ok(None);
        };
        let instances = run.resolved.instances.len();
        let mut evidence = Evidence::scored_by(run.state.plan().metric);
        for learned in &outcomes {
            let (row, _) = place_of(learned.pull.round, test.arms.len());
            // Several runs on one instance are one piece of evidence about instances. With one instance, or none, seeds
            // are all there is.
            let unit = match learned.pull.instance {
                Some(instance) if instances > 1 => instance,
                _ => row as u32,
            };
            evidence.add_on(Some(unit), &learned.observation, learned.outcome.score);
        }
        let limit = run.resolved.scenario.limits.from.largest();
        let price = run.state.plan().price(&run.state.limits());
        Ok(Some(Self {
            limit,
            resource: run.resolved.resource(),
            instances,
            done: outcomes.len() as u64,
            total: test.rounds(instances),
            arms: evidence.tested(&test.arms, &test.unsolved, limit, &price),
            steps: match test.path[..] {
                [] => vec![],
                _ => (test.arms.windows(2))
                    .map(|pair| {
                        let pair = [pair[1], pair[0]];
                        evidence.differences(pair, &test.unsolved, limit, &price)
                    })
                    .collect(),
            },
            space: run.resolved.scenario.space.clone(),
            test,
        }))
    }
}
