//! Every behaviour a limiter must survive, one test each and level.

use std::time::Duration;

use captime_limit::{Cause, Input, Launch, Level, Limits, Output, Report};

use super::test_bench::{Book, Books, TestBench, cpu, memory, wall};

/// Each function becomes two tests, one per level.
macro_rules! at_both_levels {
    ($($name:ident),* $(,)?) => {
        mod at_cgroup2 {
            $(#[test] fn $name() {
                if let Some(mut bench) = super::TestBench::at(super::Level::Cgroup2) { super::$name(&mut bench); }
            })*
        }
        mod at_subreaper {
            $(#[test] fn $name() {
                if let Some(mut bench) = super::TestBench::at(super::Level::Subreaper) { super::$name(&mut bench); }
            })*
        }
    };
}

at_both_levels!(
    a_sleeper_ends_on_time,
    ignored_and_blocked_signals_do_not_help,
    stopped_processes_end_too,
    changed_process_groups_end_too,
    daemons_end_with_the_run,
    a_fork_storm_ends,
    a_process_that_keeps_forking_away_ends,
    a_flood_is_cut_in_the_middle,
    one_huge_line_and_a_partial_one_are_kept_at_both_ends,
    input_is_empty_unless_given,
    a_grandchild_that_holds_stdout_does_not_delay_the_report,
    what_main_leaves_behind_is_ended_and_counted,
    cpu_of_one_and_two_threads_is_limited,
    cpu_of_short_lived_children_is_limited_and_counted,
    cpu_of_orphans_is_limited,
    cpu_reported_is_cpu_burned,
    allocating_past_the_limit_is_stopped,
    allocating_in_several_children_is_stopped,
    a_reservation_is_harmless,
    exit_codes_are_not_mistaken_for_limits,
    signals_of_its_own_are_reported_as_such,
    a_limit_of_a_millisecond_works,
    commands_start_clean,
    pinning_is_inherited,
    a_grace_period_lets_the_polite_leave_and_ends_the_rest,
);

/// Milliseconds of wall-clock time; enough for a program to start and misbehave on a crowded machine.
const LIMIT: u64 = 600;

fn ended_by_the_wall(report: &Report, books: &Books) {
    assert_eq!(report.cause, Cause::Wall, "{report:?}");
    assert!(report.wall_seconds >= LIMIT as f64 / 1e3, "{report:?}");
    // The tolerance is for a loaded machine; `scripts/compare-limiters` measures the real overshoot.
    let whole = books.end.saturating_sub(books.start);
    assert!(whole < Duration::from_millis(LIMIT + 1500), "{whole:?}");
}

fn a_sleeper_ends_on_time(bench: &mut TestBench) {
    let (report, books) = bench.run(&["sleep"], &wall(LIMIT));
    ended_by_the_wall(&report, &books);
    assert_eq!((report.exit_code, report.signal), (None, Some(9)));
    assert_eq!(report.left_behind, 0);
}

fn ignored_and_blocked_signals_do_not_help(bench: &mut TestBench) {
    for mode in ["ignore-term", "block-all"] {
        let (report, books) = bench.run(&[mode], &wall(LIMIT));
        ended_by_the_wall(&report, &books);
    }
}

fn stopped_processes_end_too(bench: &mut TestBench) {
    for mode in ["stop-self", "stop-child"] {
        let (report, books) = bench.run(&[mode], &wall(LIMIT));
        ended_by_the_wall(&report, &books);
        assert_eq!(report.left_behind, 1, "{mode}: {report:?}");
    }
}

fn changed_process_groups_end_too(bench: &mut TestBench) {
    let (report, books) = bench.run(&["change-group"], &wall(LIMIT));
    ended_by_the_wall(&report, &books);
}

fn daemons_end_with_the_run(bench: &mut TestBench) {
    for mode in ["daemon", "deaf-daemon"] {
        let (report, books) = bench.run(&[mode], &wall(LIMIT));
        ended_by_the_wall(&report, &books);
        assert_eq!(report.left_behind, 1, "{mode}: {report:?}");
    }
}

fn a_fork_storm_ends(bench: &mut TestBench) {
    let (report, books) = bench.run(&["storm", "200"], &wall(600));
    assert_eq!(report.cause, Cause::Wall);
    assert!(books.end - books.start < Duration::from_secs(4));
    assert!(report.left_behind > 0);
}

fn a_process_that_keeps_forking_away_ends(bench: &mut TestBench) {
    // Main leaves at once, so the run ends by itself, with a process left behind.
    let (report, books) = bench.run(&["refork"], &wall(LIMIT));
    assert_eq!(report.cause, Cause::None);
    assert!(books.end - books.start < Duration::from_secs(2));
}

fn a_flood_is_cut_in_the_middle(bench: &mut TestBench) {
    let (report, _) = bench.run(&["flood", "300"], &wall(15_000));
    let stdout = report.stdout.unwrap();
    assert_eq!((report.cause, report.exit_code), (Cause::None, Some(0)));
    assert_eq!(stdout.head.len() + stdout.tail.len(), 1 << 16);
    assert_eq!(stdout.dropped_bytes, (300 << 20) + 8 - (1 << 16));
    assert!(stdout.tail.ends_with(b"x\nthe end\n"));
}

fn one_huge_line_and_a_partial_one_are_kept_at_both_ends(bench: &mut TestBench) {
    let (report, _) = bench.run(&["long-line", "5"], &wall(15_000));
    let stdout = report.stdout.unwrap();
    assert!(stdout.head.starts_with(b"xxxx") && stdout.tail.ends_with(b"xthe end\n"));
    let (report, _) = bench.run(&["partial"], &wall(15_000));
    assert_eq!(report.stdout.unwrap().head, b"whole\nhalf");
    let (report, _) = bench.run(&["nul"], &wall(15_000));
    assert_eq!(report.stdout.unwrap().head, b"a\0b\xff\n");
}

fn input_is_empty_unless_given(bench: &mut TestBench) {
    let (report, _) = bench.run(&["echo"], &wall(15_000));
    assert_eq!(report.stdout.unwrap().head, b"");
    let book = Book::open();
    let text = book.path().with_file_name("text");
    std::fs::write(&text, "from a file").unwrap();
    let launch = Launch {
        input: Input::File(text),
        output: Output::Capture { limit: 100 },
        ..Launch::new(book.command(&["echo"]))
    };
    let report = bench.launch(&launch, &wall(15_000)).unwrap();
    assert_eq!(report.stdout.unwrap().text(), "from a file");
}

fn a_grandchild_that_holds_stdout_does_not_delay_the_report(bench: &mut TestBench) {
    let (report, books) = bench.run(&["hold-stdout"], &wall(15_000));
    assert_eq!((report.cause, report.exit_code), (Cause::None, Some(0)));
    assert_eq!(report.stdout.unwrap().text(), "bye\n");
    assert_eq!(report.left_behind, 1);
    assert!(books.end - books.start < Duration::from_secs(5));
}

fn what_main_leaves_behind_is_ended_and_counted(bench: &mut TestBench) {
    for mode in ["leave-daemon", "leave-burner"] {
        let (report, books) = bench.run(&[mode], &wall(15_000));
        assert_eq!((report.cause, report.exit_code), (Cause::None, Some(0)));
        assert_eq!(report.left_behind, 1, "{mode}");
        assert!(books.end - books.start < Duration::from_secs(5));
    }
}

/// The limit was kept, up to what a loaded machine adds to one look.
fn ended_by_the_cpu(report: &Report, books: &Books, limit: f64) {
    assert_eq!(report.cause, Cause::Cpu, "{report:?}");
    assert!(report.cpu_seconds >= limit, "{report:?}");
    assert!(report.cpu_seconds < limit + 0.15, "{report:?}");
    assert!(books.cpu() < limit + 0.15, "{}", books.cpu());
}

fn cpu_of_one_and_two_threads_is_limited(bench: &mut TestBench) {
    for mode in ["burn", "burn-threads"] {
        let (report, books) = bench.run(&[mode, "15000"], &cpu(200));
        ended_by_the_cpu(&report, &books, 0.2);
    }
}

fn cpu_of_short_lived_children_is_limited_and_counted(bench: &mut TestBench) {
    let (report, books) = bench.run(&["burn-children", "500", "10"], &cpu(300));
    ended_by_the_cpu(&report, &books, 0.3);
    // Nobody waits for these: only a group counts them.
    let (report, books) = bench.run(&["burn-unwaited", "50", "10"], &cpu(250));
    if bench.level() == Level::Cgroup2 {
        ended_by_the_cpu(&report, &books, 0.25);
        assert!(report.cpu_exact);
    } else {
        assert!(!report.cpu_exact, "a lower bound must say so");
        assert!(report.cpu_seconds <= books.cpu() + 0.05);
    }
}

fn cpu_of_orphans_is_limited(bench: &mut TestBench) {
    let (report, books) = bench.run(&["burn-orphans", "3", "15000"], &cpu(300));
    ended_by_the_cpu(&report, &books, 0.3);
}

fn cpu_reported_is_cpu_burned(bench: &mut TestBench) {
    for arguments in [
        ["burn", "200", ""],
        ["burn-threads", "200", ""],
        ["burn-children", "20", "10"],
        ["burn-unwaited", "20", "10"],
    ] {
        let (report, books) = bench.run(&arguments, &wall(15_000));
        assert_eq!((report.cause, report.exit_code), (Cause::None, Some(0)));
        assert_eq!(report.cpu_exact, bench.level() == Level::Cgroup2);
        if !report.cpu_exact && arguments[0] == "burn-unwaited" {
            assert!(report.cpu_seconds < books.cpu());
            continue;
        }
        // The books end before the process does; what follows is its exit, and before it, its start.
        let error = report.cpu_seconds - books.cpu();
        let allowed = 0.004 + 0.001 * books.processes() as f64;
        assert!(
            (-0.001..allowed).contains(&error),
            "{arguments:?}: {error} s for {} processes",
            books.processes()
        );
        let parts = report.user_seconds + report.system_seconds;
        assert!((parts - report.cpu_seconds).abs() < 0.001, "{report:?}");
    }
}

fn allocating_past_the_limit_is_stopped(bench: &mut TestBench) {
    // Fast, to the end if nobody stops it; then a spike that is over before a slow look.
    for arguments in [["allocate", "400", "1"], ["spike", "400", ""]] {
        let (report, books) = bench.run(&arguments, &memory(64));
        if bench.keeps_memory() {
            assert_eq!(report.cause, Cause::Memory, "{report:?}");
            let touched = books.touched_at_once();
            assert!(touched <= 64 << 20, "{touched}");
            assert!(touched > 50 << 20, "{touched}");
            assert!(!books.allocated);
            assert!(report.memory_exact);
            assert!(report.peak_memory_bytes <= 64 << 20, "{report:?}");
            assert!(report.peak_memory_bytes > 60 << 20, "{report:?}");
        } else {
            assert!(!report.memory_exact, "sampled memory must say so");
            assert_eq!(report.cause, Cause::Memory, "{report:?}");
            assert!(report.peak_memory_bytes > 64 << 20, "{report:?}");
        }
    }
    // The next run in the same slot is not held to the old limit.
    let (report, books) = bench.run(&["allocate", "100", "0"], &wall(15_000));
    assert_eq!((report.cause, report.exit_code), (Cause::None, Some(0)));
    assert!(books.allocated);
    assert!(report.peak_memory_bytes >= 100 << 20, "{report:?}");
    assert!(report.peak_memory_bytes < 130 << 20, "{report:?}");
}

fn allocating_in_several_children_is_stopped(bench: &mut TestBench) {
    let (report, books) = bench.run(&["allocate-children", "4", "50"], &memory(100));
    assert_eq!(report.cause, Cause::Memory, "{report:?}");
    if bench.keeps_memory() {
        // A v1 group kills one process first, and until all are ended the others may have what that one had: together
        // they may touch more than the limit, but never at the same moment.
        let touched = books.touched_at_once();
        assert!(touched <= 100 << 20, "{touched}");
        assert!(report.memory_exact);
        assert!(report.peak_memory_bytes <= 100 << 20, "{report:?}");
        assert!(report.peak_memory_bytes > 90 << 20, "{report:?}");
    }
    // These books would show what a limiter lets pass.
    let (report, books) = bench.run(&["allocate-children", "4", "50"], &wall(4000));
    assert_eq!(report.cause, Cause::Wall, "{report:?}");
    let touched = books.touched_at_once();
    assert!(touched > 100 << 20, "{touched}");
}

fn a_reservation_is_harmless(bench: &mut TestBench) {
    let (report, _) = bench.run(&["reserve"], &memory(64));
    assert_eq!((report.cause, report.exit_code), (Cause::None, Some(0)));
    assert!(report.peak_memory_bytes < 40 << 20, "{report:?}");
}

fn exit_codes_are_not_mistaken_for_limits(bench: &mut TestBench) {
    for code in [0, 1, 124, 137] {
        let (report, _) = bench.run(&["exit", &code.to_string()], &wall(15_000));
        assert_eq!((report.cause, report.exit_code), (Cause::None, Some(code)));
        assert_eq!((report.signal, report.left_behind), (None, 0));
    }
}

fn signals_of_its_own_are_reported_as_such(bench: &mut TestBench) {
    for signal in [libc::SIGSEGV, libc::SIGKILL, libc::SIGTERM, libc::SIGXCPU] {
        let (report, _) = bench.run(&["die", &signal.to_string()], &memory(500));
        assert_eq!((report.cause, report.exit_code), (Cause::None, None));
        assert_eq!(report.signal, Some(signal));
    }
}

fn a_limit_of_a_millisecond_works(bench: &mut TestBench) {
    let launch = Launch::new(["sleep", "20"]);
    let report = bench.launch(&launch, &wall(1)).unwrap();
    assert_eq!(report.cause, Cause::Wall);
    assert!(report.wall_seconds >= 0.001 && report.wall_seconds < 1.0);
}

fn commands_start_clean(bench: &mut TestBench) {
    let book = Book::open();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let launch = Launch {
        env: vec![("CAPTIME_TEST".into(), "set".into())],
        directory: Some(folder.clone()),
        output: Output::Capture { limit: 10_000 },
        ..Launch::new(book.command(&["describe"]))
    };
    let report = bench.launch(&launch, &wall(15_000)).unwrap();
    let text = report.stdout.unwrap().text();
    assert!(text.contains("SigBlk:\t0000000000000000"), "{text}");
    // Rust programs ignore SIGPIPE of their own accord, so another one is asked what it was given.
    let grep = Launch {
        output: Output::Capture { limit: 10_000 },
        ..Launch::new(["grep", "SigIgn", "/proc/self/status"])
    };
    let report = bench.launch(&grep, &wall(15_000)).unwrap();
    assert_eq!(report.stdout.unwrap().text(), "SigIgn:\t0000000000000000\n");
    // The supervisor is woken sooner than others. What it starts is not.
    let chrt = Launch {
        output: Output::Capture { limit: 10_000 },
        ..Launch::new(["sh", "-c", "chrt -p $$"])
    };
    let report = bench.launch(&chrt, &wall(15_000)).unwrap();
    let scheduled = report.stdout.unwrap().text();
    assert!(scheduled.contains("policy: SCHED_OTHER\n"), "{scheduled}");
    // 3 is its book, 4 the folder it lists them in.
    assert!(text.contains("fds 0,1,2,3,4\n"), "{text}");
    assert!(text.contains("slack 50000\n"), "{text}");
    let core = text
        .lines()
        .find(|line| line.starts_with("Max core"))
        .unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{text}");
    assert!(text.contains("leads true\n"), "{text}");
    assert!(
        text.contains(&format!("folder {}\n", folder.display())),
        "{text}"
    );
    assert!(text.contains("variable set\n"), "{text}");
}

fn pinning_is_inherited(bench: &mut TestBench) {
    let launch = Launch {
        output: Output::Capture { limit: 10_000 },
        ..Launch::new(["sh", "-c", "grep Cpus_allowed_list /proc/self/status; true"])
    };
    let ours = rustix::thread::sched_getaffinity(None).unwrap();
    let last = (0..1024).rev().find(|&cpu| ours.is_set(cpu)).unwrap();
    let limits = Limits {
        cpus: Some(vec![last]),
        ..wall(15_000)
    };
    let report = bench.launch(&launch, &limits).unwrap();
    assert_eq!(
        report.stdout.unwrap().text(),
        format!("Cpus_allowed_list:\t{last}\n")
    );
}

fn a_grace_period_lets_the_polite_leave_and_ends_the_rest(bench: &mut TestBench) {
    let limits = Limits {
        grace: Duration::from_secs(10),
        ..wall(LIMIT)
    };
    let (report, books) = bench.run(&["leave-on-term"], &limits);
    assert_eq!((report.cause, report.signal), (Cause::Wall, Some(15)));
    assert!(books.end - books.start < Duration::from_secs(5));
    let limits = Limits {
        grace: Duration::from_millis(300),
        ..wall(LIMIT)
    };
    let (report, books) = bench.run(&["ignore-term"], &limits);
    assert_eq!((report.cause, report.signal), (Cause::Wall, Some(9)));
    assert!(books.end - books.start >= Duration::from_millis(LIMIT + 300 - 50));
}
