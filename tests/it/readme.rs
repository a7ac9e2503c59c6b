//! Everything the README shows, done: its commands, its scenario, its screen, its links.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::test_run::{TestRun, expect};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

/// The fenced blocks of this kind.
fn blocks(text: &str, kind: &str) -> Vec<String> {
    let fence = format!("```{kind}\n");
    let rest = text.split(&fence).skip(1);
    rest.map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

/// Words at the beginning of the lines of a summary, one each.
fn labels(screen: &str) -> Vec<&str> {
    let lines = screen.lines().filter(|line| line.contains("    "));
    lines
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

/// A folder with what a clone has and the README's commands need.
fn clone() -> TestRun {
    let test_run = TestRun::new("");
    fs::create_dir(test_run.path().join("datasets")).unwrap();
    for file in ["arms.yaml", "datasets/ames_like.csv"] {
        fs::copy(root().join(file), test_run.path().join(file)).unwrap();
    }
    // The same scenario with a budget for tests.
    let file = test_run.path().join("arms.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let short = text.replace("budget: {wall: 100s}", "budget: {rounds: 60}");
    assert_ne!(short, text);
    fs::write(&file, short).unwrap();
    test_run
}

#[test]
fn the_main_command_shows_what_the_readme_shows() {
    let text = readme();
    let commands = blocks(&text, "sh").join("\n");
    assert!(commands.contains("cargo run --release -- run arms.yaml "));
    assert!(commands.contains("\n./scripts/test "));
    assert!(root().join("scripts/test").exists());
    let test_run = clone();
    let (screen, _) = expect(&test_run.captime(&["run", "arms.yaml"]), 0);
    let shown = blocks(&text, "text");
    assert_eq!(labels(&shown[0]), labels(&screen), "{screen}");
    // And the commands that it suggests next.
    for command in ["best", "explain", "report"] {
        expect(&test_run.captime(&[command, "houses"]), 0);
    }
}

#[test]
fn the_readmes_scenario_for_a_solver_is_fine() {
    let text = readme();
    let scenarios = blocks(&text, "yaml");
    assert!(!scenarios.is_empty());
    for scenario in scenarios {
        assert!(scenario.lines().count() <= 10, "ten lines are promised");
        let test_run = TestRun::new(&scenario);
        test_run.write("instances/one.cnf", "p cnf 1 1\n1 0\n");
        // Whether the solver is installed is another matter.
        let bin = test_run.write("bin/minisat", "#!/bin/sh\nexit 10\n");
        Command::new("chmod").arg("+x").arg(&bin).status().unwrap();
        let path = format!(
            "{}:{}",
            bin.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let output = test_run
            .command(&["check", "s.yaml", "--try", "2"])
            .env("PATH", path)
            .output()
            .unwrap();
        let (shown, said) = expect(&output, 0);
        assert!(shown.contains("minisat"), "{shown}");
        assert!(shown.contains("1 if it exits with 10 or 20"), "{shown}");
        assert!(!said.contains("warning"), "{said}");
    }
}

#[test]
fn every_command_the_readme_names_exists_and_every_command_is_named() {
    let text = readme();
    let (help, _) = expect(&TestRun::new("").captime(&["--help"]), 0);
    let list = help.split_once("Commands:\n").unwrap().1;
    // A description may continue on the next line, indented further.
    let known: Vec<&str> = list
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let named = text
        .split("`captime ")
        .skip(1)
        .map(|rest| rest.split([' ', '`']).next().unwrap());
    for name in named {
        assert!(known.contains(&name), "the README names `captime {name}`");
    }
    let table = text
        .split_once("| command | does |")
        .unwrap()
        .1
        .split("\n\n")
        .next()
        .unwrap();
    for name in known
        .iter()
        .filter(|name| !["help", "completions", "man"].contains(name))
    {
        assert!(table.contains(name), "the README leaves out {name}");
    }
}

/// All pages for readers.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages
}

#[test]
fn every_command_line_of_the_documentation_has_options_that_exist() {
    let line = regex::Regex::new(r"captime ([a-z]+)((?: [^`\n#]*)?)").unwrap();
    let option = regex::Regex::new(r"--[a-z-]+").unwrap();
    let test_run = TestRun::new("");
    let (mut helps, mut options) = (BTreeMap::new(), 0);
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for found in line.captures_iter(&text) {
            let command = found[1].to_owned();
            let help = helps.entry(command.clone()).or_insert_with(|| {
                let output = test_run.captime(&[&command, "--help"]);
                let is_known = output.status.success();
                is_known.then(|| String::from_utf8(output.stdout).unwrap())
            });
            // Prose continues after the name, too.
            let Some(help) = help else { continue };
            let ours = found[2].split(" -- ").next().unwrap();
            for option in option.find_iter(ours) {
                options += 1;
                assert!(
                    help.contains(option.as_str()),
                    "{}: {}",
                    page.display(),
                    &found[0]
                );
            }
        }
    }
    assert!(options > 15, "{options} options");
}

/// What headings of a page are called in links: small letters, digits and hyphens for spaces.
fn anchors(page: &str) -> Vec<String> {
    let mut is_code = false;
    let mut anchors = vec![];
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        let title = line.trim_start_matches('#');
        if is_code || title == line || !title.starts_with(' ') {
            continue;
        }
        let plain = title.trim().to_lowercase();
        let kept = plain
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        anchors.push(kept.collect::<String>().replace(' ', "-"));
    }
    anchors
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let mut links = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in text
            .split("](")
            .skip(1)
            .map(|rest| rest.split(')').next().unwrap())
            .filter(|link| !link.contains("://"))
        {
            links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let there = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            assert!(there.exists(), "{}: {link}", page.display());
            if !anchor.is_empty() {
                let known = anchors(&fs::read_to_string(&there).unwrap());
                assert!(
                    known.iter().any(|known| known == anchor),
                    "{}: {link} is none of {known:?}",
                    page.display()
                );
            }
        }
    }
    assert!(links > 10, "{links} links");
}

/// Every figure of the comparison is on the page that the row links to, which says how it was measured.
#[test]
fn every_figure_of_the_comparison_is_one_that_was_measured() {
    let text = readme();
    let section = text.split_once("## How it compares").unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    let rows: Vec<&str> = section
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains("]("))
        .collect();
    assert!(rows.len() >= 5, "{section}");
    for row in rows {
        let page = row.split_once("](").unwrap().1.split(')').next().unwrap();
        let page = fs::read_to_string(root().join(page)).unwrap();
        let cells: Vec<&str> = row.split('|').collect();
        let measured = figures(&page);
        // The first cell says what was measured, the last one links.
        for figure in figures(&cells[2..cells.len() - 2].join(" ")) {
            assert!(measured.contains(&figure), "{figure} in {row}");
        }
    }
}

/// The numbers of a text, whole and with their signs: `-0.3` is not `0.3`, and `0` is not in `10`.
fn figures(text: &str) -> BTreeSet<String> {
    let figure = regex::Regex::new(r"(?:^|[^\w.+-])([+-]?\d+(?:\.\d+)?)\b").unwrap();
    let found = figure.captures_iter(text);
    found.map(|found| found[1].to_owned()).collect()
}

#[test]
fn a_figure_is_a_whole_number_with_its_sign() {
    let found = figures("SMAC3 1224 ± 201, (+0.97 %) -0.3 ms, 10; 0.5.");
    let all = ["+0.97", "-0.3", "0.5", "10", "1224", "201"];
    assert_eq!(found, BTreeSet::from(all.map(String::from)));
}

/// `docs::the_comparison_of_tuners_shows_its_results` draws it again from the results beside it.
#[test]
fn the_picture_is_drawn_by_the_comparison_of_tuners() {
    let text = readme();
    let picture = text.split_once("](").unwrap().1.split(')').next().unwrap();
    assert!(root().join(picture).with_extension("csv").exists());
    let picture = fs::read_to_string(root().join(picture)).unwrap();
    for tuner in ["captime", "SMAC3", "irace", "Optuna", "random search"] {
        assert!(picture.contains(&format!(">{tuner}</text>")), "{tuner}");
    }
    assert!(picture.contains("test PAR10 of the answer"), "{picture}");
}

/// The policy in CONTRIBUTING.md is compiled with the tests of the library, under `policy::walk_through`.
#[test]
fn the_policy_of_the_walk_through_is_the_one_that_is_compiled() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let file = fs::read_to_string(root().join("tests/fixtures/epsilon_greedy.rs")).unwrap();
    assert_eq!(blocks(&text, "rust"), [file]);
}
