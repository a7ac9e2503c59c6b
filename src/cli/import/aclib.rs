//! Scenario files of AClib, SMAC and ParamILS: `key = value` or `key value`, `#` comments.

use std::fmt::Write as _;
use std::path::Path;

use crate::space::format::flow_word;

/// A converted scenario.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Converted {
    pub(super) text: String,
    /// What could not be converted.
    pub(super) notes: Vec<String>,
}

/// The common name of a key, whatever tool wrote it.
fn canonical(key: &str) -> Option<&'static str> {
    let plain: String = key
        .chars()
        .filter(|letter| !matches!(letter, '-' | '_'))
        .flat_map(char::to_lowercase)
        .collect();
    Some(match plain.as_str() {
        "algo" | "algoexec" | "ta" => "algo",
        "execdir" | "algoexecdir" => "execdir",
        "deterministic" | "algodeterministic" => "deterministic",
        "paramfile" | "pcsfile" | "pcsfn" => "paramfile",
        "runobj" | "runobjective" => "run_obj",
        "overallobj" | "intraobj" | "intrainstanceobj" | "overallobjective" => "overall_obj",
        "cutofftime" | "cutoff" | "algocutofftime" | "targetruncputimelimit" => "cutoff_time",
        "cutofflength" | "algocutofflength" => "cutoff_length",
        "memorylimit" => "memory_limit",
        "tunertimeout" | "cputimelimit" | "tunertimelimit" | "algorunstimelimit" => "tuner-timeout",
        "wallclocklimit" | "runtimelimit" => "wallclock_limit",
        "runcountlimit" | "totalnumrunslimit" | "tarunlimit" => "runcount_limit",
        "instancefile" | "instances" | "i" | "traininstfn" | "instanceseedfile" => "instance_file",
        "testinstancefile" | "testinstances" | "testinstanceseedfile" => "test_instance_file",
        "featurefile" | "instancefeaturefile" => "feature_file",
        "seed" => "seed",
        _ => return None,
    })
}

/// Whether a text is such a scenario: it names a command or a parameter file, and every line has this form.
pub(super) fn looks_like(text: &str) -> bool {
    let pairs = pairs(text);
    let has = |wanted: &str| {
        pairs
            .iter()
            .any(|(_, key, _)| canonical(key) == Some(wanted))
    };
    (has("paramfile") || has("algo"))
        && (has("cutoff_time") || has("instance_file") || has("run_obj"))
}

/// Lines as (number, key, value).
fn pairs(text: &str) -> Vec<(usize, &str, &str)> {
    let mut pairs = vec![];
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.split('#').next().unwrap_or_default().trim();
        let end = code.find(|letter: char| letter == '=' || letter.is_whitespace());
        let Some(end) = end else { continue };
        let value = code[end..].trim_start().trim_start_matches('=').trim();
        pairs.push((number, code[..end].trim(), value));
    }
    pairs
}

/// The scenario as captime's YAML.
pub(super) fn convert(text: &str, file: &Path) -> Converted {
    let mut notes = vec![];
    let mut found: Vec<(&str, usize, &str)> = vec![];
    for (line, key, value) in pairs(text) {
        match canonical(key) {
            None => notes.push(format!("line {line}: `{key} = {value}` has no counterpart")),
            Some(known) => {
                if key.to_lowercase().replace('_', "").contains("seedfile") {
                    notes.push(format!(
                        "line {line}: `{key}` pairs seeds with instances: write a list of the instances alone"
                    ));
                }
                found.push((known, line, value));
            }
        }
    }
    let get = |key: &str| {
        found
            .iter()
            .rev()
            .find(|(known, ..)| *known == key)
            .map(|(_, _, value)| *value)
    };
    let note_at = |key: &str, why: &str, notes: &mut Vec<String>| {
        if let Some((_, line, value)) = found.iter().rev().find(|(known, ..)| *known == key) {
            notes.push(format!("line {line}: `{key} = {value}`: {why}"));
        }
    };
    let mut out = format!(
        "# Converted from {} by `captime import`.\nname: {}\n",
        file.file_name().unwrap_or_default().to_string_lossy(),
        flow_word(&file.file_stem().unwrap_or_default().to_string_lossy()),
    );
    target(&mut out, &get, &mut notes);
    if let Some(path) = get("paramfile") {
        let _ = writeln!(out, "arms:\n  space: {}", flow_word(path));
    } else {
        notes.push("no parameter file: add `arms`".to_owned());
    }
    let seconds = |key: &str| {
        get(key)
            .and_then(|value| value.parse::<f64>().ok())
            .filter(|value| *value > 0.0)
    };
    let cutoff = seconds("cutoff_time").unwrap_or_else(|| {
        notes.push("no cutoff: the largest limit is set to 60 s".to_owned());
        60.0
    });
    let _ = write!(
        out,
        "limits: {{of: cpu, from: {}s, to: {cutoff}s, points: 8, scale: log",
        // To the millisecond, so that 5.1 gives 0.051.
        (cutoff * 10.0).round().max(1.0) / 1000.0
    );
    if let Some(memory) = seconds("memory_limit") {
        let _ = write!(out, ", memory: {memory}MB");
    }
    out.push_str("}\n");
    let factor = get("overall_obj").map_or(10.0, |word| {
        let digits = word.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        digits.parse().unwrap_or(1.0)
    });
    let _ = writeln!(out, "price: {{cost: x, penalty: {factor} * x}}");
    let mut budget = vec![];
    if let Some(wall) = seconds("wallclock_limit") {
        budget.push(format!("wall: {wall}s"));
    }
    if let Some(spent) = seconds("tuner-timeout") {
        budget.push(format!("consumption: {spent}s"));
    }
    if let Some(rounds) = seconds("runcount_limit") {
        budget.push(format!("rounds: {rounds}"));
    }
    if budget.is_empty() {
        budget.push("wall: 1h".to_owned());
        notes.push("no budget: set to one hour of wall time".to_owned());
    }
    let _ = writeln!(out, "budget: {{{}}}", budget.join(", "));
    let _ = writeln!(
        out,
        "seed: {}",
        get("seed")
            .and_then(|seed| seed.parse::<u64>().ok())
            .unwrap_or(1)
    );
    for key in ["paramfile", "instance_file", "test_instance_file"] {
        let folder = file.parent().unwrap_or(Path::new("."));
        if get(key).is_some_and(|path| !folder.join(path).exists()) {
            let why =
                "not found beside the scenario: paths are relative to the folder of the YAML file";
            note_at(key, why, &mut notes);
        }
    }
    note_at("feature_file", "instance features are not used", &mut notes);
    note_at("cutoff_length", "run lengths are not limited", &mut notes);
    if get("deterministic").is_some_and(|word| matches!(word, "1" | "true" | "True")) {
        note_at(
            "deterministic",
            "every round has its own seed; the wrapper may ignore it",
            &mut notes,
        );
    }
    Converted { text: out, notes }
}

/// The wrapper, called as the tool would call it.
fn target<'a>(out: &mut String, get: &dyn Fn(&str) -> Option<&'a str>, notes: &mut Vec<String>) {
    let words = get("algo").map(shell_words).unwrap_or_default();
    if words.is_empty() {
        notes.push("no `algo`: write the wrapper's command as `wrapper`".to_owned());
    }
    let is_generic = |word: &String| word.to_lowercase().contains("generic");
    let command: Vec<String> = words.iter().map(|word| flow_word(word)).collect();
    let _ = writeln!(out, "target:\n  wrapper: [{}]", command.join(", "));
    if words.iter().any(is_generic) {
        out.push_str("  call: new\n");
    }
    if let Some(path) = get("execdir").filter(|path| !matches!(*path, "." | "./")) {
        let _ = writeln!(out, "  directory: {}", flow_word(path));
    }
    for (key, name) in [
        ("instance_file", "instances"),
        ("test_instance_file", "test"),
    ] {
        if let Some(path) = get(key) {
            let _ = writeln!(out, "  {name}: {}", flow_word(path));
        }
    }
    if get("run_obj").is_some_and(|word| word.eq_ignore_ascii_case("quality")) {
        notes.push("quality: set `worst` and `best` to the range of the costs".to_owned());
        out.push_str("  quality: {worst: 1000, best: 0}\n");
    }
}

/// Splits words like a shell, without expansion.
fn shell_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (vec![], None::<String>, None);
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_of_smac_becomes_one_of_ours() {
        let text = "\
algo = python3 -u 'my wrapper.py' --mem-limit 1024   # the wrapper
paramfile = spear-params.pcs
execdir = .
deterministic = 0
run_obj = runtime
overall_obj = PAR10
cutoff_time = 5
wallclock-limit = 60
instance_file = train.txt
test_instance_file = test.txt
feature_file = features.csv
minR = 3
";
        assert!(looks_like(text));
        let converted = convert(text, Path::new("spear/scenario.txt"));
        insta::assert_snapshot!(format!(
            "{}---\n{}",
            converted.text,
            converted.notes.join("\n")
        ));
        assert!(!looks_like("heur {a, b} [a]\ncutoff [1, 2] [1]\n"));
    }

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        assert_eq!(shell_words("a 'b c' d\"e f\" ''"), ["a", "b c", "de f", ""]);
    }
}
