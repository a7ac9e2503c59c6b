//! `captime init`: scenarios that run as they are.

use std::path::Path;

use assert_cmd::Command;

fn captime(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_captime"));
    command.current_dir(folder).env("NO_COLOR", "1");
    command
}

#[test]
fn every_kind_passes_its_own_check_without_a_warning_of_substance() {
    for kind in ["forest", "solver", "script"] {
        let folder = tempfile::tempdir().unwrap();
        let done = captime(folder.path()).args(["init", kind]).assert().code(0);
        let written = String::from_utf8(done.get_output().stdout.clone()).unwrap();
        assert!(written.lines().count() >= 2, "{written}");
        for file in written.lines() {
            assert!(folder.path().join(file).is_file(), "{file}");
        }
        let checked = captime(folder.path())
            .args(["check", &format!("{kind}.yaml")])
            .assert()
            .code(0);
        let warnings = String::from_utf8(checked.get_output().stderr.clone()).unwrap();
        // Minisat need not be installed to write a scenario for it.
        let others = warnings
            .lines()
            .filter(|line| line.starts_with("warning") && !line.contains("`minisat`"));
        assert_eq!(others.count(), 0, "{kind}: {warnings}");
    }
}

/// Users who have only the binary have no `docs/`.
#[test]
fn every_kind_says_where_to_read_on_and_what_its_last_lines_mean() {
    for kind in ["forest", "solver", "script"] {
        let folder = tempfile::tempdir().unwrap();
        captime(folder.path()).args(["init", kind]).assert().code(0);
        let text = std::fs::read_to_string(folder.path().join(format!("{kind}.yaml"))).unwrap();
        assert!(
            text.contains(&format!("captime check {kind}.yaml")),
            "{text}"
        );
        for line in text.lines().filter(|line| line.contains("docs/")) {
            assert!(line.contains("in captime's repository"), "{line}");
        }
        for key in ["budget:", "slots:", "seed:"] {
            let line = text.lines().find(|line| line.starts_with(key)).unwrap();
            assert!(line.contains(" # "), "{line}");
        }
    }
}

/// As a newcomer would run it, but for a few rounds only.
#[test]
fn every_kind_runs_as_it_is() {
    for (kind, budget, rounds) in [
        ("forest", "budget: {wall: 30s}", 36),
        ("solver", "budget: {wall: 30s}", 40),
        ("script", "budget: {rounds: 300, wall: 60s}", 80),
    ] {
        if kind == "solver"
            && let Err(error) = std::process::Command::new("minisat").arg("--help").output()
        {
            assert!(
                std::env::var_os("CAPTIME_REQUIRE_PROGRAMS").is_none(),
                "minisat: {error}"
            );
            crate::test_run::skipped(&format!("minisat: {error}"));
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        captime(folder.path()).args(["init", kind]).assert().code(0);
        let file = folder.path().join(format!("{kind}.yaml"));
        let text = std::fs::read_to_string(&file).unwrap();
        let few = text.replace(budget, &format!("budget: {{rounds: {rounds}}}"));
        assert_ne!(few, text, "{kind}");
        std::fs::write(&file, few).unwrap();
        captime(folder.path())
            .args(["run", &format!("{kind}.yaml")])
            .assert()
            .code(0);
        let (_, outcomes) = crate::test_run::story(&folder.path().join("runs").join(kind));
        assert_eq!(outcomes.len(), rounds, "{kind}");
        let failed = outcomes.iter().find(|outcome| outcome.failed.is_some());
        assert!(failed.is_none(), "{kind}: {failed:?}");
        // The policy begins with short limits, at which a solver solves little. Without any reward, the exit code would be 3.
        let rewarded = outcomes.iter().filter(|outcome| outcome.reward.is_some());
        assert!(rewarded.count() > 0, "{kind}");
    }
}

#[test]
fn nothing_is_overwritten_and_nothing_is_half_written() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("score.sh"), "mine").unwrap();
    let refused = captime(folder.path())
        .args(["init", "script"])
        .assert()
        .code(2);
    let shown = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(shown.contains("`./score.sh` already exists"), "{shown}");
    assert_eq!(
        std::fs::read_to_string(folder.path().join("score.sh")).unwrap(),
        "mine"
    );
    assert!(!folder.path().join("script.yaml").exists());
    captime(folder.path())
        .args(["init", "script", "elsewhere"])
        .assert()
        .code(0);
    assert!(folder.path().join("elsewhere/script.yaml").is_file());
    captime(folder.path())
        .args(["init", "script", "elsewhere"])
        .assert()
        .code(2);
}

#[test]
fn the_script_prints_what_the_scenario_reads() {
    let folder = tempfile::tempdir().unwrap();
    captime(folder.path())
        .args(["init", "script"])
        .assert()
        .code(0);
    for (effort, mode, seed) in [
        ("1", "careful", "5"),
        ("6", "hasty", "123456789"),
        ("6", "careful", "2147483647"),
    ] {
        let done = std::process::Command::new("./score.sh")
            .args([effort, mode, seed])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let printed = String::from_utf8(done.stdout).unwrap();
        let score: f64 = printed
            .trim()
            .strip_prefix("error=")
            .unwrap()
            .parse()
            .unwrap();
        assert!(
            done.status.success() && (0.0..=1.0).contains(&score),
            "{printed}"
        );
    }
}

/// Minisat itself agrees that the formulas are formulas, and solves each of them within the limits of the scenario.
#[test]
fn the_formulas_can_be_solved() {
    let folder = tempfile::tempdir().unwrap();
    captime(folder.path())
        .args(["init", "solver"])
        .assert()
        .code(0);
    for instance in ["r01", "r12"] {
        let run = std::process::Command::new("minisat")
            .args(["-verb=0", &format!("instances/{instance}.cnf")])
            .current_dir(folder.path())
            .output();
        match run {
            Ok(done) => assert!(matches!(done.status.code(), Some(10 | 20)), "{done:?}"),
            Err(error) if std::env::var_os("CAPTIME_REQUIRE_PROGRAMS").is_some() => {
                panic!("minisat: {error}")
            }
            Err(error) => {
                eprintln!("skipped: minisat: {error}");
                return;
            }
        }
    }
}
