//! Help and bad usage.

use assert_cmd::Command;

fn captime() -> Command {
    Command::new(env!("CARGO_BIN_EXE_captime"))
}

#[test]
fn help_is_data_and_bad_usage_is_exit_2() {
    let help = captime().arg("--help").assert().code(0);
    assert!(!help.get_output().stdout.is_empty());
    let bad = captime().arg("no-such-command").assert().code(2);
    assert!(bad.get_output().stdout.is_empty());
}
