//! Open spaces: parameters with ranges, conditions and forbidden combinations, with unboundedly many configurations.
//!
//! ```
//! use captime::space::{Domain, OpenParameter, OpenSpace, Spacing, Value, parse_rule};
//! use rand::SeedableRng;
//!
//! let words = |words: &[&str]| words.iter().map(|word| Value::Text((*word).into())).collect();
//! let mut parameters = vec![
//!     OpenParameter::new("heuristic", Domain::choice(words(&["vsids", "chb"]))?),
//!     OpenParameter::new("restarts", Domain::integer(1, 100_000, Spacing::Log)?),
//!     OpenParameter::new("alpha", Domain::real(0.01, 1.0, Spacing::Log)?),
//! ];
//! parameters[2].when = Some(parse_rule("heuristic == chb", &parameters).unwrap());
//! let forbid = parse_rule("heuristic == vsids and restarts < 10", &parameters).unwrap();
//! let space = OpenSpace::new(parameters, vec![forbid]).unwrap();
//! assert_eq!(space.configuration(space.default_point()).to_string(), "heuristic=vsids restarts=316");
//! let drawn = space.draw(&mut rand_pcg::Pcg64Mcg::seed_from_u64(1))?;
//! assert!(space.forbidden_by(&drawn).is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod count;
mod domain;
mod expression;
mod expression_error;
mod features;
mod list;
mod neighbour;
mod proposer;
mod rule;
mod sample;
#[cfg(test)]
pub(in crate::space) mod tests;
mod text;
mod tokens;

pub use domain::{Categories, Domain, DomainError, MOST_VALUES, Spacing};
pub use expression::parse as parse_rule;
pub(in crate::space) use expression::{Dialect, among, compare, parse_as, parse_term};
pub use expression_error::{ExpressionError, Misread};
pub use features::Feature;
pub use list::{Opened, Origin};
pub use neighbour::NewlyActive;
pub use proposer::{PARENTS, Proposal, confident_share};
pub use rule::{Function, Operator, Relation, Rule, Term};
pub(in crate::space) use text::number_text;

use std::collections::HashMap;
use std::sync::Arc;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::{Configuration, Value};
use domain::INACTIVE;

/// More parameters than this are refused.
pub const MOST_PARAMETERS: usize = 10_000;

/// How often a configuration is drawn again before we say that the constraints leave too little.
const MOST_TRIES: u32 = 10_000;

/// One parameter of an open space.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenParameter {
    /// Its name.
    pub name: Arc<str>,
    /// What it can be set to.
    pub domain: Domain,
    /// Its default, if one was given; otherwise the middle of the range or the first value.
    pub default: Option<Value>,
    /// When it is active; always if there is no condition.
    pub when: Option<Rule>,
    /// The arguments it becomes, with `{value}` in them; a flag's are given when it is true.
    pub argument: Option<Vec<String>>,
}

impl OpenParameter {
    /// A parameter that is always active and has no default of its own.
    pub fn new(name: impl Into<Arc<str>>, domain: Domain) -> Self {
        Self {
            name: name.into(),
            domain,
            default: None,
            when: None,
            argument: None,
        }
    }
}

/// A configuration of an open space in its canonical form: one word per parameter, inactive ones marked.
///
/// Points are equal exactly if their configurations are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point(Box<[u64]>);

impl Point {
    /// Whether the parameter at this place is active.
    pub fn is_active(&self, parameter: usize) -> bool {
        self.0[parameter] != INACTIVE
    }

    /// The places at which it differs from another point of the same space.
    pub fn differences<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = usize> + 'a {
        let pairs = self.0.iter().zip(&other.0).enumerate();
        pairs.filter(|(_, (a, b))| a != b).map(|(place, _)| place)
    }
}

/// Which part of a space is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The space as a whole.
    Whole,
    /// The parameter at this place.
    Parameter(usize),
    /// The condition of this parameter.
    When(usize),
    /// The default of this parameter.
    Default(usize),
    /// The forbidden combination at this place.
    Forbid(usize),
}

/// What is wrong with a space, and with which part of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Flaw {
    /// Where.
    pub part: Part,
    /// What.
    pub error: OpenError,
}

/// Why parameters do not make an open space.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpenError {
    /// No parameter.
    #[error("the space has no parameters")]
    NoParameters,
    /// Too many parameters.
    #[error("too many parameters: {count} (at most {MOST_PARAMETERS})")]
    TooManyParameters {
        /// How many.
        count: usize,
    },
    /// Two parameters with one name.
    #[error("duplicate parameter `{name}`")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A default outside the domain.
    #[error("the default `{value}` of `{name}` is not one of its values")]
    BadDefault {
        /// The parameter.
        name: String,
        /// Its default.
        value: String,
    },
    /// Conditions that depend on each other.
    #[error("these conditions depend on each other: {names}")]
    Cycle {
        /// The parameters, in the order of the circle.
        names: String,
    },
    /// An argument that would not show the value.
    #[error("the argument of `{name}` lacks `{{value}}`")]
    NoValueInArgument {
        /// The parameter.
        name: String,
    },
    /// The written default is not allowed.
    #[error("the default configuration is forbidden by `{rule}`")]
    DefaultForbidden {
        /// The clause.
        rule: String,
    },
    /// Drawing found nothing that is allowed.
    #[error(transparent)]
    NothingAllowed(#[from] SampleError),
}

impl OpenError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Cycle { .. } => Some("remove the `when` of one of them".into()),
            Self::NoValueInArgument { .. } => {
                Some("write `--name={value}`; only flags go without".into())
            }
            Self::DefaultForbidden { .. } => {
                Some("change a default, since the default is always the first arm".into())
            }
            Self::NothingAllowed(_) => Some("loosen this constraint".into()),
            Self::NoParameters
            | Self::TooManyParameters { .. }
            | Self::Duplicate { .. }
            | Self::BadDefault { .. } => None,
        }
    }
}

/// No allowed configuration was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("none of {tries} drawn configurations is allowed; `{rule}` forbids most ({count} of them)")]
pub struct SampleError {
    /// How many were drawn.
    pub tries: u32,
    /// The place of the clause that forbids most.
    pub clause: usize,
    /// The clause that forbids most.
    pub rule: String,
    /// How many it forbids.
    pub count: u32,
}

/// Why values do not make a configuration of this space.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PointError {
    /// A name that no parameter has.
    #[error("no parameter is called `{name}`")]
    UnknownName {
        /// As given.
        name: String,
        /// One that looks like it.
        nearest: Option<String>,
    },
    /// A value outside the domain.
    #[error("`{value}` is not a value of `{name}`")]
    BadValue {
        /// The parameter.
        name: String,
        /// As given.
        value: String,
    },
    /// A forbidden combination.
    #[error("this configuration is forbidden by `{rule}`")]
    Forbidden {
        /// The clause.
        rule: String,
    },
}

/// Parameters with conditions and forbidden combinations, of which at least one configuration is allowed.
#[derive(Debug, Clone)]
pub struct OpenSpace {
    parameters: Vec<OpenParameter>,
    forbid: Vec<Rule>,
    /// Parents before their children.
    order: Vec<usize>,
    defaults: Vec<u64>,
    default: Point,
    by_name: HashMap<Arc<str>, usize>,
}

/// Spaces are equal if they hold the same configurations in the same order of parameters, with the same defaults, whether
/// these were written or not.
impl PartialEq for OpenSpace {
    fn eq(&self, other: &Self) -> bool {
        let parts = |known: &OpenParameter| OpenParameter {
            default: None,
            ..known.clone()
        };
        self.parameters
            .iter()
            .map(parts)
            .eq(other.parameters.iter().map(parts))
            && self.defaults == other.defaults
            && self.default == other.default
            && self.forbid == other.forbid
    }
}

impl OpenSpace {
    /// The space of these parameters without the forbidden combinations. All that is wrong at once.
    pub fn new(parameters: Vec<OpenParameter>, forbid: Vec<Rule>) -> Result<Self, Vec<Flaw>> {
        let mut flaws = vec![];
        let mut flaw = |part, error| flaws.push(Flaw { part, error });
        if parameters.is_empty() {
            flaw(Part::Whole, OpenError::NoParameters);
        }
        if parameters.len() > MOST_PARAMETERS {
            let count = parameters.len();
            flaw(Part::Whole, OpenError::TooManyParameters { count });
        }
        let mut by_name = HashMap::with_capacity(parameters.len());
        let mut defaults = Vec::with_capacity(parameters.len());
        for (place, parameter) in parameters.iter().enumerate() {
            let name = || parameter.name.to_string();
            if by_name.insert(Arc::clone(&parameter.name), place).is_some() {
                flaw(
                    Part::Parameter(place),
                    OpenError::Duplicate { name: name() },
                );
            }
            let code = match &parameter.default {
                None => parameter.domain.middle(),
                Some(value) => parameter.domain.encode(value).unwrap_or_else(|| {
                    let (name, value) = (name(), value.to_string());
                    flaw(Part::Default(place), OpenError::BadDefault { name, value });
                    parameter.domain.middle()
                }),
            };
            defaults.push(code);
            let shows_value = |argument: &Vec<String>| {
                parameter.domain.is_flag() || argument.iter().any(|part| part.contains("{value}"))
            };
            if parameter
                .argument
                .as_ref()
                .is_some_and(|argument| !shows_value(argument))
            {
                let name = name();
                flaw(
                    Part::Parameter(place),
                    OpenError::NoValueInArgument { name },
                );
            }
        }
        let order = match order(&parameters) {
            Ok(order) => order,
            Err(cycle) => {
                let names: Vec<String> = cycle
                    .iter()
                    .map(|place| format!("`{}`", parameters[*place].name))
                    .collect();
                let names = names.join(" -> ");
                flaw(Part::When(cycle[0]), OpenError::Cycle { names });
                vec![]
            }
        };
        if !flaws.is_empty() {
            return Err(flaws);
        }
        let mut space = Self {
            default: Point(defaults.clone().into()),
            parameters,
            forbid,
            order,
            defaults,
            by_name,
        };
        space.default = space.find_default().map_err(|flaw| vec![flaw])?;
        Ok(space)
    }

    /// The default as written, or as near to it as the constraints allow where no default was written.
    fn find_default(&self) -> Result<Point, Flaw> {
        let mut codes = vec![INACTIVE; self.parameters.len()];
        self.activate(&mut codes, |place| self.defaults[place]);
        let plain = Point(codes.into());
        let Some(clause) = self.forbidden_by(&plain) else {
            return Ok(plain);
        };
        let is_free = |place: &usize| self.parameters[*place].default.is_none();
        if !self.forbid[clause].parameters().iter().any(is_free) {
            let rule = self.rule_text(&self.forbid[clause]);
            let error = OpenError::DefaultForbidden { rule };
            return Err(Flaw {
                part: Part::Forbid(clause),
                error,
            });
        }
        let mut rng = Pcg64Mcg::seed_from_u64(0);
        let found = self.attempt(|codes| {
            self.activate(codes, |place| match self.parameters[place].default {
                Some(_) => self.defaults[place],
                None => self.parameters[place].domain.draw(&mut rng),
            });
        });
        found.map_err(|error| Flaw {
            part: Part::Forbid(error.clause),
            error: error.into(),
        })
    }

    /// Makes points until one is allowed, a bounded number of times.
    fn attempt(&self, mut make: impl FnMut(&mut [u64])) -> Result<Point, SampleError> {
        let mut codes = vec![INACTIVE; self.parameters.len()];
        let mut rejected = vec![];
        for tries in 0..MOST_TRIES {
            codes.fill(INACTIVE);
            make(&mut codes);
            if self.first_forbidding(&codes).is_none() {
                return Ok(Point(codes.into()));
            }
            if tries == 0 {
                rejected = vec![0_u32; self.forbid.len()];
            }
            for (rule, count) in self.forbid.iter().zip(&mut rejected) {
                *count += u32::from(rule.holds(&codes, &self.parameters) == Some(true));
            }
        }
        let (clause, count) = (0..)
            .zip(rejected)
            .max_by_key(|(_, count)| *count)
            .unwrap_or((0, 0));
        Err(SampleError {
            tries: MOST_TRIES,
            clause,
            rule: self.rule_text(&self.forbid[clause]),
            count,
        })
    }

    /// Sets inactive parameters to inactive and asks for the values of active ones that have none.
    fn activate(&self, codes: &mut [u64], mut fill: impl FnMut(usize) -> u64) {
        for &place in &self.order {
            let is_active = match &self.parameters[place].when {
                None => true,
                Some(rule) => rule.holds(codes, &self.parameters) == Some(true),
            };
            if !is_active {
                codes[place] = INACTIVE;
            } else if codes[place] == INACTIVE {
                codes[place] = fill(place);
            }
        }
    }

    fn first_forbidding(&self, codes: &[u64]) -> Option<usize> {
        let holds = |rule: &Rule| rule.holds(codes, &self.parameters) == Some(true);
        self.forbid.iter().position(holds)
    }

    /// The place of the first clause that forbids this point.
    pub fn forbidden_by(&self, point: &Point) -> Option<usize> {
        self.first_forbidding(&point.0)
    }

    /// Whether every active parameter is within its domain, every inactive one absent, and nothing forbidden.
    pub fn contains(&self, point: &Point) -> bool {
        let mut codes = point.0.to_vec();
        self.activate(&mut codes, |place| self.defaults[place]);
        codes[..] == point.0[..]
            && self.forbidden_by(point).is_none()
            && self.parameters.iter().zip(&codes).all(|(known, code)| {
                *code == INACTIVE || known.domain.encode(&known.domain.decode(*code)) == Some(*code)
            })
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[OpenParameter] {
        &self.parameters
    }

    /// Its forbidden combinations.
    pub fn forbid(&self) -> &[Rule] {
        &self.forbid
    }

    /// A rule of this space as text.
    pub fn rule_text(&self, rule: &Rule) -> String {
        rule.text(&self.parameters)
    }

    /// The default configuration.
    pub fn default_point(&self) -> &Point {
        &self.default
    }

    /// The default of every parameter, also of those that are inactive by default.
    pub fn all_defaults(&self) -> Configuration {
        let values = self
            .parameters
            .iter()
            .zip(self.default.0.iter().zip(&self.defaults))
            .map(|(known, (active, own))| {
                // Constraints may have moved a default that the file does not give.
                let code = if *active == INACTIVE { own } else { active };
                (Arc::clone(&known.name), known.domain.decode(*code))
            })
            .collect();
        Configuration { name: None, values }
    }

    /// What a point stands for.
    pub fn configuration(&self, point: &Point) -> Configuration {
        let values = self
            .parameters
            .iter()
            .zip(&point.0)
            .filter(|(_, code)| **code != INACTIVE)
            .map(|(known, code)| (Arc::clone(&known.name), known.domain.decode(*code)))
            .collect();
        Configuration { name: None, values }
    }

    /// The value of one parameter, if it is active.
    pub fn value(&self, point: &Point, parameter: usize) -> Option<Value> {
        let code = point.0[parameter];
        (code != INACTIVE).then(|| self.parameters[parameter].domain.decode(code))
    }

    /// The point of a configuration that was written as JSON, with every active parameter; none if it is not of this space.
    pub fn read_point(
        &self,
        written: &serde_json::Map<String, serde_json::Value>,
    ) -> Option<Point> {
        let values = written
            .iter()
            .map(|(name, value)| Some((name.as_str(), Value::from_json(value)?)));
        let values: Vec<(&str, Value)> = values.collect::<Option<_>>()?;
        self.point(values.iter().map(|(name, value)| (*name, value)))
            .ok()
    }

    /// The point with these values: defaults for those left out, and nothing for those that are inactive.
    pub fn point<'a>(
        &self,
        values: impl IntoIterator<Item = (&'a str, &'a Value)>,
    ) -> Result<Point, PointError> {
        let mut codes = vec![INACTIVE; self.parameters.len()];
        for (name, value) in values {
            let Some(&place) = self.by_name.get(name) else {
                let names = self.parameters.iter().map(|known| &*known.name);
                return Err(PointError::UnknownName {
                    name: name.to_owned(),
                    nearest: crate::nearest::nearest(name, names).map(str::to_owned),
                });
            };
            codes[place] = self.parameters[place].domain.encode(value).ok_or_else(|| {
                PointError::BadValue {
                    name: name.to_owned(),
                    value: value.to_string(),
                }
            })?;
        }
        self.activate(&mut codes, |place| self.defaults[place]);
        let point = Point(codes.into());
        match self.forbidden_by(&point) {
            None => Ok(point),
            Some(clause) => Err(PointError::Forbidden {
                rule: self.rule_text(&self.forbid[clause]),
            }),
        }
    }
}

/// Parents before children, otherwise as they are listed; or a circle of conditions.
fn order(parameters: &[OpenParameter]) -> Result<Vec<usize>, Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let parents: Vec<Vec<usize>> = parameters
        .iter()
        .map(|parameter| {
            parameter
                .when
                .as_ref()
                .map_or_else(Vec::new, Rule::parameters)
        })
        .collect();
    let mut marks = vec![Mark::New; parameters.len()];
    let mut order = Vec::with_capacity(parameters.len());
    for root in 0..parameters.len() {
        if marks[root] != Mark::New {
            continue;
        }
        marks[root] = Mark::Open;
        // A stack of our own: a chain of conditions may be as long as the space.
        let mut path = vec![(root, 0)];
        while let Some((place, next)) = path.last_mut() {
            let place = *place;
            let Some(&parent) = parents[place].get(*next) else {
                marks[place] = Mark::Done;
                order.push(place);
                path.pop();
                continue;
            };
            *next += 1;
            match marks[parent] {
                Mark::Done => {}
                Mark::New => {
                    marks[parent] = Mark::Open;
                    path.push((parent, 0));
                }
                Mark::Open => {
                    let start = path.iter().position(|(on, _)| *on == parent);
                    let mut cycle: Vec<usize> = path[start.unwrap_or(0)..]
                        .iter()
                        .map(|(on, _)| *on)
                        .collect();
                    cycle.push(parent);
                    return Err(cycle);
                }
            }
        }
    }
    Ok(order)
}
