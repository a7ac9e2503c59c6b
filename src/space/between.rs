//! Configurations between two arms, and arms beside those that a space has.

use std::sync::Arc;

use super::arms::Row;
use super::open::Point;
use super::{ABSENT, Configuration, Space, SpaceError};
use crate::round::ArmId;

impl Space {
    /// The parameters in which two arms differ, by place.
    pub fn differences(&self, one: ArmId, other: ArmId) -> Vec<usize> {
        let (one, other) = (self.codes(one), self.codes(other));
        (0..one.len())
            .filter(|&place| one[place] != other[place])
            .collect()
    }

    /// The configuration that takes the parameters at these places from `to` and all others from `from`. In an open space
    /// conditions decide which of them are active. None if constraints forbid it.
    pub fn between(&self, from: ArmId, to: ArmId, places: &[usize]) -> Option<Configuration> {
        if let Some(opened) = self.opened() {
            let (space, ends) = (opened.space(), [from, to].map(|arm| opened.point(arm)));
            let values: Vec<_> = (0..self.parameters().len())
                .filter_map(|place| {
                    let end = ends[usize::from(places.contains(&place))];
                    Some((place, space.value(end, place)?))
                })
                .collect();
            let name = |place: usize| &*space.parameters()[place].name;
            let point = space.point(values.iter().map(|(place, value)| (name(*place), value)));
            return Some(space.configuration(&point.ok()?));
        }
        let (mut codes, others) = (self.codes(from), self.codes(to));
        for &place in places {
            codes[place] = others[place];
        }
        let is_arm = || self.arms().any(|arm| self.codes(arm) == codes);
        if self.dropped() > 0 && !is_arm() {
            return None;
        }
        let values = codes.iter().zip(self.parameters());
        let values = values.filter(|(code, _)| **code != ABSENT);
        let values =
            values.map(|(code, of)| (of.shared_name(), of.values()[*code as usize].clone()));
        Some(Configuration {
            name: None,
            values: values.collect(),
        })
    }

    /// A list of the arms of this space, and after them those of these configurations that it lacks; with the arm of each.
    pub fn with_arms(&self, more: &[Configuration]) -> Result<(Self, Vec<ArmId>), SpaceError> {
        if let Some(opened) = self.opened() {
            let mut points: Vec<Point> = opened.points().cloned().collect();
            let mut arms = vec![];
            for configuration in more {
                let point = opened.space().point(configuration.iter());
                let point = point.map_err(|_| SpaceError::Empty)?;
                let known = points.iter().position(|other| *other == point);
                arms.push(ArmId::from_index(known.unwrap_or(points.len())));
                if known.is_none() {
                    points.push(point);
                }
            }
            return Ok((opened.space().list(&points)?, arms));
        }
        let is_same =
            |arm: ArmId, other: &Configuration| self.configuration(arm).values == other.values;
        let known: Vec<Option<ArmId>> = more
            .iter()
            .map(|other| self.arms().find(|&arm| is_same(arm, other)))
            .collect();
        if let Some(arms) = known.iter().copied().collect() {
            return Ok((self.clone(), arms));
        }
        let names: Vec<Arc<str>> = self
            .parameters()
            .iter()
            .map(super::parameter::Parameter::shared_name)
            .collect();
        // Names are kept if every arm has one.
        let row = |configuration: &Configuration, name: Option<Arc<str>>| Row {
            name,
            values: configuration
                .values
                .iter()
                .filter_map(|(name, value)| {
                    let place = names.iter().position(|own| own == name)?;
                    Some((place, value.clone()))
                })
                .collect(),
        };
        let own = |arm| {
            let configuration = self.configuration(arm);
            row(&configuration, configuration.name.clone())
        };
        let mut rows: Vec<Row> = self.arms().map(own).collect();
        let mut arms = vec![];
        for (configuration, known) in more.iter().zip(known) {
            arms.push(known.unwrap_or(ArmId::from_index(rows.len())));
            if known.is_none() {
                let name = format!("arm {}", rows.len() + 1);
                rows.push(row(configuration, self.is_named().then(|| name.into())));
            }
        }
        Ok((Self::table(names.clone(), &rows)?, arms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(arms: &str) -> Space {
        let text = format!("target: external\narms: {arms}\nlimits: {{of: wall, grid: [1s]}}\n");
        let parsed = crate::scenario::parse(&text, "s.yaml".as_ref(), ".".as_ref());
        parsed.unwrap().scenario.space
    }

    fn arm(number: u32) -> ArmId {
        ArmId::from_number(number).unwrap()
    }

    #[test]
    fn a_grid_has_all_that_lies_between_two_arms_unless_it_was_dropped() {
        let grid = space("{grid: {a: [1, 2], b: [x, y]}}");
        assert_eq!(grid.differences(arm(1), arm(4)), [0, 1]);
        let between = grid.between(arm(1), arm(4), &[1]).unwrap();
        assert_eq!(between.to_string(), "a=1 b=y");
        let (same, arms) = grid.with_arms(&[between]).unwrap();
        assert_eq!((same, arms), (grid, vec![arm(2)]));
        let dropped = space("{grid: {a: [1, 2], b: [x, y]}, except: [{a: 1, b: y}]}");
        assert_eq!(dropped.between(arm(1), arm(3), &[1]), None);
    }

    #[test]
    fn a_list_gets_the_arms_it_lacks() {
        let list = space("{list: [{name: one, a: 1, b: x}, {name: two, a: 2}]}");
        let between = list.between(arm(1), arm(2), &[0]).unwrap();
        assert_eq!(between.to_string(), "a=2 b=x");
        let ends = list.between(arm(1), arm(2), &[0, 1]).unwrap();
        let (more, arms) = list.with_arms(&[between, ends]).unwrap();
        assert_eq!(arms, [arm(3), arm(2)]);
        assert_eq!(more.configuration(arm(3)).to_string(), "arm 3: a=2 b=x");
        assert_eq!(more.configuration(arm(2)).to_string(), "two: a=2");
        assert_eq!(more.len(), 3);
    }
}
