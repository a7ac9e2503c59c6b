//! One tree: its nodes, and how it is grown by ranger's rules.
//!
//! 1. A tree gets trunc(n * fraction) draws with replacement. A row drawn twice counts twice everywhere.
//! 2. Each node draws `mtry` distinct predictors from all of them. One that is constant in the node is wasted, not
//!    redrawn.
//! 3. A node is a leaf if it has at most `min_node_size` draws, if all targets are equal, or if no drawn predictor has
//!    two values.
//! 4. The split with the largest `sumL^2 / nL + sumR^2 / nR` wins. Ties go to the predictor drawn first, then to the
//!    smaller value.
//! 5. The threshold is halfway between the two neighbouring values present in the node. Values up to it go left.

use super::fixed::{Packing, Total};
use super::gini::{ClassDraws, ClassScratch};
use super::kernel::{Best, Draws, Level, Scratch, View, scan};
use super::sample::Sampler;
use super::stop::{Stopped, Watch};

/// A node. The children of a split are adjacent.
///
/// A leaf is its own left child, and no code is above its split. So a row that has arrived stays there, and rows can go
/// down together without testing at each step which of them have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    /// The left child.
    pub(super) left: u32,
    /// Codes up to this one go left.
    pub(super) split: u32,
    pub(super) predictor: u16,
    pub(super) is_missing_left: bool,
}

impl Node {
    /// Above every code: there are fewer codes than this, since there are fewer rows.
    const ANY_CODE: u32 = u32::MAX;

    /// The leaf at this index.
    pub(super) fn leaf(at: u32) -> Self {
        Self {
            left: at,
            split: Self::ANY_CODE,
            predictor: 0,
            is_missing_left: false,
        }
    }

    pub(super) fn is_leaf(&self) -> bool {
        self.split == Self::ANY_CODE
    }
}

/// A grown tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tree {
    pub(super) nodes: Box<[Node]>,
    /// The threshold of a split, the mean or class of a leaf.
    pub(super) values: Box<[f64]>,
    /// Decrease of impurity by predictor. Empty unless requested.
    pub(super) importance: Box<[f64]>,
}

impl Tree {
    /// The value of the leaf that is reached if `is_left` decides at each node, given the node and its threshold.
    pub(super) fn leaf(&self, is_left: impl Fn(&Node, f64) -> bool) -> f64 {
        let mut at = 0;
        loop {
            let (node, value) = (&self.nodes[at], self.values[at]);
            if node.is_leaf() {
                return value;
            }
            at = node.left as usize + usize::from(!is_left(node, value));
        }
    }
}

/// What all trees of a forest have in common.
pub(super) struct GrowthPlan<'a> {
    pub(super) columns: Vec<View<'a>>,
    /// The values behind the codes of each column, ascending.
    pub(super) values: Vec<&'a [f64]>,
    pub(super) y: &'a [f64],
    /// Training rows.
    pub(super) rows: &'a [u32],
    /// The packed target of one draw, by row of the table.
    pub(super) unit: Vec<u64>,
    /// The class by row of the table, if there are three or more.
    pub(super) classes: Vec<u16>,
    /// How many classes, or 0 for numbers.
    pub(super) class_count: usize,
    pub(super) packing: Packing,
    pub(super) draws: usize,
    pub(super) mtry: usize,
    pub(super) min_node_size: usize,
    pub(super) seed: u64,
    pub(super) level: Level,
    pub(super) wants_impurity: bool,
}

/// Draws between two checks of the stop flag.
const DRAW_STRETCH: usize = 4096;
/// Rows times predictors between two checks inside one large node.
const SCAN_STRETCH: usize = 16 * 1024;
/// Predictors between two checks, if rows are few but values may be many.
const SLOT_STRETCH: usize = 512;
/// Words of a bitmap that take as long as one row of one predictor.
pub(super) const WORDS_PER_STEP: usize = 4;

impl GrowthPlan<'_> {
    /// How often each training row is drawn for a tree.
    pub(super) fn draw_rows(
        &self,
        sampler: &mut Sampler,
        counts: &mut Vec<u32>,
        watch: &mut Watch<'_>,
    ) -> Result<(), Stopped> {
        counts.clear();
        counts.resize(self.rows.len(), 0);
        for start in (0..self.draws).step_by(DRAW_STRETCH) {
            let stretch = DRAW_STRETCH.min(self.draws - start);
            watch.spend(stretch as u64)?;
            for _ in 0..stretch {
                counts[sampler.below(self.rows.len())] += 1;
            }
        }
        Ok(())
    }

    fn most_distinct(&self) -> usize {
        self.columns.iter().map(View::distinct).max().unwrap_or(1)
    }
}

/// A node that waits to be split.
struct Waiting {
    start: usize,
    end: usize,
    /// Packed sum of its draws.
    total: u64,
    node: u32,
}

/// Grows trees on one thread, reusing its memory.
pub(super) struct Grower<'a> {
    plan: &'a GrowthPlan<'a>,
    scratch: Scratch,
    class_scratch: Option<ClassScratch>,
    counts: Vec<u32>,
    /// Distinct rows, those of a node adjacent, and the packed sum of the draws of each.
    rows: Vec<u32>,
    packed: Vec<u64>,
    aside_rows: Vec<u32>,
    aside_packed: Vec<u64>,
    waiting: Vec<Waiting>,
    /// Predictors known to be constant, one bit each, for every waiting node.
    masks: Vec<u64>,
    mask: Vec<u64>,
    predictors: Vec<u16>,
    drawn: Vec<u16>,
    nodes: Vec<Node>,
    values: Vec<f64>,
    importance: Vec<f64>,
}

impl<'a> Grower<'a> {
    pub(super) fn new(plan: &'a GrowthPlan<'a>) -> Self {
        let distinct = plan.most_distinct();
        let predictors = plan.columns.len();
        Self {
            plan,
            scratch: Scratch::new(&plan.columns, plan.mtry),
            class_scratch: (plan.class_count > 2)
                .then(|| ClassScratch::new(plan.class_count, distinct)),
            counts: Vec::new(),
            rows: Vec::new(),
            packed: Vec::new(),
            aside_rows: Vec::new(),
            aside_packed: Vec::new(),
            waiting: Vec::new(),
            masks: Vec::new(),
            mask: vec![0; predictors.div_ceil(64)],
            predictors: Vec::new(),
            drawn: Vec::new(),
            nodes: Vec::new(),
            values: Vec::new(),
            importance: Vec::new(),
        }
    }

    /// Grows one tree, unless it is stopped.
    pub(super) fn grow(&mut self, tree: usize, watch: &mut Watch<'_>) -> Result<Tree, Stopped> {
        let mut sampler = Sampler::new(self.plan.seed, tree);
        self.plant(&mut sampler, watch)?;
        while let Some(node) = self.waiting.pop() {
            let kept = self.masks.len() - self.mask.len();
            self.mask.copy_from_slice(&self.masks[kept..]);
            self.masks.truncate(kept);
            self.split(&node, &mut sampler, watch)?;
        }
        Ok(Tree {
            nodes: self.nodes.as_slice().into(),
            values: self.values.as_slice().into(),
            importance: self.importance.as_slice().into(),
        })
    }

    /// Draws the rows of a tree and leaves the root waiting.
    fn plant(&mut self, sampler: &mut Sampler, watch: &mut Watch<'_>) -> Result<(), Stopped> {
        let plan = self.plan;
        plan.draw_rows(sampler, &mut self.counts, watch)?;
        watch.mind(plan.rows.len())?;
        self.rows.clear();
        self.packed.clear();
        let mut total = 0;
        for (&row, &count) in plan.rows.iter().zip(&self.counts) {
            if count > 0 {
                let packed = plan.unit[row as usize] * u64::from(count);
                self.rows.push(row);
                self.packed.push(packed);
                total += packed;
            }
        }
        self.aside_rows.resize(self.rows.len(), 0);
        self.aside_packed.resize(self.rows.len(), 0);
        self.predictors.clear();
        self.predictors.extend(0..plan.columns.len() as u16);
        self.nodes.clear();
        self.values.clear();
        self.importance.clear();
        if plan.wants_impurity {
            self.importance.resize(plan.columns.len(), 0.0);
        }
        self.nodes.push(Node::leaf(0));
        self.values.push(0.0);
        self.masks.clear();
        self.masks.resize(self.mask.len(), 0);
        self.waiting.clear();
        self.waiting.push(Waiting {
            start: 0,
            end: self.rows.len(),
            total,
            node: 0,
        });
        Ok(())
    }

    /// Splits a node, or makes it a leaf.
    fn split(
        &mut self,
        node: &Waiting,
        sampler: &mut Sampler,
        watch: &mut Watch<'_>,
    ) -> Result<(), Stopped> {
        let plan = self.plan;
        let count = plan.packing.count(node.total) as usize;
        watch.spend((node.end - node.start) as u64)?;
        if count <= plan.min_node_size || self.is_pure(node) {
            self.leaf(node, sampler);
            return Ok(());
        }
        sampler.draw_predictors(&mut self.predictors, plan.mtry);
        self.drawn.clear();
        for &predictor in &self.predictors[..plan.mtry] {
            let place = usize::from(predictor);
            if self.mask[place / 64] & (1 << (place % 64)) == 0 {
                self.drawn.push(predictor);
            }
        }
        let (best, unsplit) = if self.class_scratch.is_some() {
            self.best_by_class(node, watch)?
        } else {
            self.best_by_sum(node, watch)?
        };
        if best == Best::NONE {
            self.leaf(node, sampler);
            return Ok(());
        }
        for (&predictor, &is_constant) in self.drawn.iter().zip(self.scratch.constant()) {
            let place = usize::from(predictor);
            self.mask[place / 64] |= u64::from(is_constant) << (place % 64);
        }
        let predictor = self.drawn[best.slot()];
        if plan.wants_impurity {
            // With 0 and 1 as targets, Gini is twice the variance.
            let classes = if plan.class_count == 2 { 2.0 } else { 1.0 };
            self.importance[usize::from(predictor)] +=
                classes * plan.packing.impurity(best.score - unsplit);
        }
        self.branch(node, predictor, best);
        Ok(())
    }

    fn best_by_sum(
        &mut self,
        node: &Waiting,
        watch: &mut Watch<'_>,
    ) -> Result<(Best, f64), Stopped> {
        let rows = &self.rows[node.start..node.end];
        let total = Total::new(&self.plan.packing, node.total);
        let draws = Draws::new(rows, &self.packed[node.start..node.end], total);
        let mut best = Best::NONE;
        let stretch = (SCAN_STRETCH / rows.len()).clamp(1, SLOT_STRETCH);
        for start in (0..self.drawn.len()).step_by(stretch) {
            let slots = start..self.drawn.len().min(start + stretch);
            watch.spend((rows.len() * slots.len()) as u64)?;
            scan(
                self.plan.level,
                &self.plan.columns,
                &self.drawn,
                slots,
                &draws,
                &mut self.scratch,
                &mut best,
            );
            let walked = self.scratch.take_walked();
            if walked > 0 {
                watch.mind(walked / WORDS_PER_STEP)?;
            }
        }
        Ok((best, total.unsplit()))
    }

    fn best_by_class(
        &mut self,
        node: &Waiting,
        watch: &mut Watch<'_>,
    ) -> Result<(Best, f64), Stopped> {
        let scratch = self
            .class_scratch
            .as_mut()
            .expect("made when there are three or more classes");
        let draws = ClassDraws {
            rows: &self.rows[node.start..node.end],
            counts: &self.packed[node.start..node.end],
            classes: &self.plan.classes,
        };
        scratch.count(&draws);
        let mut best = Best::NONE;
        for (slot, &predictor) in self.drawn.iter().enumerate() {
            watch.spend(draws.rows.len() as u64)?;
            let column = &self.plan.columns[usize::from(predictor)];
            let is_split = scratch.scan(column, slot, &draws, &mut best, watch)?;
            self.scratch.set_constant(slot, !is_split);
        }
        Ok((best, scratch.unsplit()))
    }

    /// Whether all targets in a node are equal.
    fn is_pure(&self, node: &Waiting) -> bool {
        let y = self.plan.y;
        let rows = &self.rows[node.start..node.end];
        let first = y[rows[0] as usize];
        rows.iter().all(|&row| y[row as usize] == first)
    }

    fn leaf(&mut self, node: &Waiting, sampler: &mut Sampler) {
        let packing = &self.plan.packing;
        self.values[node.node as usize] = match self.plan.class_count {
            0 => packing.mean(node.total),
            2 => {
                let ones = packing.sum(node.total);
                let zeros = packing.count(node.total) - ones;
                majority(&[zeros, ones], sampler)
            }
            _ => {
                let scratch = self
                    .class_scratch
                    .as_mut()
                    .expect("made when there are three or more classes");
                scratch.count(&ClassDraws {
                    rows: &self.rows[node.start..node.end],
                    counts: &self.packed[node.start..node.end],
                    classes: &self.plan.classes,
                });
                majority(&scratch.total, sampler)
            }
        };
    }

    /// Records a split, partitions its rows and leaves both children waiting, the left one on top.
    fn branch(&mut self, node: &Waiting, predictor: u16, best: Best) {
        let column = &self.plan.columns[usize::from(predictor)];
        let values = self.plan.values[usize::from(predictor)];
        let rows = &self.rows[node.start..node.end];
        let last_left = best.code();
        let mut first_right = u32::MAX;
        let mut has_missing = false;
        for &row in rows {
            let code = column.code(row);
            if Some(code) == column.missing() {
                has_missing = true;
            } else if code > last_left {
                first_right = first_right.min(code);
            }
        }
        let (threshold, split) = threshold(values, last_left, first_right);
        let left = self.nodes.len() as u32;
        // As in ranger: if a node has no missing numbers, they go left in prediction.
        let is_missing_left = best.is_missing_left() || !has_missing;
        self.nodes[node.node as usize] = Node {
            left,
            split,
            predictor,
            is_missing_left,
        };
        self.values[node.node as usize] = threshold;
        self.nodes.extend([Node::leaf(left), Node::leaf(left + 1)]);
        self.values.extend([0.0; 2]);

        let (middle, left_total) = self.part(node, predictor, last_left, is_missing_left);
        // One for each child.
        self.masks.extend_from_slice(&self.mask);
        self.masks.extend_from_slice(&self.mask);
        self.waiting.push(Waiting {
            start: middle,
            end: node.end,
            total: node.total - left_total,
            node: left + 1,
        });
        self.waiting.push(Waiting {
            start: node.start,
            end: middle,
            total: left_total,
            node: left,
        });
    }

    /// Moves the rows that go left to the front of the node. Returns where the right side starts, and the left sum.
    fn part(
        &mut self,
        node: &Waiting,
        predictor: u16,
        last_left: u32,
        is_missing_left: bool,
    ) -> (usize, u64) {
        let column = &self.plan.columns[usize::from(predictor)];
        // The code of missing numbers is above all others, so they go right by default.
        let also_left = column
            .missing()
            .filter(|_| is_missing_left)
            .unwrap_or(u32::MAX);
        let rows = &mut self.rows[node.start..node.end];
        let packed = &mut self.packed[node.start..node.end];
        let (mut lefts, mut rights, mut left_total) = (0, 0, 0);
        for place in 0..rows.len() {
            let (row, sum) = (rows[place], packed[place]);
            let code = column.code(row);
            let is_left = code <= last_left || code == also_left;
            rows[lefts] = row;
            packed[lefts] = sum;
            self.aside_rows[rights] = row;
            self.aside_packed[rights] = sum;
            lefts += usize::from(is_left);
            rights += usize::from(!is_left);
            left_total += if is_left { sum } else { 0 };
        }
        rows[lefts..].copy_from_slice(&self.aside_rows[..rights]);
        packed[lefts..].copy_from_slice(&self.aside_packed[..rights]);
        (node.start + lefts, left_total)
    }
}

/// Halfway between two neighbouring values, and the last code that is not above it.
///
/// As in ranger, the smaller value if rounding makes halfway the larger one. Without a larger value, such as when only
/// missing numbers go right, everything that is present goes left.
pub(super) fn threshold(values: &[f64], last_left: u32, first_right: u32) -> (f64, u32) {
    let Some(&above) = values.get(first_right as usize) else {
        return (f64::INFINITY, values.len() as u32 - 1);
    };
    let below = values[last_left as usize];
    let mut middle = f64::midpoint(below, above);
    if middle == above {
        middle = below;
    }
    let between = &values[last_left as usize..first_right as usize];
    let inside = between.partition_point(|&value| value <= middle) as u32;
    (middle, last_left + inside - 1)
}

/// The class with the most draws. If there are several, one of them at random, as in ranger.
pub(super) fn majority(counts: &[u64], sampler: &mut Sampler) -> f64 {
    let most = counts.iter().max().copied().unwrap_or(0);
    let winners = counts.iter().filter(|&&count| count == most).count();
    let chosen = if winners > 1 {
        sampler.below(winners)
    } else {
        0
    };
    let class = counts
        .iter()
        .enumerate()
        .filter(|&(_, &count)| count == most)
        .nth(chosen)
        .map_or(0, |(class, _)| class);
    class as f64
}
