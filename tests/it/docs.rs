//! The pages for users, followed to the letter: their files are written, their commands are run, in the order of the page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::test_run::{expect, skipped};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

/// The fenced blocks of a page: what kind, and the text.
pub(crate) fn blocks(page: &str) -> Vec<(String, String)> {
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

/// Writes the files of a page and runs its commands, in a fresh folder. `console` is for what the machine itself needs (`apt`, systemd).
fn follow(page: &str) -> tempfile::TempDir {
    follow_with(page, &[], &[])
}

/// The same, beginning with files that the page takes for granted: the reader's own. `shorter` replaces parts of commands that take
/// minutes.
fn follow_with(page: &str, files: &[(&str, &str)], shorter: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_captime"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    // Tests have less time than readers.
    let budget = regex::Regex::new(r"budget: \{wall: \w+\}").unwrap();
    let mut commands = 0;
    for (kind, mut text) in blocks(page) {
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
                for (long, short) in shorter {
                    text = text.replace(long, short);
                }
                let output = Command::new("bash")
                    .args(["-euo", "pipefail", "-c", &text])
                    .current_dir(folder.path())
                    .env("PATH", &path)
                    .output()
                    .unwrap();
                expect(&output, 0);
            }
            // The tests of the Python package run the first; the others show what is printed, or belong to other programs.
            "python" | "json" | "text" | "ini" | "console" => {}
            other => panic!("{page}: how is a block of `{other}` tested?"),
        }
    }
    assert!(
        commands > 0 || ["policies.md", "prices.md"].contains(&page),
        "{page}"
    );
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
                .env("PATH", &path)
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
fn the_page_on_more_than_one_machine_works_on_this_one() {
    let folder = follow("cluster.md");
    let rounds = fs::read_to_string(folder.path().join("rounds.csv")).unwrap();
    let nodes = ["captime-1", "captime-2"];
    assert!(rounds.lines().count() > 60, "{rounds}");
    for node in nodes {
        assert!(rounds.contains(&format!(",{node}")), "{node}: {rounds}");
    }
    // Each way to name nodes is one that a scenario may use.
    let (_, ways) = (blocks("cluster.md").into_iter())
        .find(|(kind, text)| kind == "text" && text.starts_with("slots: "))
        .unwrap();
    let scenario = fs::read_to_string(folder.path().join("night.yaml")).unwrap();
    let (rest, _) = scenario.split_once("slots: ").unwrap();
    for way in ways.lines() {
        fs::write(folder.path().join("hosts.txt"), "alpha\n").unwrap();
        let text = format!("{rest}{way}\n");
        let parsed = captime::scenario::parse(&text, "night.yaml".as_ref(), folder.path());
        assert!(
            parsed.is_ok_and(|parsed| parsed.scenario.nodes.is_some()),
            "{way}"
        );
    }
    assert_eq!(ways.lines().count(), 3);
    // Nothing is submitted here, but each command writes its script.
    fs::write(
        folder.path().join("sat.yaml"),
        rest.replace("name: night", "name: sat") + "slots: {slurm: auto}\n",
    )
    .unwrap();
    let submits = commands("cluster.md", "console");
    assert_eq!(submits.len(), 3);
    for line in submits {
        let words = line.replace(" --dry-run", "");
        let words = words.replace("captime submit sat.yaml", "submit sat.yaml --dry-run");
        let output = Command::new(env!("CARGO_BIN_EXE_captime"))
            .args(words.split_whitespace())
            .current_dir(folder.path())
            .output()
            .unwrap();
        expect(&output, 0);
        let script = fs::read_to_string(folder.path().join("sat.sbatch")).unwrap();
        assert!(script.contains("--nodes=4"), "{line}: {script}");
        fs::remove_file(folder.path().join("sat.sbatch")).unwrap();
    }
}

/// The commands in the blocks of a kind, without what is said about them.
fn commands(page: &str, kind: &str) -> Vec<String> {
    let blocks = blocks(page).into_iter().filter(|(of, _)| of == kind);
    let lines = blocks.flat_map(|(_, text)| text.lines().map(str::to_owned).collect::<Vec<_>>());
    lines
        .map(|line| line.split(" # ").next().unwrap().trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

/// Where each block with something to run is run. A new page, or a new block on a page that nothing runs, fails here.
#[test]
fn every_block_of_every_page_is_run_or_cannot_be() {
    // By this file, which runs `sh`, `yaml` and `r`.
    let followed = [
        "cluster.md",
        "deterministic.md",
        "embedding.md",
        "forest.md",
        "overnight.md",
        "paper-experiments.md",
        "policies.md",
        "prices.md",
        "pull.md",
        "report.md",
        "spaces.md",
        "tutorial.md",
        "virtual-targets.md",
    ];
    // These change the machine, do not end, or take hours and the network.
    let outside = [
        "apt install ",
        "tmux new ",
        "systemctl --user ",
        "journalctl --user ",
        "captime serve",
        "captime submit ", // its options are tried with `--dry-run`
        "scripts/compare-tuners",
        "examples/cbc/make-instances",
        "examples/clasp/make-instances",
    ];
    for entry in fs::read_dir(docs()).unwrap() {
        let page = entry.unwrap().file_name().into_string().unwrap();
        if Path::new(&page)
            .extension()
            .is_none_or(|ending| ending != "md")
        {
            continue;
        }
        for (kind, text) in blocks(&page) {
            match kind.as_str() {
                "sh" | "r" => assert!(followed.contains(&page.as_str()), "{page}: {text}"),
                // The scenarios of the reference are parsed by tests/it/scenario.rs.
                "yaml" => assert!(
                    followed.contains(&page.as_str()) || page == "scenario.md",
                    "{page}: {text}"
                ),
                // By the tests of the Python package.
                "python" => assert!(["python.md", "pull.md"].contains(&page.as_str()), "{page}"),
                "console" => {}
                // What is printed, and files of other programs.
                "json" | "text" | "ini" => assert!(
                    !text.lines().any(|line| line.starts_with("captime ")),
                    "{page}: commands that nothing runs: {text}"
                ),
                other => panic!("{page}: how is a block of `{other}` tested?"),
            }
        }
        for line in commands(&page, "console") {
            assert!(
                outside.iter().any(|known| line.starts_with(known)),
                "{page}: why is `{line}` not run?"
            );
        }
    }
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

/// A solver of the reader's own: two parameters, and it tells whether it solved an instance.
const SOLVER: &str = "
target: {command: [sh, -c, 'exit 10', solver, '{decay}', '{restarts}', '{instance}', '{seed}'], instances: instances/*.cnf, test: test/*.cnf, reward: {exit: [10, 20]}}
arms: {space: {decay: {real: [0.7, 0.99], default: 0.95}, restarts: {integer: [1, 1000], default: 100}}, sample: 20}
limits: {of: cpu, from: 0.1s, to: 5s, points: 4, scale: log, wall: 60s}
budget: {rounds: 40}
";

#[test]
fn other_tuners_and_scripts_pull() {
    follow_with(
        "pull.md",
        &[
            ("solver.yaml", SOLVER),
            ("instances/a.cnf", ""),
            ("test/b.cnf", ""),
        ],
        &[],
    );
}

#[test]
fn a_night_is_prepared_and_read_in_the_morning() {
    let folder = follow_with(
        "overnight.md",
        &[
            ("sweep.yaml", SOLVER),
            ("instances/a.cnf", ""),
            ("test/b.cnf", ""),
        ],
        &[],
    );
    assert!(folder.path().join("runs/sweep/report.html").exists());
}

#[test]
fn a_report_is_written_as_the_page_says() {
    let folder = follow_with(
        "report.md",
        &[
            ("night.yaml", SOLVER),
            ("instances/a.cnf", ""),
            ("test/b.cnf", ""),
        ],
        &[],
    );
    assert!(folder.path().join("runs/night/report.html").exists());
}

#[test]
fn a_forest_is_saved_and_predicts() {
    let rows: Vec<String> = (0..40).map(|row| format!("{row},{}", 3 * row)).collect();
    let folder = follow_with(
        "forest.md",
        &[
            ("houses.csv", &format!("Size,Price\n{}\n", rows.join("\n"))),
            ("new.csv", "Size\n10\n30\n"),
        ],
        &[],
    );
    let predicted = fs::read_to_string(folder.path().join("predicted.csv")).unwrap();
    let prices: Vec<f64> = predicted
        .lines()
        .skip(1)
        .map(|price| price.parse().unwrap())
        .collect();
    assert!(prices.len() == 2 && prices[0] < prices[1], "{predicted}");
}

#[test]
fn the_scenario_on_the_page_on_policies_is_one() {
    follow_with(
        "policies.md",
        &[
            ("runtimes.txt", "instance,one,two\na,0.5,3000\nb,1,2\n"),
            ("configurations.csv", "number,x,dummy1\n1,1,1\n2,2,1\n"),
        ],
        &[],
    );
}

/// The paper's experiments, with few rounds and with fewer and smaller forests.
#[test]
fn the_papers_experiments_are_repeated_by_the_commands_of_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let mut files = vec![];
    for name in ["replay.yaml", "consumption.csv", "reward.csv"] {
        let name = format!("examples/ames-forest/{name}");
        files.push((name.clone(), read(&name)));
    }
    let rows: Vec<String> = read("datasets/ames_like.csv")
        .lines()
        .take(100)
        .map(str::to_owned)
        .collect();
    files.push(("datasets/ames_like.csv".to_owned(), rows.join("\n")));
    let mut scenario = read("examples/ames-forest/ames-forest.yaml");
    for (long, short) in [
        ("{from: 100, to: 700, step: 100}", "[5, 10]"),
        ("min_node_size: [3, 5, 7, 9]", "min_node_size: [3]"),
        ("[0.55, 0.632, 0.75, 0.8]", "[0.55]"),
        ("rounds: 13440", "rounds: 24"),
    ] {
        assert!(scenario.contains(long), "{long}");
        scenario = scenario.replace(long, short);
    }
    files.push(("examples/ames-forest/ames-forest.yaml".to_owned(), scenario));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let folder = follow_with(
        "paper-experiments.md",
        &files,
        &[
            ("study paper", "study paper --rounds 50 --repetitions 2"),
            ("--repetitions 10 --out", "--repetitions 1 --out"),
            ("--times 10", "--times 1"),
        ],
    );
    for made in ["figures", "real", "recorded/consumption.csv"] {
        assert!(folder.path().join(made).exists(), "{made}");
    }
}

/// The scenarios and parts of scenarios on pages of reference.
#[test]
fn spaces_and_virtual_targets_are_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = "instance,one,two\na,0.5,3000\nb,1,2\nc,2,2\nd,0.7,9\n";
    for (name, text) in [
        ("known-good.csv", "decay,restarts\n0.9,50\n"),
        ("runtimes.csv", matrix),
        (
            "rewards.csv",
            "instance,one,two\na,1,0\nb,1,1\nc,1,1\nd,1,0.5\n",
        ),
        ("configurations.csv", "x\n1\n2\n"),
        ("consumption.csv", matrix),
        ("arms.csv", "x\n1\n2\n"),
        ("space.yaml", "space: {x: {integer: [1, 2]}}\n"),
        ("params.pcs", "decay {0.8, 0.9} [0.9]\n"),
        (
            "space.json",
            r#"{"hyperparameters": [{"name": "decay", "type": "uniform_float", "lower": 0.1, "upper": 1.0, "default": 0.5, "log": false}], "conditions": [], "forbiddens": []}"#,
        ),
        (
            "scenario.txt",
            "algo = ./wrapper\nparamfile = params.pcs\ninstance_file = training.txt\ncutoff_time = 5\nrun_obj = runtime\n",
        ),
        ("training.txt", "a.cnf\n"),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_captime"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let earlier = "name: last-night\ntarget: {command: ['true', '{params}']}\n\
                   arms: {space: {decay: {real: [0.5, 1.5]}}}\nlimits: {of: wall, grid: [10s]}\nbudget: {rounds: 2}\n";
    fs::write(folder.path().join("earlier.yaml"), earlier).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_captime"))
        .args(["run", "earlier.yaml", "--quiet"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let mut checked = 0;
    for page in ["spaces.md", "virtual-targets.md"] {
        for (kind, mut text) in blocks(page) {
            if kind == "sh" {
                let output = Command::new("bash")
                    .args(["-euo", "pipefail", "-c", &text])
                    .current_dir(folder.path())
                    .env("PATH", &path)
                    .output()
                    .unwrap();
                expect(&output, 0);
            }
            if kind != "yaml" {
                continue;
            }
            for (key, rest) in [
                ("target:", "target: {command: [true, '{params}']}\n"),
                ("limits:", "limits: {grid: [1s, 10s]}\n"),
            ] {
                if !text.contains(key) && !text.contains("synthetic") {
                    text += rest;
                }
            }
            let file = folder.path().join("page.yaml");
            fs::write(&file, &text).unwrap();
            let output = Command::new(env!("CARGO_BIN_EXE_captime"))
                .arg("check")
                .arg(&file)
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{page}: {}\n{text}",
                String::from_utf8_lossy(&output.stderr)
            );
            checked += 1;
        }
    }
    assert_eq!(checked, 5);
    let imported = fs::read_to_string(folder.path().join("mine.yaml")).unwrap();
    assert!(imported.contains("wrapper:"), "{imported}");
}

/// The tables and pictures of the comparison are what the script makes of the results beside them.
#[test]
fn the_comparison_of_tuners_shows_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(docs().join("comparison.md")).unwrap();
    let mut drawn = 0;
    for entry in fs::read_dir(docs().join("comparison")).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|end| end != "csv") {
            continue;
        }
        fs::copy(&file, folder.path().join(file.file_name().unwrap())).unwrap();
        let name = file.file_stem().unwrap().to_str().unwrap();
        let output = Command::new("python3")
            .arg("-B")
            .arg(root.join("scripts/compare_tuners/compare.py"))
            .args(["--draw", "--out"])
            .arg(folder.path())
            .arg(name)
            .output()
            .unwrap();
        expect(&output, 0);
        let made = |end: &str| fs::read_to_string(folder.path().join(format!("{name}.{end}")));
        let picture = fs::read_to_string(file.with_extension("svg")).unwrap();
        assert_eq!(made("svg").unwrap(), picture, "{name}.svg");
        assert!(
            page.contains(made("md").unwrap().trim()),
            "the table of {name}"
        );
        drawn += 1;
    }
    assert!(drawn >= 1, "{drawn} comparisons");
}

/// Other tuners need the parameters only: the arguments of clasp's are beyond irace.
#[test]
fn the_comparison_of_tuners_gives_irace_the_space_of_clasp() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let said = Command::new("python3")
        .args(["-B", "-c"])
        .arg(
            "
from target import Target
clasp = Target.__new__(Target)
clasp.folder, clasp.arms = '.', None
clasp.scenario = {'arms': {'space': {'moms': {'choice': [True, False], 'argument': '--init-moms'}, 'otfs': {'ordered': [0, 1, 2]}},
                           'forbid': ['moms == true and otfs == 2']}}
print(clasp.space_as('irace'))
",
        )
        .env("PYTHONPATH", root.join("scripts/compare_tuners"))
        .env("CAPTIME", env!("CARGO_BIN_EXE_captime"))
        .output()
        .unwrap();
    let (space, _) = expect(&said, 0);
    assert!(
        space.contains(r#"moms "-moms " c ("true", "false")"#),
        "{space}"
    );
    assert!(space.contains("[forbidden]\nmoms == \"true\""), "{space}");
}

/// Readers find a page only if a list has it.
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
