//! Machines and users that lack something: a clear error each, or a lower level that says so, and nothing left behind.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use captime_limit::{Launch, Level, LimitError, Limits};
use serde_json::Value;

use super::captime;
use super::delegated::{Delegated, Somebody};
use super::test_bench::{TestBench, levels, skip, wall};
use super::traces::{leaving_nothing, sweep};

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn ten_megabytes_of_arguments_are_refused_by_name() {
    for level in [Level::Cgroup2, Level::Subreaper] {
        let Some(mut bench) = TestBench::at(level) else {
            continue;
        };
        let mut command = vec!["true".to_owned()];
        command.extend((0..100).map(|_| "x".repeat(100_000)));
        let error = bench
            .launch(&Launch::new(command), &wall(15_000))
            .unwrap_err();
        assert!(
            matches!(&error, LimitError::Exec { errno, .. } if errno.0 == libc::E2BIG),
            "{error}"
        );
        assert!(error.to_string().contains("`true`"), "{error}");
        // The slot continues.
        let report = bench.launch(&Launch::new(["true"]), &wall(15_000)).unwrap();
        assert_eq!(report.exit_code, Some(0));
    }
}

#[test]
fn nul_in_an_argument_is_refused() {
    let mut bench = TestBench::at(Level::Subreaper).unwrap();
    let error = bench.launch(&Launch::new(["true", "a\0b"]), &Limits::default());
    assert!(matches!(error, Err(LimitError::Nul { .. })), "{error:?}");
    let error = bench.launch(&Launch::default(), &Limits::default());
    assert_eq!(error, Err(LimitError::NoCommand));
}

/// Runs with ever more of something until it works; before that every end must be an error that says `short_of`.
///
/// What works is a run that a limit ends, so that there is something that could be left behind.
fn works_once_there_is_enough(
    mut run: impl FnMut(u32) -> std::process::Output,
    amounts: std::ops::Range<u32>,
    short_of: &str,
    is_exact: bool,
) {
    let mut outcomes = Vec::new();
    for amount in amounts {
        let output = run(amount);
        let stderr = text(&output.stderr);
        assert!(!stderr.contains("panicked"), "{amount}: {stderr}");
        match output.status.code() {
            Some(124) => {
                let seen: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
                assert_eq!(seen["cause"], "wall", "{amount}: {stderr}");
                assert_eq!(seen["memory_exact"], is_exact, "{amount}: {stderr}");
            }
            Some(125) => assert!(stderr.contains(short_of), "{amount}: {stderr}"),
            // The dynamic linker itself could not open our libraries.
            Some(127) => assert!(stderr.contains("shared libraries"), "{amount}: {stderr}"),
            other => panic!("{amount}: {other:?} {stderr}"),
        }
        outcomes.push(output.status.code());
    }
    assert!(
        outcomes.contains(&Some(125)) && outcomes.last() == Some(&Some(124)),
        "{outcomes:?}"
    );
}

#[test]
fn exhausted_descriptors_are_a_clear_error() {
    for level in [Level::Cgroup2, Level::Subreaper] {
        let Some(bench) = TestBench::at(level) else {
            continue;
        };
        for memory in ["", "--memory 1GiB"] {
            let run = |limit: u32| {
                let script = format!(
                    "ulimit -n {limit}; exec \"$0\" exec --level {level} {memory} --output-limit 1KiB --wall 50ms \
                     --report - -- sleep 20"
                );
                let mut command = Command::new("sh");
                command.args(["-c", &script]).arg(captime());
                leaving_nothing(&mut command)
            };
            // Without a limit, the memory controller is not used.
            let is_exact = bench.keeps_memory() && !memory.is_empty();
            works_once_there_is_enough(run, 3..34, "Too many open files", is_exact);
        }
    }
}

#[test]
fn a_reached_process_limit_is_a_clear_error() {
    // Users of their own, since the kernel counts the processes of a user, not of a program.
    for (memory, uid) in [(None, 54_322), (Some("1GiB"), 54_323)] {
        let Some(somebody) = Somebody::new(uid) else {
            return;
        };
        let flags = |level| {
            let memory = memory.map(|limit| format!("--memory={limit}"));
            ["exec", "--wall=50ms", "--report=-", level]
                .into_iter()
                .map(str::to_owned)
                .chain(memory)
                .chain(["sleep".to_owned(), "20".to_owned()])
        };
        let run = |limit: u32| {
            let mut command = somebody.shell(&limited(limit));
            command.args(flags("--level=subreaper"));
            leaving_nothing(&mut command)
        };
        works_once_there_is_enough(run, 1..6, "Resource temporarily unavailable", false);
        let Some(delegated) = Delegated::alone(&somebody) else {
            return;
        };
        let run = |limit: u32| {
            let command = &mut delegated.shell(&limited(limit));
            command.args(flags("--level=cgroup2"));
            delegated.run(command)
        };
        works_once_there_is_enough(
            run,
            1..8,
            "Resource temporarily unavailable",
            memory.is_some(),
        );
        delegated.close();
    }
}

/// Shell: at most this many processes. Shells differ in the syntax.
fn limited(processes: u32) -> String {
    format!("ulimit -u {processes} 2>/dev/null || ulimit -p {processes}")
}

#[test]
fn without_any_rights_the_level_is_subreaper_and_says_so() {
    let Some(nobody) = Somebody::new(54_321) else {
        return;
    };
    for memory in [None, Some("--memory=1GiB")] {
        let mut command = nobody.captime();
        command
            .args(["exec", "--report=-", "--wall=0.1s"])
            .args(memory)
            .args(["--", "sleep", "20"]);
        let output = leaving_nothing(&mut command);
        let stderr = text(&output.stderr);
        let seen: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
        assert_eq!(output.status.code(), Some(124));
        assert_eq!(seen["level"], "subreaper");
        assert_eq!(
            (&seen["cpu_exact"], &seen["memory_exact"]),
            (&false.into(), &false.into())
        );
    }
    let mut command = nobody.captime();
    command.args(["exec", "--level", "cgroup2", "--", "true"]);
    let output = leaving_nothing(&mut command);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125));
    assert!(
        stderr.contains("level `cgroup2` is not available"),
        "{stderr}"
    );
    assert!(stderr.contains("captime check"), "{stderr}");
}

#[test]
fn without_a_cgroup_filesystem_limits_still_hold() {
    if !rustix::process::getuid().is_root() {
        skip(&"needs root to hide the cgroup filesystem");
        return;
    }
    let script = "umount -R -l /sys/fs/cgroup || exit 77; \"$0\" check; \
                  exec \"$0\" exec --wall 0.1s --report - -- sleep 20";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(captime());
    let output = leaving_nothing(&mut command);
    if output.status.code() == Some(77) || text(&output.stderr).contains("unshare failed") {
        skip(&"no private mounts here");
        return;
    }
    let stderr = text(&output.stderr);
    let seen: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&seen["level"], &seen["cause"]),
        (&"subreaper".into(), &"wall".into())
    );
    let said = text(&output.stdout);
    assert!(said.contains("no cgroup2 filesystem is mounted"), "{said}");
}

#[test]
fn nothing_is_left_behind_by_a_run_that_failed() {
    for level in levels() {
        let mut command = Command::new(captime());
        command
            .args(["exec", "--level", level, "--memory", "1B"])
            .args(["--", "no-such-program"]);
        let output = leaving_nothing(&mut command);
        // With cgroup2 alone the kernel may end it before it can fail.
        let status = output.status.code();
        assert!(matches!(status, Some(124 | 125 | 127)), "{status:?}");
    }
}

#[test]
fn many_at_once_all_have_exact_memory_limits() {
    let Some(bench) = TestBench::at(Level::Cgroup2) else {
        return;
    };
    if !bench.keeps_memory() {
        skip(&"no memory controller");
        return;
    }
    // Each sweeps where all the others are just making their groups, and one thread does nothing else.
    let is_over = AtomicBool::new(false);
    let run = || {
        let mut command = Command::new(captime());
        command.args(["exec", "--memory", "1GiB", "--report", "-", "--", "true"]);
        text(&leaving_nothing(&mut command).stderr)
    };
    let reports: Vec<String> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                sweep();
            }
        });
        let runs: Vec<_> = (0..50).map(|_| scope.spawn(run)).collect();
        let ended: Vec<_> = runs.into_iter().map(ScopedJoinHandle::join).collect();
        // Before any of them can fail this test: the scope waits for the sweeper.
        is_over.store(true, Ordering::SeqCst);
        ended.into_iter().map(Result::unwrap).collect()
    });
    for report in reports {
        let seen: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(seen["memory_exact"], true, "{report}");
        assert_eq!(seen["level"], "cgroup2", "{report}");
    }
}
