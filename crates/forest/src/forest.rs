//! A forest: fitting it under an allowance, and predicting with it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::dataset::{Codes, Dataset, Identity, LevelOrder, Task, ranks_by_response};
use super::fixed::Packing;
use super::importance;
use super::kernel::{Level, View};
use super::params::{Importance, Params, ParamsError};
use super::stop::{Allowance, Consumed, Meter, Stop, Stopped, Watch};
use super::tree::{Grower, GrowthPlan, Tree};

/// How a fit ended.
#[derive(Debug)]
pub enum FitOutcome {
    /// All trees were grown.
    Done {
        /// The forest.
        forest: Forest,
        /// What it took.
        consumed: Consumed,
    },
    /// The allowance was used up or the flag was raised. All trees grown so far are freed.
    Stopped {
        /// What it took until then.
        consumed: Consumed,
    },
}

/// Why a fit cannot start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// A parameter is wrong.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// Nothing to learn from.
    #[error("there are no training rows")]
    NoRows,
    /// A row that is not in the table.
    #[error("training row {row} is not in the table of {rows} rows")]
    NoSuchRow {
        /// The row, counted from 0.
        row: u32,
        /// How many there are.
        rows: usize,
    },
}

impl FitError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Params(error) => error.hint(),
            Self::NoRows | Self::NoSuchRow { .. } => None,
        }
    }
}

/// A fitted random forest.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    pub(super) trees: Vec<Tree>,
    pub(super) task: Task,
    pub(super) classes: usize,
    /// The table whose codes the splits use.
    identity: Identity,
    /// For factors ordered by response: the rank that replaces a code.
    pub(super) ranks: Vec<Option<Vec<u32>>>,
    importance: Vec<f64>,
    pub(super) seed: u64,
    pub(super) rows: Vec<u32>,
    pub(super) draws: usize,
}

/// Grows a forest on the given training rows, until it is done, the flag is raised, or the allowance is used up.
///
/// The forest depends only on the data, the rows, the parameters and the seed, not on the number of threads or the
/// machine. A stopped fit ends within 1 ms of CPU time and leaves nothing behind.
///
/// The crate's front page has an example.
pub fn fit_until(
    data: &Dataset,
    rows: &[u32],
    params: &Params,
    stop: &Stop,
    allowance: Option<Allowance>,
) -> Result<FitOutcome, FitError> {
    let mtry = params.check_for(data.predictors())?;
    let meter = Meter::new(stop, allowance);
    if rows.is_empty() {
        return Err(FitError::NoRows);
    }
    if let Some(&row) = rows.iter().find(|&&row| row as usize >= data.rows()) {
        return Err(FitError::NoSuchRow {
            row,
            rows: data.rows(),
        });
    }
    let outcome = match fit(data, rows, params, mtry, &meter) {
        Ok(forest) => FitOutcome::Done {
            forest,
            consumed: meter.consumed(),
        },
        Err(Stopped) => FitOutcome::Stopped {
            consumed: meter.consumed(),
        },
    };
    Ok(outcome)
}

fn fit(
    data: &Dataset,
    rows: &[u32],
    params: &Params,
    mtry: usize,
    meter: &Meter<'_>,
) -> Result<Forest, Stopped> {
    let mut watch = meter.watch();
    let recoded = Recoded::new(data, rows, &mut watch)?;
    let plan = plan(data, &recoded, rows, params, mtry, &mut watch)?;
    // Dropped before the trees are grown, because each growing thread has its own watch.
    drop(watch);
    let trees = grow_all(&plan, params, meter)?;
    let mut watch = meter.watch();
    let importance = match params.importance {
        Importance::None => Vec::new(),
        Importance::Impurity => importance::impurity(&trees, data.predictors()),
        Importance::Permutation => importance::permutation(&plan, &trees, &mut watch)?,
    };
    // What was used since the last check counts too.
    watch.look()?;
    let (draws, seed) = (plan.draws, plan.seed);
    Ok(Forest {
        trees,
        task: data.task(),
        classes: data.target().classes().len(),
        identity: data.identity(),
        ranks: recoded.ranks,
        importance,
        seed,
        rows: rows.to_vec(),
        draws,
    })
}

/// Factors recoded by the mean response of the training rows, if requested.
struct Recoded {
    ranks: Vec<Option<Vec<u32>>>,
    codes: Vec<Option<Codes>>,
}

impl Recoded {
    fn new(data: &Dataset, rows: &[u32], watch: &mut Watch<'_>) -> Result<Self, Stopped> {
        let mut recoded = Self {
            ranks: Vec::new(),
            codes: Vec::new(),
        };
        if data.level_order() == LevelOrder::Alphabetical {
            return Ok(recoded);
        }
        let y = data.target().y();
        for column in data.columns() {
            let mut mind = |steps| watch.mind(steps);
            let ranks = ranks_by_response(column, y, rows, &mut mind)?;
            let codes = match &ranks {
                Some(ranks) => Some(column.codes().replaced(ranks, &mut mind)?),
                None => None,
            };
            recoded.ranks.push(ranks);
            recoded.codes.push(codes);
        }
        Ok(recoded)
    }
}

fn plan<'a>(
    data: &'a Dataset,
    recoded: &'a Recoded,
    rows: &'a [u32],
    params: &Params,
    mtry: usize,
    watch: &mut Watch<'_>,
) -> Result<GrowthPlan<'a>, Stopped> {
    let y = data.target().y();
    let class_count = data.target().classes().len();
    // ranger truncates. A tree has at least one draw.
    let draws = ((rows.len() as f64 * params.sample_fraction) as usize).max(1);
    let packing = if class_count == 0 {
        let targets = || rows.iter().map(|&row| y[row as usize]);
        watch.mind(rows.len())?;
        let lowest = targets().fold(f64::INFINITY, f64::min);
        let highest = targets().fold(f64::NEG_INFINITY, f64::max);
        Packing::new(lowest, highest, draws).coarsest(targets())
    } else {
        Packing::of_classes(draws)
    };
    watch.mind(rows.len())?;
    let mut unit = vec![0; data.rows()];
    let mut classes = vec![0; if class_count > 2 { data.rows() } else { 0 }];
    for &row in rows {
        let row = row as usize;
        if class_count > 2 {
            classes[row] = y[row] as u16;
            unit[row] = 1;
        } else {
            unit[row] = packing.pack(y[row]);
        }
    }
    let columns = data.columns().iter().enumerate().map(|(place, column)| {
        // A view reads all codes once, many at a time.
        watch.mind(data.rows() / 4)?;
        let recoded = recoded.codes.get(place).and_then(Option::as_ref);
        Ok(match recoded {
            Some(codes) => View::new(codes, column.distinct(), column.missing()),
            None => View::of(column),
        })
    });
    Ok(GrowthPlan {
        columns: columns.collect::<Result<_, _>>()?,
        values: data
            .columns()
            .iter()
            .map(super::dataset::Column::values)
            .collect(),
        y,
        rows,
        unit,
        classes,
        class_count,
        packing,
        draws,
        mtry,
        min_node_size: params.min_node_size(data.task()),
        seed: params.seed,
        level: Level::choose(params.simd),
        wants_impurity: params.importance == Importance::Impurity,
    })
}

/// Grows all trees, on the calling thread alone or on several. A tree does not depend on the thread that grows it.
fn grow_all(
    plan: &GrowthPlan<'_>,
    params: &Params,
    meter: &Meter<'_>,
) -> Result<Vec<Tree>, Stopped> {
    let threads = params.threads.min(params.trees);
    let next = AtomicUsize::new(0);
    let work = |keep: &mut dyn FnMut(usize, Tree)| {
        let mut watch = meter.watch();
        let mut grower = Grower::new(plan);
        loop {
            let tree = next.fetch_add(1, Ordering::Relaxed);
            if tree >= params.trees {
                return Ok(());
            }
            keep(tree, grower.grow(tree, &mut watch)?);
        }
    };
    if threads == 1 {
        let mut trees = Vec::with_capacity(params.trees);
        work(&mut |_, tree| trees.push(tree))?;
        return Ok(trees);
    }
    let grown = Mutex::new(Vec::with_capacity(params.trees));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    work(&mut |number, tree| {
                        let mut grown = grown.lock().unwrap_or_else(PoisonError::into_inner);
                        grown.push((number, tree));
                    })
                })
            })
            .collect();
        let mut result = Ok(());
        for worker in workers {
            match worker.join() {
                Ok(ended) => result = result.and(ended),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        result
    })?;
    let mut grown = grown.into_inner().unwrap_or_else(PoisonError::into_inner);
    grown.sort_unstable_by_key(|&(number, _)| number);
    Ok(grown.into_iter().map(|(_, tree)| tree).collect())
}

impl Forest {
    /// A forest without the table it was fitted on: rows are sent down its trees by their values.
    pub(super) fn loaded(trees: Vec<Tree>, classes: usize, ranks: Vec<Option<Vec<u32>>>) -> Self {
        Self {
            trees,
            task: if classes == 0 {
                Task::Regression
            } else {
                Task::Classification
            },
            classes,
            identity: Identity::new(),
            ranks,
            importance: Vec::new(),
            seed: 0,
            rows: Vec::new(),
            draws: 0,
        }
    }

    /// How many trees there are.
    pub fn trees(&self) -> usize {
        self.trees.len()
    }

    /// Whether it predicts numbers or classes.
    pub fn task(&self) -> Task {
        self.task
    }

    /// Leaves per tree, on average.
    pub fn mean_leaves(&self) -> f64 {
        let leaves: usize = self
            .trees
            .iter()
            .map(|tree| tree.nodes.len().div_ceil(2))
            .sum();
        leaves as f64 / self.trees.len() as f64
    }

    /// The importance of each predictor, if it was requested.
    pub fn importance(&self) -> Option<&[f64]> {
        (!self.importance.is_empty()).then_some(&self.importance)
    }

    /// The rank of a factor's level in this forest.
    pub(super) fn rank(&self, predictor: usize, code: u32) -> u32 {
        match self.ranks.get(predictor) {
            Some(Some(ranks)) => ranks.get(code as usize).copied().unwrap_or(code),
            _ => code,
        }
    }

    pub(super) fn knows(&self, data: &Dataset) -> bool {
        self.identity.is(data.identity())
    }
}
