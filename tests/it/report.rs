//! `captime report` and the page it makes.

pub mod browser;
mod content;
mod marks;
mod names;
pub mod simulated;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;

use browser::{Browser, browser};
use simulated::{Fate, Simulated};

fn captime() -> Command {
    Command::new(env!("CARGO_BIN_EXE_captime"))
}

/// Makes the report of the run in this folder and gives its path.
fn report(folder: &Path) -> PathBuf {
    let path = folder.join("report.html");
    let assert = captime().arg("report").arg(folder).assert().code(0);
    let output = assert.get_output();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        path.display().to_string()
    );
    path
}

/// The data of the page.
fn data(folder: &Path) -> Value {
    let assert = captime()
        .args(["report", "--format", "json", "--out", "-"])
        .arg(folder)
        .assert()
        .code(0);
    serde_json::from_slice(&assert.get_output().stdout).unwrap()
}

/// Where screenshots are kept for inspection.
pub fn pictures() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// 7 x 6 x 4 x 4 arms, as in the paper's experiment.
const FOREST_ARMS: &str = "grid: {trees: {from: 100, to: 700, step: 100}, mtry: {from: 20, to: 30, step: 2}, \
min_node_size: [3, 5, 7, 9], sample_fraction: [0.55, 0.632, 0.75, 0.8]}";

/// Unusual runs.
fn unusual() -> Vec<Simulated> {
    // With the usual policy.
    let plain = |name, rounds| Simulated {
        name,
        rounds,
        policy: "levels",
        ..Simulated::default()
    };
    vec![
        plain("nothing-yet", 0),
        plain("one-round", 1),
        plain("two-rounds", 2),
        Simulated {
            fate: Fate::Censored,
            ..plain("all-censored", 30)
        },
        Simulated {
            fate: Fate::Failed,
            ..plain("all-failed", 30)
        },
        Simulated {
            arms: "grid: {decay: [0.9]}".into(),
            ..plain("one-arm", 30)
        },
        Simulated {
            arms: "list: [minisat, glucose, cadical]".into(),
            limits: "{of: wall, max: 5s, grid: 3}",
            slots: 1,
            ..plain("only-names", 40)
        },
        Simulated {
            is_ended: false,
            limits: "{of: cpu, cpu: 8s, calibrate: {points: 5}}",
            ..plain("calibrating", 10)
        },
        Simulated {
            limits: "{of: cpu, cpu: 8s, calibrate: {points: 5}}",
            ..plain("ended-calibrating", 10)
        },
        Simulated {
            policy: "z-rcucb",
            limits: "{of: wall, max: 5s}",
            arms: "list: [{name: fast, decay: 0.8}, {name: slow, decay: 0.99}]".into(),
            ..plain("zooming", 3000)
        },
    ]
}

#[test]
fn a_report_is_private_and_says_where_it_is() {
    let root = tempfile::tempdir().unwrap();
    Simulated::default().write(root.path());
    let assert = captime()
        .current_dir(&root)
        .args(["report", "made-up"])
        .assert()
        .code(0);
    let output = assert.get_output();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "runs/made-up/report.html\n"
    );
    let path = root.path().join("runs/made-up/report.html");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let first = fs::read(&path).unwrap();
    report(path.parent().unwrap());
    assert_eq!(
        fs::read(&path).unwrap(),
        first,
        "the same data, the same bytes"
    );
    captime()
        .current_dir(&root)
        .args(["report", "made-up", "--out", "elsewhere/report.html"])
        .assert()
        .code(1);
    let assert = captime()
        .current_dir(&root)
        .args(["report", "maed-up"])
        .assert()
        .code(2);
    let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(message.contains("did you mean `made-up`?"), "{message}");
}

#[test]
fn the_data_agree_with_best() {
    let root = tempfile::tempdir().unwrap();
    for run in [
        Simulated::default().with_instances(40),
        Simulated {
            name: "by-ts",
            policy: "joint-ts",
            slots: 3,
            ..Simulated::default()
        },
        Simulated {
            name: "zooming",
            policy: "z-rcucb",
            limits: "{of: cpu, max: 5s}",
            ..Simulated::default()
        },
    ] {
        let folder = run.write(root.path());
        let data = data(&folder);
        let best = captime()
            .args(["best", "--format", "json"])
            .arg(&folder)
            .assert()
            .code(0);
        let best: Value = serde_json::from_slice(&best.get_output().stdout).unwrap();
        let answer = &data["answer"];
        assert_eq!(answer["arm"], best["arm"]);
        let near = |ours: &Value, theirs: &Value| {
            let (ours, theirs) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
            assert!(
                (ours - theirs).abs() < 1e-4 * theirs.abs().max(0.1),
                "{ours} {theirs}"
            );
        };
        near(&answer["limit"], &best["limit"]);
        near(&answer["gain"], &best["gain"]);
        near(&answer["low"], &best["interval"][0]);
        near(&answer["high"], &best["interval"][1]);
        assert_eq!(answer["pulls"], best["pulls"]);
        assert_eq!(data["status"]["learned"], json!(600));
        let status = &data["status"];
        let sum: u64 = ["rewarded", "censored", "failed"]
            .iter()
            .map(|kind| status[kind].as_u64().unwrap())
            .sum();
        assert_eq!(sum, 600);
        let pulls: u64 = data["arms"]["pulls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pulls| pulls.as_u64().unwrap())
            .sum();
        assert_eq!(pulls, 600);
    }
}

#[test]
fn a_killed_run_and_a_torn_journal_have_reports_too() {
    let root = tempfile::tempdir().unwrap();
    let run = Simulated {
        is_ended: false,
        ..Simulated::default()
    };
    let folder = run.write(root.path());
    assert_eq!(data(&folder)["status"]["state"], "killed");
    // The lock says which: running, or killed.
    let lock = captime::journal::RunLock::take(&folder).unwrap();
    let status = data(&folder)["status"].clone();
    assert_eq!(status["state"], "running");
    let holder = format!("running (process {} on ", std::process::id());
    let words = status["words"].as_str().unwrap();
    assert!(words.starts_with(&holder), "{words}");
    drop(lock);
    assert_eq!(data(&folder)["status"]["state"], "killed");
    let journal = folder.join("journal.jsonl");
    let whole = fs::read(&journal).unwrap();
    fs::write(&journal, &whole[..whole.len() - 25]).unwrap();
    let torn = data(&folder);
    assert_eq!(torn["status"]["is_torn"], true);
    assert_eq!(torn["status"]["learned"], 599);
    assert_eq!(torn["status"]["in_flight"].as_array().unwrap().len(), 1);
    // Damage in the middle is not passed over.
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 4;
    fs::write(&journal, &damaged).unwrap();
    let assert = captime().arg("report").arg(&folder).assert().code(1);
    let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(message.contains("is damaged: line"), "{message}");
}

/// Makes the run and its report, and checks it: every chart is drawn, no errors, no requests.
fn look(browser: &mut Browser, root: &TempDir, run: &Simulated) {
    let path = report(&run.write(root.path()));
    browser.open_file(&path);
    browser.draw_all();
    browser.assert_quiet();
    let cannot = browser.evaluate("document.body.innerText.includes('cannot be drawn')");
    assert_eq!(cannot, json!(false), "{}", run.name);
}

#[test]
fn pages_of_unusual_runs_open_in_silence() {
    let Some(mut browser) = browser() else { return };
    let root = tempfile::tempdir().unwrap();
    for run in unusual() {
        let path = report(&run.write(root.path()));
        for (width, scheme) in [(1280, "light"), (390, "dark")] {
            browser.resize(width, 900);
            browser.prefer(scheme);
            browser.open_file(&path);
            browser.draw_all();
            browser.assert_quiet();
            let sticking = browser.evaluate("document.documentElement.scrollWidth - innerWidth");
            assert!(
                sticking.as_f64().unwrap() <= 0.0,
                "{}: {sticking}",
                run.name
            );
            let text = browser.evaluate("document.body.innerText");
            let text = text.as_str().unwrap();
            for wrong in ["cannot be drawn", "NaN", "undefined", "null", "Infinity"] {
                assert!(!text.contains(wrong), "{}: {wrong}", run.name);
            }
            assert_eq!(
                text.contains("limits are still being calibrated"),
                run.name.ends_with("calibrating"),
                "{}",
                run.name
            );
            browser.screenshot(&pictures().join(format!("{}-{width}-{scheme}.png", run.name)));
        }
    }
}

#[test]
fn the_page_reads_as_it_always_did() {
    let Some(mut browser) = browser() else { return };
    let root = tempfile::tempdir().unwrap();
    let run = Simulated {
        rounds: 300,
        ..Simulated::default()
    };
    browser.resize(1200, 900);
    look(&mut browser, &root, &run.with_instances(12));
    // Charts are pictures. This reads the text around them.
    let text = browser.evaluate(
        "document.querySelectorAll('.plot, .grid .body').forEach((part) => part.remove()); document.body.innerText",
    );
    insta::with_settings!({filters => vec![
        (r"captime \d+\.\d+\.\d+", "captime VERSION"),
        (r"/\S*/runs/made-up", "/FOLDER/runs/made-up"),
    ]}, {
        insta::assert_snapshot!("page_text", text.as_str().unwrap());
    });
}

#[test]
fn a_page_of_13440_rounds_is_small_and_can_be_used() {
    let Some(mut browser) = browser() else { return };
    let root = tempfile::tempdir().unwrap();
    let run = Simulated {
        name: "large",
        rounds: 13_440,
        arms: FOREST_ARMS.into(),
        slots: 4,
        ..Simulated::default()
    };
    let path = report(&run.write(root.path()));
    let size = fs::metadata(&path).unwrap().len();
    assert!(size <= 3_000_000, "{size} bytes");
    browser.resize(1280, 900);
    browser.open_file(&path);
    let opened = browser.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd");
    eprintln!("a page of 13,440 rounds and {size} bytes opens in {opened} ms");
    // A second on an idle machine; tests share theirs.
    let opened = opened.as_f64().unwrap();
    assert!(opened > 0.0 && opened < 8_000.0, "{opened} ms");
    browser.draw_all();
    browser.assert_quiet();
    // Charts have marks, axes with units and a legend, and are saved with all of that inside.
    let bare = browser.evaluate(
        "[...document.querySelectorAll('figure.chart')].filter((figure) => !figure.querySelector('.plot svg :is(path, circle, rect)') \
         || !figure.querySelector('.legend .key') || !figure.querySelector('.plot svg [aria-label$=\"-axis label\"]')).map((figure) => figure.innerText)",
    );
    assert_eq!(bare, json!([]));
    let count = browser.evaluate("document.querySelectorAll('figure.chart').length");
    assert!(count.as_u64().unwrap() >= 18, "{count}");
    let saved = browser.evaluate("toSvg(document.querySelector('#chart-survival'))");
    let saved = saved.as_str().unwrap();
    assert!(saved.starts_with("<svg") && saved.contains("Share of pulls still running"));
    assert!(saved.contains("the answer") && saved.contains("consumption (s CPU)"));
    // The table: sorting, searching, filtering, and few rows in the document however many there are.
    let first = |browser: &mut Browser| {
        browser
            .evaluate("document.querySelector('#arms-table .body .row').innerText.split('\\n')[0]")
    };
    let press = |title: &str| {
        format!(
            "[...document.querySelectorAll('#arms-table .head button')].find((button) => button.textContent.startsWith('{title}')).click()"
        )
    };
    browser.evaluate(&press("arm"));
    assert_eq!(first(&mut browser), "672");
    browser.evaluate(&press("arm"));
    assert_eq!(first(&mut browser), "1");
    let rows = "document.querySelector('#arms-table').dataset.rows";
    assert_eq!(browser.evaluate(rows), "672");
    let drawn = browser.evaluate("document.querySelectorAll('#arms-table .body .row').length");
    assert!(drawn.as_u64().unwrap() < 60);
    let search = |text: &str| {
        format!(
            "{{ const search = document.querySelector('#arms-search'); search.value = '{text}'; search.dispatchEvent(new Event('input')); }}"
        )
    };
    browser.evaluate(&search("trees=300 mtry=24"));
    assert_eq!(browser.evaluate(rows), "16");
    browser.evaluate(&search(""));
    browser.evaluate("{ const choice = document.querySelector('#arms-filter'); choice.value = 'failed'; choice.dispatchEvent(new Event('change')); }");
    let failed = browser.evaluate(rows);
    let failed: u64 = failed.as_str().unwrap().parse().unwrap();
    assert!((1..672).contains(&failed), "{failed}");
    // An arm opens with its curves and rounds, each with the way to its explanation.
    browser.evaluate("document.querySelector('#arms-table .body .row').click()");
    browser.wait_for("document.querySelector('dialog#arm .rounds .body .row')");
    browser.wait_for("document.querySelectorAll('dialog#arm figure.chart.drawn').length === 2");
    browser.evaluate("document.querySelector('dialog#arm a.explain').click()");
    browser.wait_for("document.body.innerText.includes('/runs/large ')");
    browser.assert_quiet();
}

#[test]
fn pictures_at_desktop_and_phone_width_in_light_and_dark() {
    let Some(mut browser) = browser() else { return };
    let root = tempfile::tempdir().unwrap();
    let run = Simulated::default().with_instances(60);
    let path = report(&run.write(root.path()));
    for (name, width, scheme) in [
        ("desktop-light", 1280, "light"),
        ("desktop-dark", 1280, "dark"),
        ("phone-light", 390, "light"),
    ] {
        browser.prefer(scheme);
        browser.resize(width, 900);
        browser.open_file(&path);
        browser.draw_all();
        // Nothing sticks out sideways.
        let sticking = browser.evaluate("document.documentElement.scrollWidth - innerWidth");
        assert!(sticking.as_f64().unwrap() <= 0.0, "{name}: {sticking}");
        browser.screenshot(&pictures().join(format!("{name}.png")));
    }
    let ground = browser.evaluate("getComputedStyle(document.body).backgroundColor");
    assert_eq!(ground, "rgb(244, 246, 248)");
    // Paper is white, whatever the system prefers.
    browser.resize(800, 900);
    browser.call(
        "Emulation.setEmulatedMedia",
        json!({"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}),
    );
    browser.evaluate("dispatchEvent(new Event('beforeprint'))");
    let ground = browser.evaluate("getComputedStyle(document.body).backgroundColor");
    assert_eq!(ground, "rgb(255, 255, 255)");
    browser.screenshot(&pictures().join("paper.png"));
    browser.assert_quiet();
}

#[test]
fn hostile_strings_are_only_text() {
    let Some(mut browser) = browser() else { return };
    let root = tempfile::tempdir().unwrap();
    let nasty = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>";
    let run = Simulated {
        name: "hostile",
        rounds: 200,
        arms: format!(
            "list: [{}, {}]",
            json!({"name": nasty, "a": nasty}),
            json!({"name": "b\"'><svg onload=window.hacked=1>", "a": "<!-- {{data}} \u{2028}"})
        ),
        instances: vec![
            nasty.into(),
            "javascript:window.hacked=1".into(),
            "--><b>".into(),
        ],
        stderr: "<b onmouseover=window.hacked=1>\u{1b}[31mred\u{1b}[0m</b></pre></script>\0\u{202e}txt.exe",
        fate: Fate::Failed,
        ..Simulated::default()
    };
    look(&mut browser, &root, &run);
    assert_eq!(browser.evaluate("typeof window.hacked"), "undefined");
    assert_eq!(
        browser.evaluate(
            "document.querySelectorAll('#page img, #page b[onmouseover], #page svg[onload]').length"
        ),
        0
    );
    let shown = browser.evaluate("document.querySelector('pre.stderr').textContent");
    assert!(shown.as_str().unwrap().starts_with("<b onmouseover"));
    let named = browser.evaluate("document.body.innerText.includes('<img src=x onerror')");
    assert_eq!(named, json!(true));
    // Only what the page brought itself may run, and nothing may be fetched.
    let refused = browser.evaluate(
        "new Promise((done) => { const script = document.createElement('script'); script.textContent = 'window.hacked=1'; \
         document.body.append(script); fetch('http://127.0.0.1:9/').then(() => done('fetched'), () => done(typeof window.hacked)); })",
    );
    assert_eq!(refused, "undefined");
}

#[test]
fn a_hundred_thousand_rounds_are_thinned() {
    let Some(mut browser) = browser() else { return };
    let root = tempfile::tempdir().unwrap();
    let run = Simulated {
        name: "long",
        rounds: 100_000,
        ..Simulated::default()
    };
    let path = report(&run.write(root.path()));
    let size = fs::metadata(&path).unwrap().len();
    assert!(size <= 3_000_000, "{size} bytes");
    browser.open_file(&path);
    browser.draw_all();
    browser.assert_quiet();
    let text = browser.evaluate("document.querySelector('.banner').innerText");
    assert!(
        text.as_str().unwrap().contains("of 100,000 rounds"),
        "{text}"
    );
    assert_eq!(
        browser.evaluate("document.querySelector('#numbers b').textContent"),
        "100,000"
    );
}

#[test]
fn a_study_has_a_page_with_the_same_charts() {
    let Some(mut browser) = browser() else { return };
    let root = tempfile::tempdir().unwrap();
    captime()
        .current_dir(&root)
        .args(["study", "paper", "--rounds", "1000", "--repetitions", "5"])
        .args(["--problem", "indep,poscorr", "--out", "figures"])
        .assert()
        .code(0);
    browser.resize(1200, 900);
    browser.open_file(&root.path().join("figures/study.html"));
    browser.draw_all();
    browser.assert_quiet();
    let count = browser.evaluate("document.querySelectorAll('figure.chart.drawn').length");
    assert_eq!(count, 12, "six of each problem");
    let marks = browser.evaluate(
        "document.querySelectorAll('figure.chart.wide .plot g[aria-label=line] path').length",
    );
    assert_eq!(
        marks, 18,
        "regret, reward and gain of three policies on two problems"
    );
    browser.screenshot(&pictures().join("study.png"));
}

#[test]
fn a_run_leaves_its_report_and_keeps_it_fresh_on_the_way() {
    let root = tempfile::tempdir().unwrap();
    let scenario =
        "name: quick\ntarget: {synthetic: {problem: indep}}\npolicy: rcucb\nbudget: {rounds: 50}\n";
    fs::write(root.path().join("quick.yaml"), scenario).unwrap();
    let assert = captime()
        .current_dir(&root)
        .args(["run", "quick.yaml", "--quiet"])
        .assert()
        .code(0);
    let summary = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(
        summary.contains("report    runs/quick/report.html"),
        "{summary}"
    );
    assert!(root.path().join("runs/quick/report.html").exists());
    // During a run, a thread does the same every few minutes. Here, every few milliseconds.
    let folder = Simulated {
        rounds: 20,
        is_ended: false,
        ..Simulated::default()
    }
    .write(root.path());
    let keeper = captime::report::ReportUpdater::start(&folder, Duration::from_millis(20));
    let began = Instant::now();
    while !folder.join("report.html").exists() {
        assert!(began.elapsed() < Duration::from_secs(30), "no report comes");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(keeper);
    let left: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name != "report.html" && name != "journal.jsonl")
        .collect();
    assert_eq!(
        left,
        Vec::<std::ffi::OsString>::new(),
        "nothing half done is left"
    );
}
