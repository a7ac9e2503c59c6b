//! What can go wrong overnight: kills, signals, full disks, damaged journals, hostile targets.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::test_run::{
    TestRun, alive, decisions_follow, expect, houses, nothing_is_left, send, skipped, story,
    test_seed, until,
};

/// Two slots of pulls that take some milliseconds; the marker is in their command lines.
fn sleeping(marker: &str, rounds: u64) -> String {
    format!(
        "
name: night
target:
  command: [sh, -c, ': {marker}; sleep 0.0{{a}}; echo score=0.{{a}}{{b}}']
  reward: {{stdout: 'score=([0-9.]+)'}}
arms: {{grid: {{a: [1, 2, 3], b: [1, 5, 9]}}}}
limits: {{of: wall, grid: [5s, 20s]}}
price: {{cost: x, penalty: 10 * x}}
policy: rcucb
budget: {{rounds: {rounds}}}
slots: 2
pin: never
seed: 5
"
    )
}

/// Pulls that never end by themselves.
fn endless(marker: &str) -> String {
    sleeping(marker, 50)
        .replace("sleep 0.0{a}", "sleep 1000{a}")
        .replace("[5s, 20s]", "[500s, 2000s]")
}

#[test]
fn killed_twenty_times_at_random_it_loses_and_doubles_nothing() {
    let marker = format!("killed-{}", std::process::id());
    let test_run = TestRun::new("");
    killed_twenty_times(&test_run, &marker, |rounds| sleeping(&marker, rounds));
}

#[test]
fn a_forest_killed_twenty_times_at_random_loses_and_doubles_nothing() {
    let test_run = TestRun::new("");
    test_run.write("houses.csv", &houses(300));
    let marker = test_run.path().display().to_string();
    killed_twenty_times(&test_run, &marker, |rounds| {
        format!(
            "
name: night
target: {{forest: {{data: houses.csv, predict: price}}}}
arms: {{grid: {{trees: [200, 400, 800], mtry: [1, 2]}}}}
limits: {{of: work, grid: [30000, 1000000000]}}
price: {{cost: x, penalty: 10 * x}}
policy: rcucb
budget: {{rounds: {rounds}}}
slots: 2
pin: never
seed: 5
"
        )
    });
}

/// Kills a run twenty times: as often at any moment as soon after an outcome, when others are in flight.
fn killed_twenty_times(test_run: &TestRun, marker: &str, scenario: impl Fn(u64) -> String) {
    let folder = test_run.run_folder("night");
    let mut luck = test_seed() | 1;
    let mut draw = |below: u64| {
        luck = luck
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (luck >> 33) % below
    };
    let mut kept = vec![];
    let (mut sessions, mut kills, mut in_flight, mut rounds) = (0, 0, 0, 0);
    while kills < 20 {
        sessions += 1;
        assert!(sessions < 100, "{kills} kills in {sessions} sessions");
        // More than it can play until it is killed: a budget may grow.
        rounds = kept.len() as u64 + 200;
        test_run.write("s.yaml", &scenario(rounds));
        let mut child = test_run.start(&["--quiet"]);
        if kills % 2 == 0 {
            test_run.wait_for_outcomes("night", kept.len() + 1 + draw(3) as usize);
            std::thread::sleep(Duration::from_millis(draw(30)));
        } else {
            std::thread::sleep(Duration::from_millis(5 + draw(150)));
        }
        if child.try_wait().unwrap().is_some() {
            continue;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        nothing_is_left(marker);
        if fs::metadata(test_run.journal("night")).is_ok_and(|file| file.len() > 0) {
            let (pulls, outcomes) = story(&folder);
            in_flight += usize::from(pulls.len() > outcomes.len());
            assert!(outcomes.len() >= kept.len());
            assert_eq!(
                &outcomes[..kept.len()],
                &kept[..],
                "what was finished stays"
            );
            kept = outcomes;
        }
    }
    assert_eq!(kills, 20);
    assert!(in_flight >= 5, "{in_flight} of {kills} met pulls in flight");
    test_run.run(0, &["--quiet"]);
    nothing_is_left(marker);
    let (pulls, outcomes) = story(&folder);
    assert_eq!(&outcomes[..kept.len()], &kept[..]);
    assert_eq!(pulls.len() as u64, rounds);
    let mut ended: Vec<u64> = outcomes.iter().map(|outcome| outcome.outcome).collect();
    ended.sort_unstable();
    assert_eq!(
        ended,
        (1..=rounds).collect::<Vec<_>>(),
        "every round ended once"
    );
    decisions_follow(&folder);
}

#[test]
fn signals_stop_a_run_in_good_order_and_it_goes_on() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let marker = format!("signalled-{signal}-{}", std::process::id());
        let test_run = TestRun::new(&endless(&marker));
        let child = test_run.start(&[]);
        wait_until_alive(&marker);
        send(&child, signal);
        let (summary, progress) = expect(&child.wait_with_output().unwrap(), 130);
        assert!(
            summary.contains("interrupted") && summary.contains("captime run s.yaml"),
            "{summary}"
        );
        assert!(
            progress.contains("stopping; press Ctrl-C again to quit now"),
            "{progress}"
        );
        assert!(alive(&marker).is_empty(), "all is over when it says so");
        let text = fs::read_to_string(test_run.journal("night")).unwrap();
        assert!(
            text.lines()
                .last()
                .unwrap()
                .starts_with("{\"end\":\"interrupted\""),
            "{text}"
        );
        // The same pulls run again under the same rounds, and the run ends.
        test_run.write("s.yaml", &endless(&marker));
        let (pulls, outcomes) = story(&test_run.run_folder("night"));
        assert_eq!((pulls.len(), outcomes.len()), (2, 0));
        let again = test_run.start(&["--quiet"]);
        wait_until_alive(&marker);
        assert_eq!(story(&test_run.run_folder("night")).0, pulls);
        send(&again, signal);
        expect(&again.wait_with_output().unwrap(), 130);
        nothing_is_left(&marker);
    }
}

fn wait_until_alive(marker: &str) {
    let since = Instant::now();
    while alive(marker).len() < 2 {
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "nothing was started"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_second_signal_leaves_at_once_and_nothing_stays_alive() {
    let marker = format!("twice-{}", std::process::id());
    // Targets that do not care about SIGTERM, with a grace period: the first signal alone takes long.
    let scenario = endless(&marker)
        .replace(
            &format!("': {marker}; "),
            &format!("'trap \"\" TERM; echo >> deaf; : {marker}; "),
        )
        .replace("limits: {", "limits: {grace: 30s, ");
    let test_run = TestRun::new(&scenario);
    let mut child = test_run.start(&["--quiet"]);
    let deaf = || fs::read_to_string(test_run.path().join("deaf")).unwrap_or_default();
    until(&mut child, "two deaf targets", || {
        deaf().lines().count() == 2
    });
    send(&child, Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(300));
    assert!(
        child.try_wait().unwrap().is_none(),
        "the first waits for the targets"
    );
    send(&child, Signal::SIGINT);
    let since = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(since.elapsed() < Duration::from_secs(5));
    expect(&output, 130);
    let report = test_run.run_folder("night").join("report.html");
    assert!(!report.exists(), "no time for a report");
    nothing_is_left(&marker);
}

#[test]
fn under_nohup_a_hangup_is_ignored() {
    let marker = format!("nohup-{}", std::process::id());
    let test_run = TestRun::new(&sleeping(&marker, 40));
    let mut child = Command::new("sh")
        .args([
            "-c",
            "trap '' HUP; exec \"$0\" run s.yaml --quiet",
            env!("CARGO_BIN_EXE_captime"),
        ])
        .current_dir(test_run.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    test_run.wait_for_outcomes("night", 2);
    send(&child, Signal::SIGHUP);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly_and_it_goes_on() {
    let marker = format!("pipe-{}", std::process::id());
    let test_run = TestRun::new(&sleeping(&marker, 400));
    let mut child = test_run.start(&["--format", "json"]);
    let mut events = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    events.read_line(&mut first).unwrap();
    assert!(first.contains("launched"), "{first}");
    drop(events);
    let status = child.wait().unwrap();
    let mut complaints = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut complaints)
        .unwrap();
    assert_eq!(status.code(), Some(130), "{complaints}");
    assert!(!complaints.contains("panicked"), "{complaints}");
    nothing_is_left(&marker);
    decisions_follow(&test_run.run_folder("night"));
}

#[test]
fn two_captimes_on_one_run_are_one_too_many() {
    let marker = format!("two-{}", std::process::id());
    let test_run = TestRun::new(&endless(&marker));
    let child = test_run.start(&["--quiet"]);
    wait_until_alive(&marker);
    let (_, refused) = test_run.run(2, &[]);
    assert!(
        refused.contains("another captime") && refused.contains(&format!("process {}", child.id())),
        "{refused}"
    );
    send(&child, Signal::SIGINT);
    child.wait_with_output().unwrap();
}

#[test]
fn a_torn_journal_is_cut_a_damaged_one_refused() {
    let marker = format!("torn-{}", std::process::id());
    let test_run = TestRun::new(&sleeping(&marker, 12));
    test_run.run(0, &["--quiet"]);
    let path = test_run.journal("night");
    let whole = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
    // Torn in the middle of the last outcome.
    let outcome = lines
        .iter()
        .rposition(|line| line.starts_with(b"{\"outcome\""))
        .unwrap();
    let torn = [lines[..outcome].concat(), lines[outcome][..30].to_vec()].concat();
    fs::write(&path, &torn).unwrap();
    let (_, warning) = test_run.run(0, &["--quiet"]);
    assert!(
        warning.contains("was incomplete and has been removed"),
        "{warning}"
    );
    assert_eq!(story(&test_run.run_folder("night")).1.len(), 12);
    decisions_follow(&test_run.run_folder("night"));
    // One flipped bit in the middle.
    let mut flipped = whole.clone();
    let place: usize = lines[..6].iter().map(|line| line.len()).sum::<usize>() + 10;
    flipped[place] ^= 1;
    fs::write(&path, &flipped).unwrap();
    for args in [
        &["run", "s.yaml"][..],
        &["best", "night"],
        &["export", "night", "--format", "csv"],
    ] {
        let (_, error) = expect(&test_run.captime(args), 1);
        assert!(error.contains("damaged: line 7"), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), flipped, "left as it is");
    // Of a newer version.
    let newer = String::from_utf8(whole).unwrap().replacen(
        &format!("{{\"journal\":{}", captime::journal::VERSION),
        "{\"journal\":9",
        1,
    );
    fs::write(&path, newer).unwrap();
    let (_, error) = test_run.run(1, &[]);
    assert!(error.contains("journal version 9"), "{error}");
    // Deleted: the run starts again, and readers report what is missing.
    fs::remove_file(&path).unwrap();
    let (_, error) = expect(&test_run.captime(&["best", "runs/night"]), 2);
    assert!(error.contains("no run `runs/night`"), "{error}");
    test_run.run(0, &["--quiet"]);
    assert_eq!(story(&test_run.run_folder("night")).1.len(), 12);
}

/// Runs a shell script where `disk` is a small file system of its own; none if this user may not make one.
fn on_a_small_disk(test_run: &TestRun, options: &str, script: &str) -> Option<(i32, String)> {
    let whole =
        format!("mkdir disk && mount -t tmpfs -o {options} none disk && cd disk && {script}");
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", &whole])
        .env("CAPTIME", env!("CARGO_BIN_EXE_captime"))
        .current_dir(test_run.path())
        .output();
    let output = match output {
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("unshare:") => output,
        other => {
            assert!(
                std::env::var_os("CAPTIME_REQUIRE_PROGRAMS").is_none(),
                "unshare does not work: {other:?}"
            );
            skipped("this user may not mount a small file system");
            return None;
        }
    };
    let text = [output.stdout, output.stderr].concat();
    Some((
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&text).into_owned(),
    ))
}

#[test]
fn a_full_disk_stops_the_run_after_a_whole_line_and_it_resumes_when_there_is_room() {
    let marker = format!("full-{}", std::process::id());
    let test_run = TestRun::new(&sleeping(&marker, 100_000));
    let script = "cp ../s.yaml . ; head -c 50000 /dev/zero > ballast; \"$CAPTIME\" run s.yaml --quiet; echo exit $?; \
                  rm ballast; cp -r runs ../left; timeout -s INT 5 \"$CAPTIME\" run s.yaml --quiet; echo exit $?; \
                  cp -r runs ../after";
    let Some((_, text)) = on_a_small_disk(&test_run, "size=80k", script) else {
        return;
    };
    assert!(
        text.contains("exit 1") && text.contains("the disk is full"),
        "{text}"
    );
    assert!(!text.contains("panicked"), "{text}");
    let journal = fs::read(test_run.path().join("left/night/journal.jsonl")).unwrap();
    assert!(journal.ends_with(b"\"}\n"), "the torn line is cut");
    let (_, before) = story(&test_run.path().join("left/night"));
    let (_, after) = story(&test_run.path().join("after/night"));
    assert!(
        !before.is_empty() && after.len() > before.len(),
        "{} {}: {text}",
        before.len(),
        after.len()
    );
    assert_eq!(&after[..before.len()], &before[..]);
    decisions_follow(&test_run.path().join("after/night"));
    nothing_is_left(&marker);
}

#[test]
fn a_folder_that_cannot_be_written_to_is_said_so() {
    let test_run = TestRun::new(&sleeping("readonly", 5));
    let script = "cp ../s.yaml . ; mount -o remount,ro . ; \"$CAPTIME\" run s.yaml";
    let Some((code, text)) = on_a_small_disk(&test_run, "size=80k", script) else {
        return;
    };
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("cannot write") && text.contains("a folder you may write to"),
        "{text}"
    );
}

#[test]
fn hostile_targets_do_not_take_the_run_with_them() {
    let marker = format!("hostile-{}", std::process::id());
    for command in [
        // Fills its scratch folder and takes away its rights.
        "head -c 3000000 /dev/zero > {scratch}/big; mkdir {scratch}/x; chmod 000 {scratch}/x; echo score=0.5",
        // Writes to the run's folder.
        "echo hello > ../runs/hostile/notes; mkdir -p ../runs/hostile/more; echo score=0.5",
        // Leaves something running, and floods stdout.
        "sleep 1005 & head -c 5000000 /dev/zero | tr '\\\\0' x; echo; echo score=0.5",
    ] {
        let scenario = format!(
            "
name: hostile
target:
  command: [sh, -c, \": {marker}; {}\"]
  directory: work
  reward: {{stdout: 'score=([0-9.]+)'}}
arms: {{list: [{{name: one}}, {{name: two}}]}}
limits: {{of: wall, grid: [20s]}}
price: {{cost: x, penalty: 10 * x}}
policy: uniform
budget: {{rounds: 6}}
slots: 2
pin: never
stop_on_first_failures: false
",
            command.replace('"', "\\\"")
        );
        let test_run = TestRun::new(&scenario);
        fs::create_dir(test_run.path().join("work")).unwrap();
        let output = test_run.captime(&["run", "s.yaml", "--quiet"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            matches!(output.status.code(), Some(0 | 3)),
            "{command}: {text}"
        );
        assert_eq!(
            story(&test_run.run_folder("hostile")).1.len(),
            6,
            "{command}"
        );
        let scratch = test_run.run_folder("hostile").join("scratch");
        assert!(
            !scratch.exists() || fs::read_dir(scratch).unwrap().count() == 0,
            "{command}"
        );
        nothing_is_left(&marker);
    }
}

#[test]
fn a_folder_that_is_gone_ends_the_run_and_it_goes_on_when_it_is_back() {
    let test_run = TestRun::new(
        "
name: gone
target:
  command: [sh, -c, 'if test $(wc -l < ../count) = 3; then rm -rf \"$PWD\"; fi; echo >> ../count; echo 0.5']
  directory: work
  reward: {stdout: '([0-9.]+)'}
arms: {list: [{name: one}, {name: two}]}
limits: {of: wall, grid: [60s]}
price: {cost: x, penalty: 10 * x}
policy: uniform
budget: {rounds: 8}
slots: 1
pin: never
retries: 0
",
    );
    test_run.write("count", "");
    let work = test_run.path().join("work");
    fs::create_dir(&work).unwrap();
    let (_, said) = expect(&test_run.captime(&["run", "s.yaml", "--quiet"]), 1);
    assert!(said.contains("cannot enter the directory"), "{said}");
    assert_eq!(story(&test_run.run_folder("gone")).1.len(), 4, "{said}");
    fs::create_dir(&work).unwrap();
    expect(&test_run.captime(&["run", "s.yaml", "--quiet"]), 0);
    let (_, outcomes) = story(&test_run.run_folder("gone"));
    assert_eq!(outcomes.len(), 8);
    assert!(outcomes.iter().all(|outcome| outcome.reward == Some(0.5)));
    decisions_follow(&test_run.run_folder("gone"));
}

#[test]
fn a_line_written_into_our_journal_by_somebody_else_is_found_out() {
    let marker = format!("foreign-{}", std::process::id());
    let test_run = TestRun::new(&sleeping(&marker, 8));
    test_run.run(0, &["--quiet"]);
    let mut file = OpenOptions::new()
        .append(true)
        .open(test_run.journal("night"))
        .unwrap();
    writeln!(file, "hello").unwrap();
    test_run.write("s.yaml", &sleeping(&marker, 12));
    let (_, warning) = test_run.run(0, &["--quiet"]);
    assert!(
        warning.contains("was incomplete and has been removed"),
        "{warning}"
    );
    decisions_follow(&test_run.run_folder("night"));
}

#[test]
fn asleep_for_a_while_it_goes_on_where_it_was() {
    let marker = format!("asleep-{}", std::process::id());
    let test_run = TestRun::new(&sleeping(&marker, 60));
    let child = test_run.start(&["--quiet"]);
    test_run.wait_for_outcomes("night", 4);
    // Like a suspended machine: no process of the run makes progress, then all of them do.
    send(&child, Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(1500));
    send(&child, Signal::SIGCONT);
    expect(&child.wait_with_output().unwrap(), 0);
    let (_, outcomes) = story(&test_run.run_folder("night"));
    assert_eq!(outcomes.len(), 60);
    assert!(
        outcomes.iter().all(|outcome| outcome.reward.is_some()),
        "nobody was cut off for it"
    );
    let times: Vec<f64> = outcomes.iter().map(|outcome| outcome.at.unwrap()).collect();
    assert!(times.is_sorted());
}

/// The path of the library that shows programs another time of day.
fn faketime() -> Option<String> {
    let asked = Command::new("faketime")
        .args(["-f", "+0", "printenv", "LD_PRELOAD"])
        .output();
    match asked {
        Ok(asked) if asked.status.success() => {
            Some(String::from_utf8_lossy(&asked.stdout).trim().to_owned())
        }
        other => {
            assert!(
                std::env::var_os("CAPTIME_REQUIRE_PROGRAMS").is_none(),
                "faketime does not work: {other:?}"
            );
            skipped("faketime is not installed");
            None
        }
    }
}

#[test]
fn a_clock_that_is_stepped_changes_nothing() {
    let Some(library) = faketime() else { return };
    let marker = format!("stepped-{}", std::process::id());
    let test_run = TestRun::new(&sleeping(&marker, 60));
    let clock = test_run.write("clock", "+36500d\n");
    let child = test_run
        .command(&["run", "s.yaml", "--quiet"])
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", &clock)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Two centuries back and forth, in the middle of pulls and of waiting for them.
    for (outcomes, step) in [(4, "-36500d\n"), (20, "+36500d\n"), (40, "-1s\n")] {
        test_run.wait_for_outcomes("night", outcomes);
        fs::write(&clock, step).unwrap();
    }
    expect(&child.wait_with_output().unwrap(), 0);
    let journal = fs::read_to_string(test_run.journal("night")).unwrap();
    assert!(
        journal.contains("\"started\":\"21"),
        "the clock was another"
    );
    let (_, outcomes) = story(&test_run.run_folder("night"));
    assert_eq!(outcomes.len(), 60);
    assert!(outcomes.iter().all(|outcome| outcome.reward.is_some()));
    let times: Vec<f64> = outcomes.iter().map(|outcome| outcome.at.unwrap()).collect();
    assert!(times.is_sorted() && times[59] < 300.0, "{times:?}");
    decisions_follow(&test_run.run_folder("night"));
}
