//! What is drawn, and what tooltips show.

use serde_json::{Value, json};

use super::browser::{Browser, browser};
use super::simulated::Simulated;
use super::{data, report};

/// How many elements a selector finds in a chart.
fn count(browser: &mut Browser, chart: &str, marks: &str) -> u64 {
    let found = browser.evaluate(&format!(
        "document.querySelectorAll('#chart-{chart} .plot svg {marks}').length"
    ));
    found.as_u64().unwrap()
}

/// Points at the middle of a mark and returns the tooltip.
fn point_at(browser: &mut Browser, chart: &str, mark: &str) -> String {
    let place = browser.evaluate(&format!(
        "{{ const mark = document.querySelector('#chart-{chart} .plot svg {mark}'); mark.scrollIntoView({{block: 'center'}}); \
         const box = mark.getBoundingClientRect(); [box.x + box.width / 2, box.y + box.height / 2]; }}"
    ));
    // Coming from somewhere else, as a hand does.
    for by in [3.0, 0.0] {
        browser.call(
            "Input.dispatchMouseEvent",
            json!({"type": "mouseMoved", "x": place[0].as_f64().unwrap() + by, "y": place[1].as_f64().unwrap()}),
        );
    }
    let tip = format!(
        "document.querySelector('#chart-{chart} .plot svg g[aria-label=tip]')?.textContent"
    );
    browser.wait_for(&tip);
    let told = browser.evaluate(&tip);
    told.as_str().unwrap().to_owned()
}

#[test]
fn instances_are_drawn_one_by_one_and_tell_their_names() {
    let Some(mut browser) = browser() else { return };
    let root = tempfile::tempdir().unwrap();
    let folder = Simulated::default().with_instances(30).write(root.path());
    let data = data(&folder);
    browser.resize(1200, 900);
    browser.open_file(&report(&folder));
    browser.draw_all();
    // A dot for every instance that both ran on.
    let both = data["instances"]["scatter"].as_array().unwrap();
    assert!(both.len() > 3, "{both:?}");
    let dots = count(
        &mut browser,
        "scatter",
        "g[aria-label=dot] :is(circle, path)",
    );
    assert_eq!(dots, both.len() as u64);
    // A line for each arm, a dot for each instance it solved.
    let lines = data["instances"]["cactus"].as_array().unwrap();
    let solved: Vec<usize> = lines
        .iter()
        .map(|line| line["points"].as_array().unwrap().len())
        .filter(|points| *points > 0)
        .collect();
    assert!(solved.len() >= 3, "{lines:?}");
    assert_eq!(
        count(&mut browser, "cactus", "g[aria-label=line] path"),
        solved.len() as u64
    );
    let dots = count(&mut browser, "cactus", "g[aria-label=dot] circle");
    assert_eq!(dots, solved.iter().sum::<usize>() as u64);
    let told = point_at(
        &mut browser,
        "scatter",
        "g[aria-label=dot] :is(circle, path)",
    );
    let is_named = |name: &Value| told.contains(name.as_str().unwrap());
    assert!(both.iter().any(|of| is_named(&of["name"])), "{told}");
    let told = point_at(&mut browser, "cactus", "g[aria-label=dot] circle");
    assert!(told.contains("instances within"), "{told}");
    browser.assert_quiet();
}

#[test]
fn charts_tell_values_where_they_are_pointed_at() {
    let Some(mut browser) = browser() else { return };
    let root = tempfile::tempdir().unwrap();
    let folder = Simulated::default().write(root.path());
    browser.resize(1200, 900);
    browser.open_file(&report(&folder));
    browser.draw_all();
    for (chart, mark, words) in [
        ("cumulative", "g[aria-label=line] path", "cumulative gain"),
        ("gain-by-limit", "g[aria-label=dot] circle", "gain"),
        ("importance", "g[aria-label=bar] rect", "%"),
        ("pair", "g[aria-label=cell] rect", "gain"),
        ("incumbent", "g[aria-label=line] path", "gain"),
        ("timeline", "g[aria-label=rect] rect", "round"),
        ("spent", "g[aria-label=bar] rect", "pull"),
    ] {
        let told = point_at(&mut browser, chart, mark);
        assert!(told.contains(words), "{chart}: {told}");
        assert!(
            !told.contains("NaN") && !told.contains("undefined"),
            "{chart}: {told}"
        );
    }
    browser.assert_quiet();
}

#[test]
fn refined_grids_have_a_dot_for_every_limit() {
    let Some(mut browser) = browser() else { return };
    let root = tempfile::tempdir().unwrap();
    let run = Simulated {
        policy: "z-rcucb",
        limits: "{of: wall, max: 5s}",
        rounds: 3000,
        ..Simulated::default()
    };
    let folder = run.write(root.path());
    let data = data(&folder);
    browser.resize(1200, 900);
    browser.open_file(&report(&folder));
    browser.draw_all();
    let grids = data["grids"].as_array().unwrap();
    let points: usize = grids
        .iter()
        .map(|grid| grid["points"].as_array().unwrap().len())
        .sum();
    assert!(
        !grids.is_empty() && points > 2 * grids.len() - 1,
        "{grids:?}"
    );
    assert_eq!(
        count(&mut browser, "grids", "g[aria-label=dot] circle"),
        points as u64
    );
    let told = point_at(&mut browser, "grids", "g[aria-label=dot] circle");
    assert!(told.contains("limit"), "{told}");
    browser.assert_quiet();
}
