//! `captime best` where there is nothing to recommend.

use serde_json::Value;

use crate::run::SCRIPT;
use crate::scene::{Scene, expect};

/// Pulls that all fail, and a run that plays on regardless.
pub fn failing() -> Scene {
    let failing = SCRIPT.replace("echo score=0.{a}{b}", "exit 9");
    Scene::new(&(failing + "stop_on_first_failures: false\n"))
}

/// The answer in both forms for programs.
fn answers(scene: &Scene) -> [Value; 2] {
    let (json, _) = expect(&scene.captime(&["best", "try", "--format", "json"]), 3);
    let (yaml, _) = expect(&scene.captime(&["best", "try", "--format", "yaml"]), 3);
    [
        serde_json::from_str(&json).unwrap(),
        serde_yaml::from_str(&yaml).unwrap(),
    ]
}

fn has_no_pair(answer: &Value) {
    for key in ["arm", "configuration", "limit", "gain", "mean", "interval"] {
        assert_eq!(answer.get(key), Some(&Value::Null), "{key} of {answer}");
    }
    for key in ["pulls", "censored", "command"] {
        assert_eq!(answer.get(key), Some(&Value::Null), "{key} of {answer}");
    }
    assert_eq!(answer["name"], "try");
    assert_eq!(answer["resource"], "wall");
}

#[test]
fn without_a_reward_there_is_no_pair_for_people_nor_for_programs() {
    let scene = failing();
    let (events, _) = scene.run(3, &["--format", "json"]);
    let end: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert_eq!(end["event"], "end");
    assert_eq!(end.get("best"), Some(&Value::Null), "{end}");
    let (text, _) = expect(&scene.captime(&["best", "try"]), 3);
    assert!(
        text.contains("nothing: no pull has brought a reward"),
        "{text}"
    );
    assert!(
        !text.contains("raise the largest limit"),
        "none was cut off: {text}"
    );
    for answer in answers(&scene) {
        has_no_pair(&answer);
        assert_eq!(answer["rounds"], 30);
    }
}

#[test]
fn without_an_outcome_best_says_so_with_the_same_exit_code() {
    let scene = Scene::new(SCRIPT);
    scene.run(0, &["--quiet"]);
    let journal = std::fs::read_to_string(scene.journal("try")).unwrap();
    let header = journal.split_inclusive('\n').next().unwrap();
    std::fs::write(scene.journal("try"), header).unwrap();
    let (text, _) = expect(&scene.captime(&["best", "try"]), 3);
    assert!(text.contains("nothing can be recommended yet"), "{text}");
    for answer in answers(&scene) {
        has_no_pair(&answer);
        assert_eq!(answer["rounds"], 0);
    }
}
