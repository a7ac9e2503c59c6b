//! The pages for users, followed to the letter: their files are written, their commands are run, in the order of the page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::test_run::{expect, skipped};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

/// The fenced blocks of a page: what kind, and the text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(docs().join(page)).unwrap();
    let mut blocks = vec![];
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(kind)) => open = Some((kind.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{page}: a block is not closed");
    blocks
}

/// Whether a program can be started.
fn is_there(program: &str) -> bool {
    Command::new(program).arg("--help").output().is_ok()
}

/// Writes the files of a page and runs its commands, in a fresh folder. `console` is for what a machine is prepared with (`apt`).
fn follow(page: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_captime"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    // Tests have less time than readers.
    let budget = regex::Regex::new(r"budget: \{wall: \w+\}").unwrap();
    let mut commands = 0;
    for (kind, text) in blocks(page) {
        let name = text.lines().next().and_then(|line| line.strip_prefix("# "));
        let name = name.filter(|name| {
            let extension = Path::new(name).extension();
            !name.contains(' ') && extension.is_some_and(|end| end == "yaml" || end == "R")
        });
        match kind.as_str() {
            "yaml" | "r" => {
                let name = name.unwrap_or_else(|| panic!("{page}: no name of a file in {text}"));
                let short = budget.replace_all(&text, "budget: {rounds: 60}");
                fs::write(folder.path().join(name), &*short).unwrap();
            }
            "sh" => {
                commands += 1;
                let output = Command::new("bash")
                    .args(["-euo", "pipefail", "-c", &text])
                    .current_dir(folder.path())
                    .env("PATH", &path)
                    .output()
                    .unwrap();
                expect(&output, 0);
            }
            // The tests of the Python package run these.
            "python" | "console" => {}
            other => panic!("{page}: how is a block of `{other}` tested?"),
        }
    }
    assert!(commands > 0 || page == "prices.md", "{page}");
    // Each scenario means something, also where no command of the page uses it.
    for entry in fs::read_dir(folder.path()).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|end| end == "yaml") {
            fs::create_dir_all(folder.path().join("instances")).unwrap();
            fs::write(folder.path().join("instances/one.cnf"), "p cnf 1 1\n1 0\n").unwrap();
            let output = Command::new(program)
                .arg("check")
                .arg(&file)
                .current_dir(folder.path())
                .output()
                .unwrap();
            expect(&output, 0);
        }
    }
    folder
}

#[test]
fn the_tutorial_leads_to_an_answer() {
    if !is_there("minisat") {
        assert!(
            std::env::var_os("CAPTIME_REQUIRE_PROGRAMS").is_none(),
            "minisat is not installed"
        );
        skipped("minisat is not installed");
        return;
    }
    let folder = follow("tutorial.md");
    assert!(folder.path().join("runs/sat/report.html").exists());
}

#[test]
fn every_price_of_the_page_on_prices_is_one() {
    follow("prices.md");
}

#[test]
fn runs_that_repeat_exactly_do() {
    let folder = follow("deterministic.md");
    let rounds = fs::read_to_string(folder.path().join("first.txt")).unwrap();
    assert_eq!(rounds.lines().count(), 40);
    assert!(rounds.lines().all(|line| line.contains("\"gain\":")));
}

#[test]
fn other_programs_ask_and_tell() {
    let folder = follow("embedding.md");
    assert!(folder.path().join("runs/mine/report.html").exists());
    let has_packages = Command::new("Rscript")
        .args(["-e", "library(processx); library(jsonlite)"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !has_packages {
        skipped("R with processx and jsonlite is not installed");
        return;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_captime"));
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("Rscript")
        .arg("tune.R")
        .current_dir(folder.path())
        .env(
            "PATH",
            format!("{}:{path}", program.parent().unwrap().display()),
        )
        .output()
        .unwrap();
    let (said, _) = expect(&output, 0);
    assert!(said.contains("use {\"depth\":8,\"width\":10}"), "{said}");
}

/// A page that is in no list is found by nobody.
#[test]
fn the_index_has_every_page() {
    let index = fs::read_to_string(docs().join("README.md")).unwrap();
    for entry in fs::read_dir(docs()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.strip_suffix(".md").is_some() && name != "README.md" {
            assert!(
                index.contains(&format!("({name})")),
                "docs/README.md leaves out {name}"
            );
        }
    }
}
