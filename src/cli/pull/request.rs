//! From another program's JSON request to a pull.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Bad;
use crate::nearest::nearest;
use crate::orchestrator::target_seed;
use crate::quantity;
use crate::resource::Resource;
use crate::round::{ArmId, Limit, Pull, Round, instance_of};
use crate::scenario::Scenario;
use crate::space::open::PointError;
use crate::space::{self, ABSENT, Configuration, OpenSpace};
use crate::target::{PreparedTarget, Start};

/// What a request looks like.
pub(super) const WRITE: &str =
    r#"write {"configuration":{"decay":0.8},"limit":2.5,"instance":"a.cnf","seed":7}"#;
const KEYS: [&str; 6] = ["id", "configuration", "arm", "limit", "instance", "seed"];

/// Reads requests.
pub(super) struct Requests<'s> {
    scenario: &'s Scenario,
    instances: Vec<String>,
    places: HashMap<String, u32>,
    /// The indices of those that are not held out for the test.
    training: Vec<u32>,
    is_virtual: bool,
    /// The listed arms by the indices of their values.
    arms: HashMap<Vec<u32>, ArmId>,
}

/// A pull that can be started.
#[derive(Debug)]
pub(super) struct Request {
    id: Value,
    pub(super) start: Start,
}

/// The most arms to index by their values.
const MOST_INDEXED: usize = 1_000_000;

impl<'s> Requests<'s> {
    pub(super) fn new(
        scenario: &'s Scenario,
        target: &PreparedTarget,
        kept_back: &[String],
    ) -> Self {
        let instances = target.instances().to_vec();
        let places: HashMap<String, u32> = instances.iter().cloned().zip(0..).collect();
        let is_training = |place: &u32| !kept_back.contains(&instances[*place as usize]);
        let training = (0..instances.len() as u32).filter(is_training).collect();
        let is_indexed = scenario.open.is_none() && scenario.space.len() <= MOST_INDEXED;
        let arms = scenario
            .space
            .arms()
            .take(if is_indexed { scenario.space.len() } else { 0 });
        let mut index = HashMap::new();
        for arm in arms {
            // Of equal arms, the first.
            index.entry(scenario.space.codes(arm)).or_insert(arm);
        }
        Self {
            scenario,
            places,
            training,
            instances,
            is_virtual: target.is_virtual(),
            arms: index,
        }
    }

    /// The pull that the request on this line describes.
    pub(super) fn read(&self, number: u64, request: Value) -> Result<Request, Bad> {
        let Value::Object(mut request) = request else {
            return Err(Bad::new("not a JSON object", WRITE));
        };
        request.retain(|_, value| !value.is_null());
        if let Some(key) = request.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let fix = match nearest(key, KEYS) {
                Some(name) => format!("did you mean `{name}`?"),
                None => WRITE.into(),
            };
            return Err(Bad::new(format!("a pull has no `{key}`"), fix));
        }
        let (arm, configuration) = match (request.get("arm"), request.get("configuration")) {
            (Some(_), Some(_)) => {
                let what = "both `arm` and `configuration`";
                return Err(Bad::new(what, "give one of them"));
            }
            (Some(arm), None) => (self.arm(arm)?, None),
            (None, Some(Value::Object(values))) => self.configuration(values)?,
            (None, Some(_)) => {
                let fix = r#"write {"configuration":{"decay":0.8}}"#;
                return Err(Bad::new("`configuration` is not an object", fix));
            }
            (None, None) => self.configuration(&Map::new())?,
        };
        let limit = match request.get("limit") {
            Some(limit) => self.limit(limit)?,
            None => self.scenario.limits.from.largest(),
        };
        let seed = match request.get("seed") {
            Some(seed) => Some(seed.as_u64().ok_or_else(|| {
                let what = format!("`seed` is {seed}, not a whole number");
                Bad::new(what, "give a number from 0 to 2147483647")
            })?),
            None => None,
        };
        let round = Round(number);
        let instance = match request.get("instance") {
            Some(instance) => Some(self.instance(instance)?),
            None => self.drawn(round),
        };
        let seed = seed.unwrap_or_else(|| target_seed(self.scenario.seed, round));
        let start = Start {
            slot: 0,
            // In virtual time all randomness comes from the round.
            round: if self.is_virtual { Round(seed) } else { round },
            pull: Pull {
                instance,
                ..Pull::new(arm, limit)
            },
            seed,
            configuration,
        };
        let id = request.remove("id").unwrap_or_else(|| json!(number));
        Ok(Request { id, start })
    }

    /// What was run, for the answer.
    pub(super) fn echo(&self, request: &Request) -> Value {
        let Start { pull, seed, .. } = &request.start;
        let configuration = request.start.configuration_in(&self.scenario.space);
        let mut answer = json!({"id": request.id, "limit": pull.limit, "seed": seed});
        if !configuration.is_empty() {
            answer["configuration"] = json!(*configuration);
        }
        if request.start.configuration.is_none() {
            answer["arm"] = json!(pull.arm);
        }
        if let Some(name) = pull
            .instance
            .and_then(|place| self.instances.get(place as usize))
        {
            answer["instance"] = json!(name);
        }
        answer
    }

    /// A listed arm.
    fn arm(&self, given: &Value) -> Result<ArmId, Bad> {
        let space = &self.scenario.space;
        let named = |name: &str| space.arms().find(|arm| space.name(*arm) == Some(name));
        let number = match given {
            Value::String(text) => {
                if let Some(arm) = named(text) {
                    return Ok(arm);
                }
                text.parse().ok()
            }
            given => given.as_u64(),
        };
        let known = number.filter(|number| (1..=space.len() as u64).contains(number));
        known
            .map(|number| ArmId::from_index(number as usize - 1))
            .ok_or_else(|| {
                let what = format!("there is no arm {given}");
                Bad::new(what, format!("arms are numbered from 1 to {}", space.len()))
            })
    }

    /// The arm with these values. In an open space, any configuration that it allows.
    fn configuration(
        &self,
        given: &Map<String, Value>,
    ) -> Result<(ArmId, Option<Arc<Configuration>>), Bad> {
        if let Some(name) = given.get("name")
            && self.scenario.space.is_named()
        {
            return Ok((self.arm(name)?, None));
        }
        let mut values = vec![];
        for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
            let value = space::Value::from_json(value).ok_or_else(|| {
                let what = format!("`{name}` is {value}, not a number, a word, true or false");
                Bad::new(what, "give one value for each parameter")
            })?;
            values.push((name.as_str(), value));
        }
        match &self.scenario.open {
            Some(open) => {
                let configuration = of_open(open, &values)?;
                Ok((ArmId::from_index(0), Some(Arc::new(configuration))))
            }
            None => Ok((self.listed(&values)?, None)),
        }
    }

    /// The listed arm with these values and otherwise those of the default, or the only arm with these values.
    fn listed(&self, given: &[(&str, space::Value)]) -> Result<ArmId, Bad> {
        let space = &self.scenario.space;
        let mut wanted = vec![];
        for (name, value) in given {
            let places = space.parameters().iter();
            let place = places.clone().position(|known| known.name() == *name);
            let place = place.ok_or_else(|| {
                let names = places.clone().map(space::Parameter::name);
                Bad::new(
                    format!("no parameter is called `{name}`"),
                    match nearest(name, names) {
                        Some(name) => format!("did you mean `{name}`?"),
                        None => "`captime check` lists the parameters".to_owned(),
                    },
                )
            })?;
            let known = space.parameters()[place].values();
            let spellings = [Some(value.clone()), other_spelling(value)];
            let code = spellings.iter().flatten().find_map(|value| {
                let is_meant = |known: &space::Value| known.means(value);
                known.iter().position(is_meant)
            });
            let code = code.ok_or_else(|| {
                let shown: Vec<String> = known.iter().take(12).map(ToString::to_string).collect();
                let more = if known.len() > 12 { ", ..." } else { "" };
                Bad::new(
                    format!("`{value}` is not a value of `{name}`"),
                    format!("its values are {}{more}", shown.join(", ")),
                )
            })?;
            wanted.push((place, code as u32));
        }
        let mut codes = space.codes(ArmId::from_index(0));
        for (place, code) in &wanted {
            codes[*place] = *code;
        }
        if let Some(arm) = self.arms.get(&codes) {
            return Ok(*arm);
        }
        let is_it = |arm: &ArmId| {
            let codes = space.codes(*arm);
            wanted.iter().all(|(place, code)| codes[*place] == *code)
        };
        let mut alike = space.arms().filter(is_it);
        match (alike.next(), alike.next()) {
            (Some(arm), None) => Ok(arm),
            (None, _) => {
                let fix =
                    "only listed arms can be run; `arms: {space: ...}` takes any configuration";
                Err(Bad::new("no arm has these values", fix))
            }
            (Some(arm), Some(_)) => {
                let first = space.codes(arm);
                let free = space.parameters().iter().enumerate().find(|(place, _)| {
                    first[*place] != ABSENT && wanted.iter().all(|(given, _)| given != place)
                });
                let fix = free.map_or_else(
                    || "give its number as `arm`".to_owned(),
                    |(_, known)| format!("give `{}` too, or its number as `arm`", known.name()),
                );
                Err(Bad::new("several arms have these values", fix))
            }
        }
    }

    /// A limit up to the scenario's largest, in seconds, or like `500ms`.
    fn limit(&self, given: &Value) -> Result<Limit, Bad> {
        let (of, largest) = (self.scenario.limits.of, self.scenario.limits.from.largest());
        let number = match given {
            Value::String(text) => match (text.trim().parse(), of) {
                (Ok(number), _) => Some(number),
                (Err(_), Resource::Work) => None,
                (Err(_), Resource::Memory) => {
                    quantity::parse_bytes(text).ok().map(|bytes| bytes as f64)
                }
                (Err(_), Resource::Wall | Resource::Cpu) => quantity::parse_seconds(text).ok(),
            },
            given => given.as_f64(),
        };
        let limit = number.and_then(|number| Limit::new(number).ok());
        let limit = limit.ok_or_else(|| {
            let what = format!("`limit` is {given}, not a positive amount");
            Bad::new(
                what,
                "write seconds, like 2.5, or a duration, like \"500ms\"",
            )
        })?;
        if limit > largest {
            let (limit, largest) = (of.amount(limit.get()), of.amount(largest.get()));
            let what = format!("the limit {limit} is above {largest}, the largest of the scenario");
            return Err(Bad::new(
                what,
                "grant less, or raise `limits` in the scenario",
            ));
        }
        Ok(limit)
    }

    fn instance(&self, given: &Value) -> Result<u32, Bad> {
        if self.instances.is_empty() {
            let fix = "leave out `instance`, or list `instances` in the scenario";
            return Err(Bad::new("this scenario has no instances", fix));
        }
        let count = self.instances.len();
        let place = match given {
            Value::String(name) => self
                .places
                .get(name)
                .copied()
                .or_else(|| name.parse::<u32>().ok()?.checked_sub(1)),
            given => given
                .as_u64()
                .and_then(|number| u32::try_from(number).ok()?.checked_sub(1)),
        };
        place
            .filter(|place| (*place as usize) < count)
            .ok_or_else(|| {
                let similar = given
                    .as_str()
                    .and_then(|name| nearest(name, self.places.keys().map(String::as_str)));
                let fix = match similar {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => {
                        format!("name one that the scenario lists, or a number from 1 to {count}")
                    }
                };
                Bad::new(format!("there is no instance {given}"), fix)
            })
    }

    /// The training instance of this line.
    fn drawn(&self, round: Round) -> Option<u32> {
        let drawn = instance_of(self.scenario.seed, round, None, self.training.len());
        drawn.map(|place| self.training[place as usize])
    }
}

/// The answer to a line that is not a request, with its `id` if it has one.
pub(super) fn refused(number: u64, line: &[u8], bad: &Bad) -> Value {
    let mut answer = bad.answer(number);
    let parsed: Option<Value> = serde_json::from_slice(line).ok();
    if let Some(id) = parsed.and_then(|parsed| parsed.get("id").cloned()) {
        answer["id"] = id;
    }
    answer
}

fn of_open(open: &OpenSpace, given: &[(&str, space::Value)]) -> Result<Configuration, Bad> {
    let point = |values: &[(&str, space::Value)]| {
        open.point(values.iter().map(|(name, value)| (*name, value)))
    };
    let mut values = given.to_vec();
    let mut made = point(&values);
    // Other programs write words for numbers, and numbers for words.
    while let Err(PointError::BadValue { name, .. }) = &made {
        let place = values.iter().position(|(known, _)| known == name);
        let Some(place) = place.filter(|place| values[*place].1 == given[*place].1) else {
            break;
        };
        let Some(other) = other_spelling(&given[place].1) else {
            break;
        };
        values[place].1 = other;
        made = point(&values);
    }
    let point = made.map_err(|error| {
        let fix = match &error {
            PointError::UnknownName { nearest, .. } => match nearest {
                Some(name) => format!("did you mean `{name}`?"),
                None => "`captime check` lists the parameters".to_owned(),
            },
            PointError::BadValue { name, .. } => {
                let known = open.parameters().iter().find(|known| *known.name == **name);
                known.map_or_else(String::new, |known| format!("it takes {}", known.domain))
            }
            PointError::Forbidden { .. } => "change one of the parameters in it".to_owned(),
        };
        Bad::new(error.to_string(), fix)
    })?;
    Ok(open.configuration(&point))
}

/// The number that a word spells, or the word for anything else.
fn other_spelling(value: &space::Value) -> Option<space::Value> {
    match value {
        space::Value::Text(text) => match space::Value::read(text) {
            space::Value::Text(_) => None,
            value => Some(value),
        },
        value => Some(space::Value::Text(value.to_string().into())),
    }
}
