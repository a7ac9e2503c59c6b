//! Runs that are killed, cancelled, dropped or crowded: no process stays alive, and captime leaves nothing behind.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use captime_limit::{Cause, Launch, Level, LimitError, Limits, Setup, Supervisor};

use super::captime;
use super::test_bench::{Book, TestBench, cpu, now, skip, wall};
use super::traces::groups_of_are_gone;
use crate::test_run::program;

pub fn for_each_level(check: impl Fn(&mut TestBench)) {
    for level in [Level::Cgroup2, Level::Subreaper] {
        if let Some(mut bench) = TestBench::at(level) {
            check(&mut bench);
        }
    }
}

pub fn pid(id: u32) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(i32::try_from(id).unwrap()).unwrap()
}

fn kill(id: u32) {
    rustix::process::kill_process(pid(id), rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_cancelled_run_ends_and_says_so() {
    for_each_level(|bench| {
        let book = Book::open();
        let launch = Launch::new(book.command(&["daemon"]));
        let canceller = bench.supervisor.canceller();
        let report = bench.runtime.block_on(async {
            let cancel = async {
                book.misbehaves().await;
                canceller.cancel();
            };
            let limits = wall(15_000);
            tokio::join!(bench.supervisor.run(&launch, &limits), cancel).0
        });
        let report = report.unwrap();
        assert_eq!((report.cause, report.signal), (Cause::Cancelled, Some(9)));
        let books = book.close();
        assert!(books.end - books.start < Duration::from_secs(5));
        // A cancellation of nothing does not hit the next run.
        canceller.cancel();
        let report = bench.launch(&Launch::new(["true"]), &wall(15_000)).unwrap();
        assert_eq!(report.cause, Cause::None);
    });
}

#[test]
fn a_dropped_run_ends_and_the_slot_goes_on() {
    for_each_level(|bench| {
        let book = Book::open();
        let launch = Launch::new(book.command(&["daemon"]));
        bench.runtime.block_on(async {
            let limits = wall(15_000);
            let run = bench.supervisor.run(&launch, &limits);
            tokio::select! {
                report = run => panic!("{report:?}"),
                () = book.misbehaves() => {}
            }
        });
        let books = book.close();
        assert!(books.end - books.start < Duration::from_secs(5));
        let report = bench.launch(&Launch::new(["true"]), &wall(15_000)).unwrap();
        assert_eq!((report.cause, report.exit_code), (Cause::None, Some(0)));
    });
}

#[test]
fn a_dropped_supervisor_leaves_nothing() {
    for level in [Level::Cgroup2, Level::Subreaper] {
        let Some(mut bench) = TestBench::at(level) else {
            continue;
        };
        let book = Book::open();
        let launch = Launch::new(book.command(&["deaf-daemon"]));
        let guardian = parent_of(bench.supervisor.id().unwrap());
        bench.runtime.block_on(async {
            let limits = wall(15_000);
            let run = bench.supervisor.run(&launch, &limits);
            tokio::select! {
                report = run => panic!("{report:?}"),
                () = book.misbehaves() => {}
            }
        });
        drop(bench);
        let books = book.close();
        assert!(books.end - books.start < Duration::from_secs(5));
        groups_of_are_gone(guardian);
    }
}

#[test]
fn a_killed_supervisor_is_cleaned_up_after_and_replaced() {
    let Some(mut bench) = TestBench::at(Level::Cgroup2) else {
        return;
    };
    let book = Book::open();
    let launch = Launch::new(book.command(&["deaf-daemon"]));
    let pid = bench.supervisor.id().unwrap();
    let guardian = parent_of(pid);
    let result = bench.runtime.block_on(async {
        let kill = async {
            book.misbehaves().await;
            kill(pid);
        };
        let limits = wall(15_000);
        tokio::join!(bench.supervisor.run(&launch, &limits), kill).0
    });
    assert_eq!(result, Err(LimitError::SupervisorLost));
    let books = book.close();
    assert!(books.end - books.start < Duration::from_secs(5));
    groups_of_are_gone(guardian);
    let report = bench.launch(&Launch::new(["true"]), &wall(15_000)).unwrap();
    assert_eq!(report.exit_code, Some(0));
}

/// A program that is captime, but as a supervisor looks at the file `level` beside it when asked for the best level there is,
/// and at the file `forced` in any case: a machine whose offer changes meanwhile.
fn changing_captime(folder: &Path) -> PathBuf {
    let path = folder.join("captime");
    let script = format!(
        "#!/bin/sh\ncd '{}' || exit\nlevel=$2\n[ $level = auto ] && level=$(cat level)\n[ -e forced ] && level=$(cat forced)\n\
         exec '{}' \"$1\" $level $3\n",
        folder.display(),
        captime().display()
    );
    program(&path, &script);
    path
}

#[test]
fn a_replaced_supervisor_enforces_limits_as_the_lost_one_did() {
    let levels = [Level::Cgroup2, Level::Subreaper];
    for (level, other) in levels.into_iter().zip(levels.into_iter().rev()) {
        let (Some(bench), Some(_)) = (TestBench::at(level), TestBench::at(other)) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let offer = |file: &str, level: Level| {
            std::fs::write(folder.path().join(file), level.name()).unwrap();
        };
        let setup = Setup {
            binary: Some(changing_captime(folder.path())),
            ..Setup::default()
        };
        offer("level", level);
        bench.runtime.block_on(async {
            let mut supervisor = Supervisor::start(&setup).await.unwrap();
            assert_eq!(supervisor.level(), level);
            let (launch, limits) = (Launch::new(["true"]), wall(15_000));
            offer("level", other);
            kill(supervisor.id().unwrap());
            let lost = supervisor.run(&launch, &limits).await;
            assert_eq!(lost, Err(LimitError::SupervisorLost));
            let report = supervisor.run(&launch, &limits).await.unwrap();
            assert_eq!(report.level, level, "the level has changed");
            // Where the machine cannot do it any more, nothing is run.
            offer("forced", other);
            kill(supervisor.id().unwrap());
            let lost = supervisor.run(&launch, &limits).await;
            assert_eq!(lost, Err(LimitError::SupervisorLost));
            let refused = supervisor.run(&launch, &limits).await.unwrap_err();
            assert!(
                matches!(&refused, LimitError::Changed { had, has } if had.0 == level && has.0 == other),
                "{refused}"
            );
            assert!(refused.to_string().contains(level.name()), "{refused}");
            // And if it can again, the slot continues.
            std::fs::remove_file(folder.path().join("forced")).unwrap();
            let report = supervisor.run(&launch, &limits).await.unwrap();
            assert_eq!(report.level, level);
            supervisor.close().await;
        });
    }
}

/// Starts `captime exec` on a misbehaving program and waits until that runs.
fn exec_in_background(book: &Book, level: Level, mode: &str) -> Child {
    let child = Command::new(captime())
        .args(["exec", "--wall", "15s", "--level", level.name(), "--"])
        .args(book.command(&[mode]))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    book.wait_for_start();
    // Gives it time to misbehave.
    std::thread::sleep(Duration::from_millis(200));
    child
}

/// The guardian of a supervisor, after which its groups are named.
fn parent_of(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit(") ").next().unwrap();
    after_name.split(' ').nth(1).unwrap().parse().unwrap()
}

fn children_of(pid: u32) -> Vec<u32> {
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .unwrap()
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

/// Nothing that it had started outlives it, nor does a group.
fn left_no_trace(front: &Child, book: Book) {
    let books = book.close();
    assert!(books.end - books.start < Duration::from_secs(5));
    groups_of_are_gone(front.id());
}

#[test]
fn killing_captime_exec_leaves_nothing_alive() {
    for_each_level(|bench| {
        let book = Book::open();
        let mut front = exec_in_background(&book, bench.level(), "deaf-daemon");
        front.kill().unwrap();
        front.wait().unwrap();
        left_no_trace(&front, book);
    });
}

#[test]
fn killing_captime_exec_under_a_memory_limit_leaves_no_group() {
    for_each_level(|bench| {
        let book = Book::open();
        let mut front = Command::new(captime())
            .args(["exec", "--memory", "1GiB", "--level", bench.level().name()])
            .arg("--")
            .args(book.command(&["deaf-daemon"]))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        book.wait_for_start();
        front.kill().unwrap();
        front.wait().unwrap();
        left_no_trace(&front, book);
    });
}

#[test]
fn killing_captime_exec_with_its_process_group_leaves_nothing_alive() {
    for_each_level(|bench| {
        let book = Book::open();
        let mut front = Command::new(captime())
            .args(["exec", "--level", bench.level().name(), "--"])
            .args(book.command(&["deaf-daemon"]))
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        book.wait_for_start();
        // Gives it time to misbehave.
        std::thread::sleep(Duration::from_millis(200));
        rustix::process::kill_process_group(pid(front.id()), rustix::process::Signal::KILL)
            .unwrap();
        front.wait().unwrap();
        left_no_trace(&front, book);
    });
}

#[test]
fn killing_the_supervisor_of_captime_exec_leaves_nothing_alive() {
    for_each_level(|bench| {
        let book = Book::open();
        let mut front = exec_in_background(&book, bench.level(), "deaf-daemon");
        kill(children_of(front.id())[0]);
        assert_eq!(front.wait().unwrap().code(), Some(125));
        left_no_trace(&front, book);
    });
}

#[test]
fn groups_of_a_killed_captime_are_swept_at_the_next_start_and_no_others() {
    let Some(mut busy) = TestBench::at(Level::Cgroup2) else {
        return;
    };
    // Both processes of an `exec` are killed at the same moment: none is left to clean up.
    let book = Book::open();
    let mut front = exec_in_background(&book, Level::Cgroup2, "daemon");
    let supervisor = children_of(front.id())[0];
    for stopped in [front.id(), supervisor] {
        rustix::process::kill_process(pid(stopped), rustix::process::Signal::STOP).unwrap();
    }
    kill(front.id());
    kill(supervisor);
    front.wait().unwrap();
    // Meanwhile another captime runs something.
    let other = Book::open();
    let launch = Launch::new(other.command(&["sleep"]));
    let report = busy.runtime.block_on(async {
        let next = async {
            other.misbehaves().await;
            let next = Setup {
                level: Some(Level::Cgroup2),
                binary: Some(captime()),
                ..Setup::default()
            };
            Supervisor::start(&next).await.unwrap().close().await;
        };
        let limits = wall(3000);
        tokio::join!(busy.supervisor.run(&launch, &limits), next).0
    });
    let books = book.close();
    assert!(books.end - books.start < Duration::from_secs(8));
    groups_of_are_gone(front.id());
    let report = report.unwrap();
    assert_eq!(report.cause, Cause::Wall, "another captime's run was swept");
}

#[test]
fn a_hundred_runs_at_once_do_not_disturb_each_other() {
    for level in [Level::Cgroup2, Level::Subreaper] {
        let Some(bench) = TestBench::at(level) else {
            continue;
        };
        let setup = Setup {
            level: Some(level),
            binary: Some(captime()),
            ..Setup::default()
        };
        let reports = bench.runtime.block_on(async {
            let mut runs = tokio::task::JoinSet::new();
            for number in 0..100_u64 {
                let setup = setup.clone();
                runs.spawn(async move {
                    let mut supervisor = Supervisor::start(&setup).await.unwrap();
                    let launch = if number.is_multiple_of(2) {
                        Launch::new(["sleep", "20"])
                    } else {
                        Launch::new(["sh".to_owned(), "-c".into(), format!("exit {number}")])
                    };
                    let limits = if number.is_multiple_of(2) {
                        wall(500)
                    } else {
                        wall(60_000)
                    };
                    let report = supervisor.run(&launch, &limits).await.unwrap();
                    supervisor.close().await;
                    (number, report)
                });
            }
            runs.join_all().await
        });
        assert_eq!(reports.len(), 100);
        for (number, report) in reports {
            if number.is_multiple_of(2) {
                assert_eq!(report.cause, Cause::Wall);
            } else {
                let expected = Some(i32::try_from(number).unwrap());
                assert_eq!((report.cause, report.exit_code), (Cause::None, expected));
            }
            assert_eq!(report.left_behind, 0);
        }
    }
}

#[test]
fn a_supervisor_outlives_a_run_of_a_few_seconds() {
    for_each_level(|bench| {
        let before = bench.supervisor.id();
        // Long enough to be asked whether it is alive.
        let long = Launch::new(["sleep", "2.5"]);
        for launch in [long, Launch::new(["true"])] {
            let report = bench.launch(&launch, &wall(15_000)).unwrap();
            assert_eq!(report.cause, Cause::None);
        }
        assert_eq!(bench.supervisor.id(), before);
    });
}

#[test]
fn a_long_busy_run_wakes_the_supervisor_rarely() {
    for_each_level(|bench| {
        let book = Book::open();
        let launch = Launch::new(book.command(&["burn", "15000"]));
        let pid = bench.supervisor.id().unwrap();
        let before = switches(pid);
        let report = bench.launch(&launch, &cpu(1000)).unwrap();
        let wakes = switches(pid) - before;
        assert_eq!(report.cause, Cause::Cpu);
        // A command that has to share its CPU makes slower progress between two looks. While it waits for one right below its limit, it
        // is looked at once per millisecond. The tests of `cpu_looks.rs` count exactly.
        let share = report.wall_seconds / report.cpu_seconds;
        let waited = 1e3 * (report.wall_seconds - report.cpu_seconds).max(0.0);
        let most = 50.0 * share + waited;
        assert!((wakes as f64) < most, "{wakes} wake-ups, {report:?}");
    });
}

/// How often the threads of a process gave up their CPU to wait.
fn switches(pid: u32) -> u64 {
    std::fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .flatten()
        .map(|task| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap();
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
                .unwrap();
            line.trim().parse::<u64>().unwrap()
        })
        .sum()
}

#[test]
fn as_root_moving_to_another_group_does_not_help() {
    if !rustix::process::getuid().is_root() {
        skip(&"needs root");
        return;
    }
    let hybrid = Path::new("/sys/fs/cgroup/unified");
    let root = if hybrid.exists() {
        hybrid
    } else {
        Path::new("/sys/fs/cgroup")
    };
    for level in [Level::Cgroup2, Level::Subreaper] {
        // Contained, it could not even try.
        let Some(mut bench) = TestBench::open_to_attack(level) else {
            continue;
        };
        let elsewhere = root.join(format!(
            "elsewhere-{}-{}",
            bench.level(),
            std::process::id()
        ));
        std::fs::create_dir(&elsewhere).unwrap();
        let target = elsewhere.to_str().unwrap();
        let (report, books) = bench.run(&["leave-cgroup", target], &wall(300));
        assert_eq!(report.cause, Cause::Wall);
        assert!(books.end - books.start < Duration::from_secs(3));
        // Nor does it hide the CPU time.
        let (report, books) = bench.run(&["leave-cgroup", target, "burn"], &cpu(300));
        assert_eq!(report.cause, Cause::Cpu);
        assert!(books.cpu() < 0.6, "{}", books.cpu());
        assert!(!report.cpu_exact, "{report:?}");
        std::fs::remove_dir(&elsewhere).unwrap();
    }
}

#[test]
fn a_supervisor_outlives_neither_its_captime_nor_its_socket() {
    let Some(mut bench) = TestBench::at(Level::Subreaper) else {
        return;
    };
    let pid = bench.supervisor.id().unwrap();
    let start = now();
    bench
        .launch(&Launch::new(["true"]), &Limits::default())
        .unwrap();
    let TestBench {
        runtime,
        supervisor,
    } = bench;
    runtime.block_on(supervisor.close());
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert!(now() - start < Duration::from_secs(5));
}
