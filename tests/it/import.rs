//! `captime import`.

use std::fs;

use assert_cmd::Command;

/// What `captime import` prints to stdout and stderr for a file with this name and text.
fn import(name: &str, text: impl AsRef<[u8]>, args: &[&str], code: i32) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), text).unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_captime"))
        .current_dir(folder.path())
        .arg("import")
        .arg(name)
        .args(args)
        .assert()
        .code(code);
    let output = done.get_output();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

const PCS: &str = "heur {a, b} [a]\nk [1, 100] [10]il\nk | heur in {b}\n{heur=b, k=1}\n";

#[test]
fn a_space_is_printed_in_the_wanted_form_and_reads_back() {
    let (yaml, stderr) = import("params.pcs", PCS, &[], 0);
    assert_eq!(
        yaml,
        "arms:\n  space:\n    heur: {choice: [a, b], default: a}\n    k: {integer: [1, 100], scale: log, default: 10, when: heur == b}\n  forbid:\n    - heur == b and k == 1\n"
    );
    assert!(
        stderr.contains(
            "2 parameters, 1 of them conditional; conditions: 1; forbidden combinations: 1"
        ),
        "{stderr}"
    );
    let (pcs, _) = import("space.yaml", &yaml, &["--to", "pcs-old"], 0);
    let (again, _) = import("again.pcs", &pcs, &[], 0);
    assert_eq!(again, yaml);
}

#[test]
fn mistakes_show_their_line_and_leave_with_2() {
    let (nothing, stderr) = import("params.pcs", PCS.replace("heur in", "heurr in"), &[], 2);
    assert!(nothing.is_empty());
    assert!(stderr.contains("params.pcs:3:5"), "{stderr}");
    assert!(stderr.contains("did you mean `heur`?"), "{stderr}");
    let (_, stderr) = import(
        "params.pcs",
        PCS.replace("{a, b}", "{a b, b}").replace("[a]", "[b]"),
        &["--to", "irace"],
        0,
    );
    assert!(stderr.contains("irace has no defaults"), "{stderr}");
}

#[test]
fn a_scenario_of_another_tool_becomes_one_that_captime_checks() {
    let folder = tempfile::tempdir().unwrap();
    let text = "algo = sh wrapper.sh\nparamfile = params.pcs\nrun_obj = runtime\noverall_obj = PAR10\ncutoff_time = 5\nwallclock-limit = 60\ninstance_file = train.txt\nminR = 3\n";
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("scenario.txt", text);
    write("params.pcs", PCS);
    write("train.txt", "one.cnf\ntwo.cnf\n");
    let captime = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_captime"));
        command.current_dir(folder.path()).args(args);
        command.assert().code(0)
    };
    let imported = captime(&["import", "scenario.txt"]);
    let stderr = String::from_utf8_lossy(&imported.get_output().stderr).into_owned();
    assert!(stderr.contains("`minR = 3` has no counterpart"), "{stderr}");
    fs::write(
        folder.path().join("mine.yaml"),
        &imported.get_output().stdout,
    )
    .unwrap();
    let checked = captime(&["check", "mine.yaml"]);
    let shown = String::from_utf8_lossy(&checked.get_output().stdout).into_owned();
    assert!(shown.contains("wrapper.sh"), "{shown}");
}

#[test]
fn a_file_in_latin_1_is_read_with_one_warning() {
    let latin = b"# Gr\xf6\xdfe\na [0, 1] [0.5]\nb {x} [x] # \xe9\n";
    let (yaml, stderr) = import("params.pcs", latin, &[], 0);
    assert!(
        yaml.contains("a: {real: [0.0, 1.0], default: 0.5}"),
        "{yaml}"
    );
    let lines = stderr.matches("Latin-1").count();
    assert_eq!(lines, 1, "{stderr}");
    assert!(stderr.contains("line 1: "), "{stderr}");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("params.pcs"), latin).unwrap();
    let scenario = "target: {command: [echo, '{a}', '{b}']}\narms: {space: params.pcs}\nlimits: {max: 1s, grid: 2}\nbudget: {rounds: 3}\n";
    fs::write(folder.path().join("mine.yaml"), scenario).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_captime"));
    let checked = command
        .current_dir(folder.path())
        .args(["check", "mine.yaml"])
        .assert()
        .code(0);
    let shown = String::from_utf8_lossy(&checked.get_output().stderr).into_owned();
    assert_eq!(shown.matches("Latin-1").count(), 1, "{shown}");
}

#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("params.pcs");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_captime"));
    let refused = command.arg("import").arg(&path).assert().code(2);
    let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(stderr.contains("regular file"), "{stderr}");
}

#[test]
fn a_scenario_of_irace_is_not_taken_for_a_space() {
    let text = "maxExperiments = 1000\nparameterFile = \"./parameters.txt\"\n";
    let (_, stderr) = import("scenario.txt", text, &[], 2);
    assert!(stderr.contains("is a scenario of irace"), "{stderr}");
    assert!(
        stderr.contains("import its parameter file \"./parameters.txt\""),
        "{stderr}"
    );
}
