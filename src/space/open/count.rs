//! All configurations of a space that has few.

use super::domain::{Domain, INACTIVE};
use super::{OpenSpace, Point};
use crate::space::Value;

impl Domain {
    /// All values of a choice, the ends of a range.
    pub(in crate::space) fn ends(&self) -> Vec<Value> {
        let mut ends = match self {
            Self::Real { low, high, .. } => vec![Value::Number(*low), Value::Number(*high)],
            Self::Integer { low, high, .. } => vec![Value::Integer(*low), Value::Integer(*high)],
            Self::Choice(categories) | Self::Ordered(categories) => categories.values().to_vec(),
        };
        ends.dedup();
        ends
    }

    /// The codes of all values; none if there are more than `most`.
    fn codes(&self, most: u64) -> Option<Vec<u64>> {
        match self {
            Self::Real {
                low,
                high,
                digits: Some(digits),
                ..
            } => {
                let power = 10_f64.powi(i32::from(*digits));
                let (first, last) = ((low * power).round(), (high * power).round());
                let is_small = last - first < most as f64;
                let value = |step: u64| (first + step as f64) / power + 0.0;
                is_small
                    .then(|| (0..=(last - first) as u64).map(|step| value(step).to_bits()))
                    .map(Iterator::collect)
            }
            Self::Real { low, high, .. } => (low == high).then(|| vec![low.to_bits()]),
            Self::Integer { low, high, .. } => {
                let is_small = high.abs_diff(*low) < most;
                is_small.then(|| (*low..=*high).map(|value| value as u64).collect())
            }
            Self::Choice(categories) | Self::Ordered(categories) => {
                let count = categories.values().len() as u64;
                (count <= most).then(|| (0..count).collect())
            }
        }
    }
}

impl OpenSpace {
    /// All configurations that are allowed; none if there are more than `most` combinations of active parameters.
    pub fn all(&self, most: usize) -> Option<Vec<Point>> {
        let codes: Vec<Option<Vec<u64>>> = self
            .parameters
            .iter()
            .map(|known| known.domain.codes(most as u64))
            .collect();
        let is_always = |place: &usize| self.parameters[*place].when.is_none();
        let count = |place: usize| codes[place].as_ref().map(|codes| codes.len() as f64);
        let always = self.order.iter().copied().filter(is_always);
        if always.map(count).product::<Option<f64>>()? > most as f64 {
            return None;
        }
        // One entry per combination of the parameters so far, parents before children.
        let mut all = vec![vec![INACTIVE; self.parameters.len()]];
        for &place in &self.order {
            let rule = self.parameters[place].when.as_ref();
            let mut longer = Vec::with_capacity(all.len());
            for combination in all {
                let holds = |rule: &super::Rule| rule.holds(&combination, &self.parameters);
                if rule.is_some_and(|rule| holds(rule) != Some(true)) {
                    longer.push(combination);
                    continue;
                }
                for code in codes[place].as_ref()? {
                    let mut next = combination.clone();
                    next[place] = *code;
                    longer.push(next);
                }
                if longer.len() > most {
                    return None;
                }
            }
            all = longer;
        }
        all.retain(|codes| self.first_forbidding(codes).is_none());
        Some(all.into_iter().map(|codes| Point(codes.into())).collect())
    }
}
