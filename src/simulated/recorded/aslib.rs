//! `algorithm_runs.arff` of the algorithm selection library: one row per instance, repetition and algorithm.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::cell::{RecordedRun, ended_as};
use super::{Recorded, Spec};
use crate::simulated::TargetError;

/// Reads the runs of an ASlib scenario.
pub(super) fn read(spec: &Spec) -> Result<Recorded, TargetError> {
    let path = spec.consumption.as_path();
    if let Some(reward) = &spec.reward {
        return Err(TargetError::RewardForAslib {
            path: reward.clone(),
        });
    }
    let cutoff = match spec.cutoff {
        Some(cutoff) => cutoff,
        None => described_cutoff(path)?,
    };
    let text = read_text(path).map_err(|error| TargetError::Unreadable {
        path: path.into(),
        reason: error.to_string(),
    })?;
    let mut lines = text.lines().zip(1_u64..);
    let columns = Columns::read(&mut lines, path)?;
    let mut runs = Runs::default();
    for (text, line) in lines {
        let text = text.trim();
        if text.is_empty() || text.starts_with('%') {
            continue;
        }
        let place = Place { path, line };
        let fields = fields(text).map_err(|reason| place.bad_line(reason))?;
        if fields.len() != columns.count {
            return Err(TargetError::RowLength {
                path: path.into(),
                line,
                found: fields.len(),
                expected: columns.count,
            });
        }
        let run = columns.run(&fields, &place, cutoff, spec.unsolved)?;
        runs.add(&columns, fields, run, &place)?;
    }
    runs.finish(path, cutoff)
}

/// A line of the file, for messages.
struct Place<'a> {
    path: &'a Path,
    line: u64,
}

impl Place<'_> {
    fn bad_line(&self, reason: &str) -> TargetError {
        TargetError::BadLine {
            path: self.path.into(),
            line: self.line,
            reason: reason.into(),
        }
    }
}

/// The columns of a row.
struct Columns {
    count: usize,
    instance: usize,
    repetition: Option<usize>,
    algorithm: usize,
    runtime: usize,
    status: usize,
}

impl Columns {
    /// Reads the attributes up to `@DATA`.
    fn read<'a>(
        lines: &mut impl Iterator<Item = (&'a str, u64)>,
        path: &Path,
    ) -> Result<Self, TargetError> {
        let mut names: Vec<String> = vec![];
        let mut last = 0;
        for (text, line) in lines {
            last = line;
            let text = text.trim();
            let (keyword, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            match keyword.to_ascii_lowercase().as_str() {
                "@attribute" => names.push(attribute_name(rest.trim()).to_ascii_lowercase()),
                "@data" => return Self::find(&names, &Place { path, line }),
                "" | "@relation" => {}
                comment if comment.starts_with('%') => {}
                _ => {
                    let place = Place { path, line };
                    return Err(place.bad_line(
                        "before `@DATA` there are only `@RELATION` and `@ATTRIBUTE` lines",
                    ));
                }
            }
        }
        Err(Place { path, line: last }.bad_line("the file ends before `@DATA`"))
    }

    fn find(names: &[String], place: &Place) -> Result<Self, TargetError> {
        let position = |name: &str| names.iter().position(|known| known == name);
        let required = |name: &'static str| {
            position(name).ok_or_else(|| TargetError::NoAttribute {
                path: place.path.into(),
                line: place.line,
                name,
            })
        };
        let (instance, algorithm) = (required("instance_id")?, required("algorithm")?);
        let (repetition, status) = (position("repetition"), required("runstatus")?);
        // Not every scenario calls its measure `runtime`. It is the first column that is nothing else.
        let is_other = |column: &usize| {
            [Some(instance), Some(algorithm), Some(status), repetition].contains(&Some(*column))
        };
        let measure = (0..names.len()).find(|column| !is_other(column));
        let runtime = match position("runtime").or(measure) {
            Some(column) => column,
            None => required("runtime")?,
        };
        Ok(Self {
            count: names.len(),
            instance,
            repetition,
            algorithm,
            runtime,
            status,
        })
    }

    fn run(
        &self,
        fields: &[String],
        place: &Place,
        cutoff: f64,
        unsolved: Option<f64>,
    ) -> Result<RecordedRun, TargetError> {
        let bad = |column: usize, expected| TargetError::BadCell {
            path: place.path.into(),
            line: place.line,
            column: column + 1,
            value: fields[column].clone(),
            expected,
        };
        let (measured, status) = (&fields[self.runtime], &fields[self.status]);
        let consumption = match measured.parse::<f64>() {
            Ok(value) if value >= 0.0 => Some(value),
            Ok(value) if Some(value) == unsolved => None,
            Err(_) if measured == "?" => None,
            _ => return Err(bad(self.runtime, "a number from 0 up")),
        };
        let is_ok = status.eq_ignore_ascii_case("ok");
        if is_ok && consumption.is_none() {
            return Err(bad(
                self.runtime,
                "a number from 0 up where the status is `ok`",
            ));
        }
        if is_ok && unsolved.is_some() && consumption == unsolved {
            return Ok(RecordedRun::Unsolved);
        }
        ended_as(status, consumption.unwrap_or(f64::INFINITY), cutoff).ok_or_else(|| {
            bad(
                self.status,
                "one of ok, timeout, memout, not_applicable, crash, other",
            )
        })
    }
}

/// Runs by instance and algorithm, both in the order of their first appearance.
#[derive(Default)]
struct Runs {
    instances: Names,
    arms: Names,
    cells: HashMap<(usize, usize), Vec<RecordedRun>>,
    seen: HashSet<(usize, usize, String)>,
}

#[derive(Default)]
struct Names {
    list: Vec<String>,
    places: HashMap<String, usize>,
}

impl Names {
    fn place(&mut self, name: String) -> usize {
        *self.places.entry(name).or_insert_with_key(|name| {
            self.list.push(name.clone());
            self.list.len() - 1
        })
    }
}

impl Runs {
    fn add(
        &mut self,
        columns: &Columns,
        mut fields: Vec<String>,
        run: RecordedRun,
        place: &Place,
    ) -> Result<(), TargetError> {
        let repetition = columns
            .repetition
            .map(|column| std::mem::take(&mut fields[column]))
            .unwrap_or_default();
        let instance = self
            .instances
            .place(std::mem::take(&mut fields[columns.instance]));
        let arm = self
            .arms
            .place(std::mem::take(&mut fields[columns.algorithm]));
        if !self.seen.insert((instance, arm, repetition)) {
            return Err(TargetError::RepeatedRun {
                path: place.path.into(),
                line: place.line,
                instance: self.instances.list[instance].clone(),
                arm: self.arms.list[arm].clone(),
            });
        }
        self.cells.entry((instance, arm)).or_default().push(run);
        Ok(())
    }

    fn finish(mut self, path: &Path, cutoff: f64) -> Result<Recorded, TargetError> {
        if self.cells.is_empty() {
            return Err(TargetError::NoRuns { path: path.into() });
        }
        let (instances, arms) = (self.instances.list, self.arms.list);
        let mut cells = Vec::with_capacity(instances.len() * arms.len());
        for (i, instance) in instances.iter().enumerate() {
            for (k, arm) in arms.iter().enumerate() {
                let runs = self
                    .cells
                    .remove(&(i, k))
                    .ok_or_else(|| TargetError::MissingRun {
                        path: path.into(),
                        instance: instance.clone(),
                        arm: arm.clone(),
                    })?;
                cells.push(runs);
            }
        }
        Ok(Recorded::new(arms, instances, &cells, cutoff))
    }
}

/// The first word of what follows `@ATTRIBUTE`, quoted or not.
fn attribute_name(rest: &str) -> &str {
    match rest.chars().next() {
        Some(quote @ ('\'' | '"')) => {
            let inner = &rest[1..];
            inner.split_once(quote).map_or(inner, |(name, _)| name)
        }
        _ => rest
            .split(|letter: char| letter.is_whitespace() || letter == '{')
            .next()
            .unwrap_or(""),
    }
}

/// Splits a row at its commas, respecting quotes and backslashes.
fn fields(text: &str) -> Result<Vec<String>, &'static str> {
    let mut fields = vec![];
    let mut letters = text.chars().peekable();
    loop {
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        let mut field = String::new();
        if let Some(quote) = letters.next_if(|letter| matches!(letter, '\'' | '"')) {
            loop {
                match letters.next() {
                    None => return Err("a quote is not closed"),
                    Some('\\') => field.extend(letters.next()),
                    Some(letter) if letter == quote => break,
                    Some(letter) => field.push(letter),
                }
            }
            while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
            if letters.peek().is_some_and(|letter| *letter != ',') {
                return Err("there is something between a quote and the next comma");
            }
        } else {
            while let Some(letter) = letters.next_if(|letter| *letter != ',') {
                field.push(letter);
            }
            field.truncate(field.trim_end().len());
        }
        fields.push(field);
        if letters.next().is_none() {
            return Ok(fields);
        }
    }
}

/// `algorithm_cutoff_time` of the `description.txt` beside the runs.
fn described_cutoff(runs: &Path) -> Result<f64, TargetError> {
    let no_cutoff = || TargetError::NoCutoff { path: runs.into() };
    let description =
        read_text(&runs.with_file_name("description.txt")).map_err(|_| no_cutoff())?;
    description
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == "algorithm_cutoff_time")
        .and_then(|(_, value)| value.trim().trim_matches(['\'', '"']).parse::<f64>().ok())
        .filter(|cutoff| cutoff.is_finite() && *cutoff > 0.0)
        .ok_or_else(no_cutoff)
}

/// The text of a regular file.
fn read_text(path: &Path) -> std::io::Result<String> {
    std::io::read_to_string(crate::regular_file::open(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_split_at_commas_outside_quotes() {
        let split = |text| fields(text).unwrap();
        assert_eq!(split("a, b ,c"), ["a", "b", "c"]);
        assert_eq!(split("'a, b',\"c\" ,d"), ["a, b", "c", "d"]);
        assert_eq!(split(r"'it\'s',x"), ["it's", "x"]);
        assert_eq!(split("a,,"), ["a", "", ""]);
        assert!(fields("'open").is_err());
        assert!(fields("'a'b,c").is_err());
    }

    #[test]
    fn attribute_names_may_be_quoted() {
        assert_eq!(attribute_name("instance_id STRING"), "instance_id");
        assert_eq!(attribute_name("'instance id' STRING"), "instance id");
        assert_eq!(attribute_name("runstatus{ok, timeout}"), "runstatus");
    }

    proptest::proptest! {
        #[test]
        fn quoted_fields_come_back_whatever_they_hold(
            all in proptest::collection::vec("[^\r\n]{0,12}", 1..6), quote in "['\"]",
        ) {
            let quoted = |field: &String| {
                let escaped: String = field
                    .chars()
                    .flat_map(|letter| {
                        let is_special = letter == '\\' || quote.starts_with(letter);
                        is_special.then_some('\\').into_iter().chain([letter])
                    })
                    .collect();
                format!("{quote}{escaped}{quote}")
            };
            let line = all.iter().map(quoted).collect::<Vec<_>>().join(" , ");
            proptest::prop_assert_eq!(fields(&line), Ok(all));
        }

        #[test]
        fn any_line_splits_or_is_refused(line in "\\PC{0,60}") {
            if let Ok(fields) = fields(&line) {
                let commas = line.matches(',').count();
                proptest::prop_assert!((1..=commas + 1).contains(&fields.len()), "{fields:?}");
            }
        }
    }
}
