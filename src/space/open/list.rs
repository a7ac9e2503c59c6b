//! The arms of an open space that were opened so far.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::proposer::{MOST_LISTED, POOL};
use super::{OpenSpace, Point};
use crate::round::ArmId;

/// Where an arm came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// It is the default configuration.
    Default,
    /// The scenario or an earlier run gave it.
    Start,
    /// It was drawn.
    Sampled,
    /// It was made from other arms.
    Proposed {
        /// The arms it was made from.
        from: Vec<ArmId>,
        /// The parameters that were changed besides.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
    },
}

/// `proposed from arms 17 and 4 by changing decay`.
impl fmt::Display for Origin {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |words: &[String]| match words {
            [rest @ .., before, last] => {
                let rest = rest.iter().map(|word| format!("{word}, "));
                format!("{}{before} and {last}", rest.collect::<String>())
            }
            words => words.concat(),
        };
        match self {
            Self::Default => to.write_str("the default"),
            Self::Start => to.write_str("given by `start`"),
            Self::Sampled => to.write_str("drawn from the space"),
            Self::Proposed { from, changed } => {
                let parents: Vec<String> = from.iter().map(ToString::to_string).collect();
                let arms = if parents.len() == 1 { "arm" } else { "arms" };
                write!(to, "proposed from {arms} {}", listed(&parents))?;
                match &changed[..] {
                    [] => to.write_str(" by mixing their values"),
                    changed => write!(to, " by changing {}", listed(changed)),
                }
            }
        }
    }
}

/// Arms in the order of their numbers: the default, those to start with, then what was drawn or proposed.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    space: Arc<OpenSpace>,
    points: Vec<Arc<Point>>,
    origins: Vec<Origin>,
    numbers: HashMap<Arc<Point>, ArmId>,
    drawn: usize,
    /// As many as there are, where they can be counted.
    most: usize,
}

impl Opened {
    /// The default configuration, which is arm 1, and those to start with, each once.
    pub fn new(space: Arc<OpenSpace>, start: impl IntoIterator<Item = Point>) -> Self {
        let default = space.default_point().clone();
        let most = space.all(MOST_LISTED).map_or(usize::MAX, |all| all.len());
        let mut opened = Self {
            space,
            points: vec![],
            origins: vec![],
            numbers: HashMap::new(),
            drawn: 0,
            most,
        };
        opened.open(default, Origin::Default);
        for point in start {
            if opened.arm(&point).is_none() {
                opened.open(point, Origin::Start);
            }
        }
        opened
    }

    /// Gives this configuration the next number.
    pub fn open(&mut self, point: Point, origin: Origin) -> ArmId {
        let arm = ArmId::from_index(self.points.len());
        let point = Arc::new(point);
        self.points.push(Arc::clone(&point));
        self.drawn += usize::from(origin == Origin::Sampled);
        self.origins.push(origin);
        self.numbers.entry(point).or_insert(arm);
        arm
    }

    /// How many arms were drawn uniformly from the space.
    pub fn drawn(&self) -> usize {
        self.drawn
    }

    /// How many arms a policy that wants this many may choose from: enough for the first drawn ones, and no more than there are.
    pub fn pool(&self, wanted: usize) -> usize {
        let first = POOL + self.len() - self.drawn;
        wanted.max(first).min(self.most).max(self.len())
    }

    /// The configurations, in the order of the arms.
    pub fn points(&self) -> impl ExactSizeIterator<Item = &Point> {
        self.points.iter().map(|point| &**point)
    }

    /// The arm of this configuration, if it was opened.
    pub fn arm(&self, point: &Point) -> Option<ArmId> {
        self.numbers.get(point).copied()
    }

    /// The space they are from.
    pub fn space(&self) -> &Arc<OpenSpace> {
        &self.space
    }

    /// How many arms were opened, at least one.
    #[expect(clippy::len_without_is_empty, reason = "the default is always open")]
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// An arm's configuration.
    ///
    /// # Panics
    /// If there is no such arm.
    pub fn point(&self, arm: ArmId) -> &Point {
        &self.points[arm.index()]
    }

    /// Where an arm came from.
    ///
    /// # Panics
    /// If there is no such arm.
    pub fn origin(&self, arm: ArmId) -> &Origin {
        &self.origins[arm.index()]
    }
}
