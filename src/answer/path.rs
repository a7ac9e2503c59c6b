//! What changed from the default, and what each change is worth.
//!
//! The path leads from the default to the answer, one parameter at a time, and each step takes the change that a model
//! of the gain likes best: Fawcett and Hoos's ablation analysis (2016), with a model in place of runs as Biedenkapp and
//! others (2017) do. `captime test --ablation` runs the configurations along it.

use serde::Serialize;

use crate::round::ArmId;
use crate::space::{Configuration, Space, Value};

/// Steps that are shown on one line.
const SHOWN: usize = 4;

/// One step from the default to the answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathStep {
    /// What changes: usually one parameter.
    pub changes: Vec<Change>,
    /// By how much the gain grows, by the model.
    pub worth: f64,
    /// The configuration after it.
    pub configuration: Configuration,
}

/// A parameter that is set to another value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Its name.
    pub parameter: String,
    /// Its value before; none if it was absent.
    pub from: Option<Value>,
    /// Its value after; none if it is absent.
    pub to: Option<Value>,
}

/// The steps from one arm to another, each the change that helps most there; `predict` gives the gain of each configuration. Empty if
/// they do not differ.
pub fn path(
    space: &Space,
    (from, to): (ArmId, ArmId),
    predict: impl Fn(&[Configuration]) -> Vec<f64>,
) -> Vec<PathStep> {
    let goal = plain(space.configuration(to));
    let mut current = plain(space.configuration(from));
    let mut gain = predict(std::slice::from_ref(&current))[0];
    let mut left = space.differences(from, to);
    let mut taken: Vec<usize> = vec![];
    let mut steps = vec![];
    while current != goal {
        let open: Vec<(Vec<usize>, Configuration)> = left
            .iter()
            .filter_map(|&place| {
                let with: Vec<usize> = taken.iter().copied().chain([place]).collect();
                let next = space.between(from, to, &with)?;
                Some((vec![place], plain(next)))
            })
            .filter(|(_, next)| *next != current)
            .collect();
        // Where constraints leave no single step, or the last one leads there, the rest changes at once.
        let open = if open.is_empty() {
            vec![(left.clone(), goal.clone())]
        } else {
            open
        };
        let configurations: Vec<Configuration> =
            open.iter().map(|(_, next)| next.clone()).collect();
        let gains = predict(&configurations);
        let best = (0..open.len())
            .reduce(|best, other| {
                if gains[other] > gains[best] {
                    other
                } else {
                    best
                }
            })
            .expect("there is a step");
        let (places, next) = open.into_iter().nth(best).expect("the best of them");
        let change = |place: &usize| {
            let name = space.parameters()[*place].name();
            Change {
                parameter: name.to_owned(),
                from: current.get(name).cloned(),
                to: next.get(name).cloned(),
            }
        };
        let changes = places.iter().map(change);
        let changes: Vec<Change> = changes.filter(|change| change.from != change.to).collect();
        left.retain(|place| !places.contains(place));
        taken.extend(places);
        steps.push(PathStep {
            changes,
            worth: gains[best] - gain,
            configuration: next.clone(),
        });
        (current, gain) = (next, gains[best]);
    }
    steps
}

/// The same path in at most so many steps: the last one makes all changes that are left.
pub fn shortened(mut steps: Vec<PathStep>, most: usize) -> Vec<PathStep> {
    let rest = steps.split_off(steps.len().min(most));
    if let Some(last) = steps.last_mut() {
        for step in rest {
            last.changes.extend(step.changes);
            last.worth += step.worth;
            last.configuration = step.configuration;
        }
    }
    steps
}

/// Without the arm's own name.
fn plain(configuration: Configuration) -> Configuration {
    let values = configuration.iter();
    values
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

impl PathStep {
    /// `mtry 8 to 16`, or several of them.
    pub fn in_words(&self) -> String {
        let changes: Vec<String> = self.changes.iter().map(Change::in_words).collect();
        changes.join(", ")
    }
}

impl Change {
    fn in_words(&self) -> String {
        let value = |of: &Option<Value>| of.as_ref().map_or("absent".into(), ToString::to_string);
        format!(
            "{} {} to {}",
            self.parameter,
            value(&self.from),
            value(&self.to)
        )
    }
}

/// `mtry 8 to 16 (+0.0310), trees 10 to 40 (+0.0120); 3 more are worth +0.0010`.
pub fn path_in_words(steps: &[PathStep]) -> String {
    let (shown, rest) = steps.split_at(steps.len().min(SHOWN));
    let shown: Vec<String> = shown
        .iter()
        .map(|step| format!("{} ({:+.4})", step.in_words(), step.worth))
        .collect();
    let shown = shown.join(", ");
    match rest {
        [] => shown,
        [only] => format!("{shown}; 1 more is worth {:+.4}", only.worth),
        rest => format!(
            "{shown}; {} more are worth {:+.4}",
            rest.len(),
            rest.iter().map(|step| step.worth).sum::<f64>()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::ArmId;

    fn space(arms: &str) -> Space {
        let text = format!("target: external\narms: {arms}\nlimits: {{of: wall, grid: [1s]}}\n");
        let parsed = crate::scenario::parse(&text, "s.yaml".as_ref(), ".".as_ref());
        parsed.unwrap().scenario.space
    }

    fn number(configuration: &Configuration, name: &str) -> f64 {
        let value = configuration.get(name).and_then(Value::number);
        value.unwrap_or(0.0)
    }

    #[test]
    fn the_most_valuable_change_comes_first() {
        let space = space("{grid: {a: [0, 1], b: [0, 1], c: [0, 1], d: [7, 8]}}");
        let arm = |number| ArmId::from_number(number).unwrap();
        let gain = |of: &Configuration| {
            0.1 * number(of, "a") + 0.5 * number(of, "b") - 0.2 * number(of, "c")
        };
        let steps = path(&space, (arm(1), arm(15)), |all| {
            all.iter().map(gain).collect()
        });
        assert_eq!(
            path_in_words(&steps),
            "b 0 to 1 (+0.5000), a 0 to 1 (+0.1000), c 0 to 1 (-0.2000)"
        );
        assert_eq!(steps[2].configuration.to_string(), "a=1 b=1 c=1 d=7");
        let short = shortened(steps, 2);
        assert_eq!(
            path_in_words(&short),
            "b 0 to 1 (+0.5000), a 0 to 1, c 0 to 1 (-0.1000)"
        );
        assert_eq!(short[1].configuration.to_string(), "a=1 b=1 c=1 d=7");
        assert!(path(&space, (arm(3), arm(3)), |all| vec![0.0; all.len()]).is_empty());
    }

    #[test]
    fn a_parameter_follows_the_one_it_depends_on() {
        let mut space = space(
            "{space: {way: {choice: [plain, deep], default: plain}, depth: {integer: [1, 9], default: 2, when: way == deep}, \
             twist: {integer: [1, 9], default: 3, when: way == plain}}}",
        );
        let opened = space.opened_mut().unwrap();
        let deep = [
            ("way", &Value::Text("deep".into())),
            ("depth", &Value::Integer(8)),
        ];
        let point = opened.space().point(deep).unwrap();
        let to = opened.open(point, crate::space::open::Origin::Start);
        // The model likes depth most of all, but it is there only once the way is deep.
        let gain = |of: &Configuration| number(of, "depth");
        let steps = path(&space, (ArmId::from_index(0), to), |all| {
            all.iter().map(gain).collect()
        });
        assert_eq!(
            path_in_words(&steps),
            "way plain to deep (+2.0000), depth 2 to 8 (+6.0000)"
        );
    }

    #[test]
    fn what_constraints_tie_together_changes_at_once() {
        let space = space("{grid: {a: [0, 1], b: [0, 1]}, except: [{a: 0, b: 1}, {a: 1, b: 0}]}");
        let ends = (ArmId::from_index(0), ArmId::from_index(1));
        let steps = path(&space, ends, |all| {
            all.iter().map(|of| number(of, "a")).collect()
        });
        assert_eq!(path_in_words(&steps), "a 0 to 1, b 0 to 1 (+1.0000)");
    }
}
