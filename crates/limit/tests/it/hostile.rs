//! Programs that attack their limiter: its processes, its groups and its counts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use captime_limit::{Cause, Contain, Launch, Level, LimitError, Limits, Output, Report};

use super::test_bench::{Book, TestBench, cpu, memory, skip, wall};

fn for_each_level(check: impl Fn(&mut TestBench)) {
    for level in [Level::Cgroup2, Level::Subreaper] {
        if let Some(mut bench) = TestBench::open_to_attack(level) {
            check(&mut bench);
        }
    }
}

/// At each level, with commands that can get at their supervisor and with those that cannot.
fn for_each_bench(check: impl Fn(&mut TestBench)) {
    for level in [Level::Cgroup2, Level::Subreaper] {
        for contain in [Contain::Off, Contain::Pids] {
            if let Some(mut bench) = TestBench::contained(level, contain) {
                check(&mut bench);
            }
        }
    }
}

fn is_root() -> bool {
    let is_root = rustix::process::getuid().is_root();
    if !is_root {
        skip(&"needs root");
    }
    is_root
}

/// A group that is there for one test.
struct Group(PathBuf);

impl Group {
    /// In the hierarchy of this controller, `unified` for cgroup2; `None` where there is none.
    fn make(hierarchy: &str) -> Option<Self> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let mount = Path::new("/sys/fs/cgroup").join(hierarchy);
        let mount = if hierarchy == "unified" && !mount.exists() {
            PathBuf::from("/sys/fs/cgroup")
        } else {
            mount
        };
        let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        // Groups outlive PID namespaces, in which the same numbers come again.
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let unique = format!("{}-{}-{next}", std::process::id(), since.as_micros());
        let path = mount.join(format!("hostile-{unique}"));
        if !mount.exists() || std::fs::create_dir(&path).is_err() {
            skip(&format!("no {hierarchy} groups"));
            return None;
        }
        Some(Self(path))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0.join("freezer.state"), "THAWED");
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Runs to its end; whatever that is, it comes soon after the limit and nothing is alive then. The slot works on.
fn attack(
    bench: &mut TestBench,
    arguments: &[&str],
    limits: &Limits,
    within: Duration,
) -> Result<Report, LimitError> {
    let book = Book::open();
    let launch = Launch::new(book.command(arguments));
    let start = Instant::now();
    let result = bench.launch(&launch, limits);
    let took = start.elapsed();
    assert!(took < within, "{arguments:?} took {took:?}: {result:?}");
    book.close();
    let report = bench.launch(&Launch::new(["true"]), &wall(15_000)).unwrap();
    assert_eq!((report.cause, report.exit_code), (Cause::None, Some(0)));
    result
}

#[test]
fn a_program_that_stops_its_supervisor_still_meets_its_limit() {
    for_each_level(|bench| {
        for mode in ["stop-parent", "stop-ancestors"] {
            // Before the main process asks whether its supervisor is alive, and continues it.
            let report = attack(bench, &[mode], &wall(600), Duration::from_secs(12)).unwrap();
            assert_eq!(report.cause, Cause::Wall, "{mode}: {report:?}");
        }
    });
}

#[test]
fn a_program_that_keeps_stopping_its_supervisor_is_ended() {
    for_each_level(|bench| {
        for mode in ["restop-parent", "restop-ancestors"] {
            match attack(bench, &[mode], &wall(600), Duration::from_secs(12)) {
                Ok(report) => assert_eq!(report.cause, Cause::Wall, "{mode}: {report:?}"),
                Err(error) => assert!(
                    matches!(error, LimitError::SupervisorStuck { .. }),
                    "{mode}: {error}"
                ),
            }
        }
    });
}

#[test]
fn a_supervisor_that_is_traced_is_replaced_and_says_why() {
    if !is_root() {
        return;
    }
    for_each_level(|bench| {
        let error = attack(
            bench,
            &["trace-parent"],
            &wall(600),
            Duration::from_secs(12),
        );
        let error = error.unwrap_err();
        assert!(
            matches!(&error, LimitError::SupervisorStuck { state } if state == "is being traced"),
            "{error}"
        );
        assert!(error.is_caused_by_command());
    });
}

#[test]
fn a_supervisor_or_command_that_is_frozen_does_not_stop_the_limits() {
    if !is_root() {
        return;
    }
    for_each_level(|bench| {
        for mode in ["freeze-parent", "freeze-self"] {
            let Some(group) = Group::make("freezer") else {
                return;
            };
            let result = attack(
                bench,
                &[mode, group.path()],
                &wall(600),
                Duration::from_secs(12),
            );
            match result {
                Ok(report) => assert_eq!(report.cause, Cause::Wall, "{mode}: {report:?}"),
                Err(error) => assert!(
                    matches!(error, LimitError::SupervisorStuck { .. }),
                    "{mode}: {error}"
                ),
            }
        }
    });
}

#[test]
fn what_outlives_a_killed_supervisor_is_ended() {
    for_each_level(|bench| {
        let lost = attack(
            bench,
            &["kill-parent"],
            &wall(15_000),
            Duration::from_secs(8),
        );
        assert_eq!(lost, Err(LimitError::SupervisorLost));
        // As root, out of its group first.
        if rustix::process::getuid().is_root()
            && let Some(group) = Group::make("unified")
        {
            let arguments = ["kill-parent", group.path()];
            let lost = attack(bench, &arguments, &wall(15_000), Duration::from_secs(8));
            assert_eq!(lost, Err(LimitError::SupervisorLost));
        }
    });
}

/// A process that detached, at the level where no group holds it, after all that watched over it was killed.
#[test]
fn what_outlives_a_killed_supervisor_and_its_guardian_is_ended() {
    captime_limit::adopt_orphans();
    for_each_level(|bench| {
        let lost = attack(
            bench,
            &["kill-ancestors"],
            &wall(15_000),
            Duration::from_secs(10),
        );
        assert_eq!(lost, Err(LimitError::SupervisorLost));
    });
}

/// The same as the first process of a PID namespace, where the session has the number 0 because it began outside.
#[test]
fn what_outlives_both_is_ended_in_a_session_from_outside_the_namespace() {
    if !is_root() {
        return;
    }
    let inner = "hostile::what_outlives_a_killed_supervisor_and_its_guardian_is_ended";
    let output = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", inner])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("unshare: ") {
        skip(&errors);
        return;
    }
    assert!(said.contains("1 passed; 0 failed"), "{said}{errors}");
}

#[test]
fn undoing_the_pinning_does_not_widen_a_cpu_limit() {
    for_each_level(|bench| {
        let ours = rustix::thread::sched_getaffinity(None).unwrap();
        let first = (0..1024).find(|&cpu| ours.is_set(cpu)).unwrap();
        let limits = Limits {
            cpus: Some(vec![first]),
            ..cpu(800)
        };
        let (report, books) = bench.run(&["widen", "15000"], &limits);
        assert_eq!(report.cause, Cause::Cpu, "{report:?}");
        assert!(books.cpu() < 0.95, "{}", books.cpu());
    });
}

#[test]
fn memory_outside_the_group_is_counted_and_never_called_exact() {
    if !is_root() {
        return;
    }
    let Some(mut bench) = TestBench::open_to_attack(Level::Cgroup2) else {
        return;
    };
    if !bench.keeps_memory() {
        skip(&"no memory controller");
        return;
    }
    let hierarchy = if Path::new("/sys/fs/cgroup/memory/tasks").exists() {
        "memory"
    } else {
        "unified"
    };
    let Some(group) = Group::make(hierarchy) else {
        return;
    };
    for arguments in [
        ["leave-memory", group.path(), "300"],
        ["raise-memory", "300", ""],
    ] {
        let (report, _) = bench.run(&arguments, &memory(100));
        assert_eq!(report.cause, Cause::Memory, "{arguments:?}: {report:?}");
        assert!(!report.memory_exact, "{arguments:?}: {report:?}");
    }
    // A run that keeps to the rules is exact again.
    let (report, _) = bench.run(&["allocate", "40", "0"], &memory(100));
    assert_eq!(report.cause, Cause::None, "{report:?}");
    assert!(report.memory_exact, "{report:?}");
}

#[test]
fn a_file_left_in_memory_is_not_charged_to_the_next_run() {
    for_each_level(|bench| {
        let folder = Path::new("/dev/shm");
        let Ok(folder) = tempfile::tempdir_in(folder) else {
            skip(&"no tmpfs");
            return;
        };
        let file = folder.path().join("left");
        let arguments = ["leave-file", file.to_str().unwrap(), "60"];
        let (report, _) = bench.run(&arguments, &memory(300));
        assert_eq!((report.cause, report.exit_code), (Cause::None, Some(0)));
        assert_eq!(file.metadata().unwrap().len(), 60 << 20);
        let (report, books) = bench.run(&["allocate", "10", "0"], &memory(40));
        assert_eq!(report.cause, Cause::None, "{report:?}");
        assert!(books.allocated);
        assert!(report.peak_memory_bytes < 30 << 20, "{report:?}");
    });
}

/// The file is small enough to stay in the group of the next run, were it not for that run's own limit.
#[test]
fn a_limit_smaller_than_what_a_run_left_can_be_set() {
    for_each_level(|bench| {
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
            skip(&"no tmpfs");
            return;
        };
        let file = format!("of={}", folder.path().join("left").display());
        let leave = Launch::new(["dd", "if=/dev/zero", &file, "bs=1k", "count=800"]);
        let report = bench.launch(&leave, &memory(300)).unwrap();
        assert_eq!((report.cause, report.exit_code), (Cause::None, Some(0)));
        let limits = Limits {
            memory: Some(640 << 10),
            ..Limits::default()
        };
        bench.launch(&Launch::new(["true"]), &limits).unwrap();
    });
}

#[test]
fn groups_that_others_made_are_left_alone() {
    if !is_root() || TestBench::open_to_attack(Level::Cgroup2).is_none() {
        return;
    }
    // Where a captime makes its groups, and so looks for abandoned ones.
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = membership
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))
        .unwrap();
    let mount = Path::new("/sys/fs/cgroup/unified");
    let mount = if mount.exists() {
        mount
    } else {
        Path::new("/sys/fs/cgroup")
    };
    for name in [
        "captime-sweep.service",
        "captime-12-34",
        "captime-slot-12-34",
    ] {
        let path = mount.join(own).join(name);
        std::fs::create_dir(&path).unwrap();
        let mut other = Command::new("sleep")
            .arg("20")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        std::fs::write(path.join("cgroup.procs"), other.id().to_string()).unwrap();
        let bench = TestBench::open_to_attack(Level::Cgroup2).unwrap();
        drop(bench);
        let is_alive = other.try_wait().unwrap().is_none();
        let _ = other.kill();
        other.wait().unwrap();
        let removed = std::fs::remove_dir(&path);
        assert!(is_alive, "{name} was swept");
        assert!(removed.is_ok(), "{name}: {removed:?}");
    }
}

#[test]
fn fork_bombs_end_soon() {
    for_each_bench(|bench| {
        for mode in ["fork-bomb", "fork-bomb-sessions", "fork-bomb-continued"] {
            let arguments = [mode, "7"];
            // With limits for which all processes are looked at from time to time.
            let limits = Limits {
                cpu: Some(Duration::from_secs(100)),
                memory: Some(4 << 30),
                ..wall(800)
            };
            let report = attack(bench, &arguments, &limits, Duration::from_secs(12)).unwrap();
            assert_eq!(report.cause, Cause::Wall, "{mode}: {report:?}");
        }
    });
}

/// At level `subreaper`, `nest-groups` makes its groups below that of this test, where captime leaves them alone.
fn remove_nested_groups() {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let mount = Path::new("/sys/fs/cgroup/unified");
    let mount = if mount.exists() {
        mount
    } else {
        Path::new("/sys/fs/cgroup")
    };
    let top = mount.join(own.unwrap_or_default());
    let nested = |count| {
        (0..count).fold(top.clone(), |group, level| {
            group.join(format!("nested-{level}"))
        })
    };
    for count in (1..=20).rev() {
        let _ = std::fs::remove_dir(nested(count));
    }
}

#[test]
fn tricks_with_processes_do_not_delay_the_end() {
    for_each_bench(|bench| {
        for arguments in [
            &["wait-in-vfork"][..],
            &["subreaper-chain", "20"],
            &["thread-exec"],
            &["signal-flood"],
            &["starve-parent", "8"],
            &["nest-groups", "20"],
        ] {
            let report = attack(bench, arguments, &wall(600), Duration::from_secs(15)).unwrap();
            assert_eq!(report.cause, Cause::Wall, "{arguments:?}: {report:?}");
        }
        remove_nested_groups();
        // Its first process leaves, where the namespace could be made.
        let arguments = ["own-namespace"];
        let report = attack(bench, &arguments, &wall(600), Duration::from_secs(15)).unwrap();
        assert!(report.left_behind > 0, "{report:?}");
    });
}

/// What a command inherits from its supervisor, in words.
fn inherited(bench: &mut TestBench) -> String {
    let script =
        "nice; ulimit -n; grep Cpus_allowed_list /proc/self/status; cut -d' ' -f41 /proc/self/stat";
    let mut launch = Launch::new(["sh", "-c", script]);
    launch.output = Output::Capture { limit: 1 << 12 };
    let report = bench.launch(&launch, &wall(15_000)).unwrap();
    report.stdout.unwrap().text()
}

#[test]
fn what_a_command_does_to_its_supervisor_does_not_touch_the_next_one() {
    // Without memory or descriptors, supervisor and guardian may both be lost.
    captime_limit::adopt_orphans();
    for_each_bench(|bench| {
        let before = inherited(bench);
        for arguments in [&["starve-parent", "2"][..], &["limit-parent"]] {
            match attack(bench, arguments, &wall(600), Duration::from_secs(15)) {
                Ok(report) => assert_eq!(report.cause, Cause::Wall, "{arguments:?}: {report:?}"),
                // A supervisor that may have no descriptors cannot wait, and a starved one may not answer in time.
                Err(error) => assert!(
                    matches!(
                        error,
                        LimitError::System { .. }
                            | LimitError::SupervisorStuck { .. }
                            | LimitError::SupervisorLost
                    ),
                    "{arguments:?}: {error}"
                ),
            }
            assert_eq!(inherited(bench), before, "{arguments:?}");
        }
    });
}
