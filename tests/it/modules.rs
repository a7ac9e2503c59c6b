//! Which module of `src/` uses which: no cycles, and no arrow that `docs/architecture.md` does not draw.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Arrows = BTreeMap<String, BTreeSet<String>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Rust files below a path, without those that only tests are made of.
fn sources(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap().to_string_lossy();
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap().flatten();
        let is_tests = name == "tests";
        let entries = entries.filter(|_| !is_tests);
        return entries.flat_map(|entry| sources(&entry.path())).collect();
    }
    let is_source = name.ends_with(".rs") && name != "tests.rs";
    is_source.then(|| path.to_owned()).into_iter().collect()
}

/// The top-level modules with their files.
fn modules() -> BTreeMap<String, Vec<PathBuf>> {
    let mut modules: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for entry in fs::read_dir(root().join("src")).unwrap().flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if !matches!(name.as_str(), "lib" | "main" | "snapshots") {
            modules.entry(name).or_default().extend(sources(&path));
        }
    }
    modules
}

/// The first segments of the paths that begin with `crate::` in this text, without comments and unit tests.
fn used(text: &str) -> BTreeSet<String> {
    let code = text
        .split("\n#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or(text);
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let word = |text: &str| -> String {
        let is_word = |letter: &char| letter.is_alphanumeric() || *letter == '_';
        text.trim_start().chars().take_while(is_word).collect()
    };
    let mut used = BTreeSet::new();
    for path in code.split("crate::").skip(1) {
        match path.strip_prefix('{') {
            None => {
                used.insert(word(path));
            }
            Some(list) => {
                let list = list.split('}').next().unwrap_or(list);
                assert!(!list.contains('{'), "a list within a list: `{list}`");
                used.extend(list.split(',').map(word));
            }
        }
    }
    let crates = ["captime_forest", "captime_limit"];
    used.extend(
        crates
            .map(str::to_owned)
            .into_iter()
            .filter(|name| code.contains(&format!("{name}::"))),
    );
    used
}

fn arrows() -> Arrows {
    let modules = modules();
    let mut arrows = Arrows::new();
    for (module, files) in &modules {
        for file in files {
            let text = fs::read_to_string(file).unwrap();
            let others = used(&text).into_iter().filter(|other| {
                other != module && (modules.contains_key(other) || other.starts_with("captime_"))
            });
            arrows.entry(module.clone()).or_default().extend(others);
        }
    }
    arrows
}

/// The arrows on the page: lines `module -> others` of its first block of text.
fn drawn() -> Arrows {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let block = page.split("```text\n").nth(1).expect("a block of arrows");
    let block = block.split("```").next().unwrap();
    let arrows: Arrows = block
        .lines()
        .map(|line| {
            let (module, others) = line.split_once("->").expect("an arrow on every line");
            let others = others.split_whitespace().map(str::to_owned);
            (module.trim().to_owned(), others.collect())
        })
        .collect();
    assert!(arrows.len() > 5, "{arrows:?}");
    arrows
}

/// A way from a module back to itself.
fn cycle(arrows: &Arrows) -> Option<Vec<String>> {
    fn walk(arrows: &Arrows, path: &mut Vec<String>, done: &mut BTreeSet<String>) -> bool {
        let here = path.last().cloned().unwrap_or_default();
        for next in arrows.get(&here).into_iter().flatten() {
            let is_closed = path.contains(next);
            path.push(next.clone());
            if is_closed || (!done.contains(next) && walk(arrows, path, done)) {
                return true;
            }
            path.pop();
        }
        done.insert(here);
        false
    }
    let mut done = BTreeSet::new();
    arrows.keys().find_map(|module| {
        let mut path = vec![module.clone()];
        walk(arrows, &mut path, &mut done).then_some(path)
    })
}

#[test]
fn modules_use_each_other_in_one_direction_as_the_architecture_page_draws() {
    let (arrows, drawn) = (arrows(), drawn());
    assert_eq!(cycle(&arrows), None);
    let none = BTreeSet::new();
    for module in arrows.keys().chain(drawn.keys()) {
        let others = arrows.get(module).unwrap_or(&none);
        let allowed = drawn.get(module).unwrap_or(&none);
        let new: Vec<_> = others.difference(allowed).collect();
        assert!(
            new.is_empty(),
            "`{module}` uses {new:?}: docs/architecture.md does not draw that"
        );
        let gone: Vec<_> = allowed.difference(others).collect();
        assert!(
            gone.is_empty(),
            "`{module}` does not use {gone:?}: docs/architecture.md draws that"
        );
    }
}

#[test]
fn wrong_arrows_would_be_found() {
    let arrow = |from: &str, to: &[&str]| {
        let to = to.iter().map(|name| (*name).to_owned()).collect();
        (from.to_owned(), to)
    };
    let tree = [
        arrow("cli", &["study", "round"]),
        arrow("study", &["round"]),
    ];
    assert_eq!(cycle(&tree.into()), None);
    let ring = [arrow("a", &["b"]), arrow("b", &["c"]), arrow("c", &["b"])];
    assert_eq!(cycle(&ring.into()).unwrap(), ["a", "b", "c", "b"]);
    let text = "use crate::{round::Limit, space};\n// crate::cli\nfn a() { crate::target::b() }\n#[cfg(test)]\nmod tests { use crate::report; }\n";
    let found: Vec<String> = used(text).into_iter().collect();
    assert_eq!(found, ["round", "space", "target"]);
}

/// The files and functions that a text names: `orchestrator/run.rs`, `Run::next`.
fn named(text: &str) -> (Vec<&str>, Vec<(&str, &str)>) {
    let quoted = || text.split('`').skip(1).step_by(2);
    let files = quoted().filter(|word| word.rsplit_once('.').is_some_and(|(_, end)| end == "rs"));
    let functions = quoted().filter_map(|word| word.split('(').next()?.split_once("::"));
    (files.collect(), functions.collect())
}

#[test]
fn one_pull_takes_at_most_twelve_hops_and_each_is_where_the_page_says() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let section = page
        .split("\n## ")
        .find(|text| text.starts_with("One pull in"));
    let is_hop = |line: &&str| line.starts_with(|letter: char| letter.is_ascii_digit());
    let hops: Vec<&str> = section.unwrap().lines().filter(is_hop).collect();
    assert!((6..=12).contains(&hops.len()), "{hops:?}");
    let all: Vec<String> = sources(&root().join("src"))
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    for hop in hops {
        let (files, functions) = named(hop);
        assert!(!(files.is_empty() && functions.is_empty()), "{hop}");
        for file in files {
            let below = [root().join("src"), root().join("src/target")];
            assert!(
                below.iter().any(|folder| folder.join(file).exists()),
                "{file}: {hop}"
            );
        }
        for (of, function) in functions {
            let is_there = |text: &String| {
                let declared = [format!("struct {of}"), format!("trait {of}")];
                declared.iter().any(|words| text.contains(words))
                    && text.contains(&format!("fn {function}"))
            };
            assert!(all.iter().any(is_there), "{of}::{function}: {hop}");
        }
    }
}
