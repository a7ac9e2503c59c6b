//! Help, bad usage, and what the program needs to run.

use assert_cmd::Command;

fn captime() -> Command {
    Command::new(env!("CARGO_BIN_EXE_captime"))
}

fn help(words: &[&str]) -> String {
    let output = captime().args(words).arg("--help").assert().code(0);
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

/// The commands that the help of captime lists.
fn commands() -> Vec<String> {
    let help = help(&[]);
    let list = help.split_once("Commands:\n").unwrap().1;
    list.lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|name| name != "help")
        .collect()
}

#[test]
fn help_is_data_and_bad_usage_is_exit_2() {
    let help = captime().arg("--help").assert().code(0);
    assert!(!help.get_output().stdout.is_empty());
    let bad = captime().arg("no-such-command").assert().code(2);
    assert!(bad.get_output().stdout.is_empty());
}

#[test]
fn the_help_of_every_command_says_its_purpose_two_examples_and_its_exit_codes() {
    let explains = |help: &str, begin: &str| {
        let examples = help.split_once("Examples:\n").expect(begin).1;
        let examples = examples.split("\n\n").next().unwrap().lines();
        let count = examples.filter(|line| line.starts_with(begin)).count();
        assert!(count >= 2, "{begin}: {count} examples");
        assert!(help.contains("Exit codes:"), "{begin}");
    };
    let whole = help(&[]);
    explains(&whole, "  captime ");
    insta::assert_snapshot!("help", whole);
    for name in &commands() {
        let help = help(&[name]);
        explains(&help, &format!("  captime {name}"));
        insta::assert_snapshot!(format!("help_{name}"), help);
    }
}

#[test]
fn commands_are_listed_in_the_order_in_which_one_meets_them() {
    let order = "init check run best test list explain report serve export study import ask pull record submit agent exec forest predict schema completions man";
    assert_eq!(commands().join(" "), order);
}

/// Filled and hyphenated lines could not be pasted.
#[test]
fn examples_stand_in_the_manual_as_they_are_written() {
    let man = captime().arg("man").assert().code(0);
    let page = String::from_utf8_lossy(&man.get_output().stdout);
    let examples = page.split("\n.nf\nExamples:\n").skip(1);
    let examples: Vec<&str> = examples
        .map(|rest| rest.split_once("\n.fi").unwrap().0)
        .collect();
    assert_eq!(examples.len(), commands().len() + 1, "{page}");
    assert!(examples.iter().all(|block| block.contains("  captime ")));
}

#[test]
fn the_program_needs_nothing_but_the_c_library() {
    let listed = Command::new("ldd")
        .arg(env!("CARGO_BIN_EXE_captime"))
        .output()
        .unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let archive = Command::new("cc")
        .arg("-print-file-name=libgcc_eh.a")
        .output();
    let has_archive = archive.is_ok_and(|archive| archive.stdout.starts_with(b"/"));
    let mut allowed = vec!["linux-vdso", "ld-linux", "libc.so", "libm.so"];
    if !has_archive {
        crate::test_run::skipped("this compiler has no archive to take the unwinder from");
        allowed.push("libgcc_s.so");
    }
    assert!(listed.contains("libc.so"), "{listed}");
    for line in listed.lines() {
        let name = line
            .trim()
            .rsplit_once('/')
            .map_or(line.trim(), |(_, name)| name);
        assert!(
            allowed.iter().any(|known| name.starts_with(known)),
            "{line}"
        );
    }
}

#[test]
fn the_manual_is_one_page_that_refers_to_no_others() {
    let man = captime().arg("man").assert().code(0);
    let page = String::from_utf8_lossy(&man.get_output().stdout);
    for command in commands() {
        assert!(
            page.contains(&format!("\ncaptime {command}\n")),
            "{command}"
        );
        let section = format!("\n.SH CAPTIME {}\n", command.to_uppercase());
        assert!(page.contains(&section), "{command}");
    }
    assert!(!page.contains("(1)\n") && !page.contains("EXTRA"));
}
