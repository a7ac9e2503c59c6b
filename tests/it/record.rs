//! `captime record`: where its matrix is written.

use crate::run::SCRIPT;
use crate::scene::{Scene, expect};

#[test]
fn a_recording_goes_to_a_folder_of_the_scenarios_name_unless_another_is_given() {
    let scene = Scene::new(SCRIPT);
    let (line, _) = expect(&scene.captime(&["record", "s.yaml", "--times", "2"]), 0);
    let folder = scene.path().join("recorded/try");
    for name in ["consumption.csv", "reward.csv"] {
        let path = folder.join(name);
        assert!(line.contains(&path.display().to_string()), "{line}");
        let table = std::fs::read_to_string(path).unwrap();
        assert_eq!(table.lines().count(), 3, "{table}");
    }
    // The same command finds what is there, and more of it adds rows.
    expect(&scene.captime(&["record", "s.yaml", "--times", "3"]), 0);
    let table = std::fs::read_to_string(folder.join("reward.csv")).unwrap();
    assert_eq!(table.lines().count(), 4, "{table}");
}
