//! Containment: what a command in its own namespaces can and cannot do.

use std::time::Duration;

use captime_limit::{Cause, Contain, Launch, LimitError, Output, Report, Setup, blocking};

use super::test_bench::{Book, skip, wall};

/// A slot with this containment; `None`, said on stderr, where the machine does not allow it.
fn slot(contain: Contain) -> Option<blocking::Supervisor> {
    let setup = Setup {
        contain: Some(contain),
        ..Setup::default()
    };
    match blocking::Supervisor::start(&setup) {
        Ok(supervisor) => Some(supervisor),
        Err(error @ LimitError::Contain { .. }) => {
            skip(&error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn shell(supervisor: &mut blocking::Supervisor, script: &str) -> Report {
    let launch = Launch {
        output: Output::Capture { limit: 1 << 16 },
        ..Launch::new(["sh", "-c", script])
    };
    supervisor.run(&launch, &wall(15_000)).unwrap()
}

fn said(supervisor: &mut blocking::Supervisor, script: &str) -> String {
    let report = shell(supervisor, script);
    let stderr = report.stderr.unwrap().text();
    assert_eq!(report.exit_code, Some(0), "{script}: {stderr}");
    report.stdout.unwrap().text()
}

#[test]
fn a_contained_command_sees_its_own_tree_only() {
    for contain in [Contain::Pids, Contain::Full] {
        let Some(mut supervisor) = slot(contain) else {
            continue;
        };
        assert_eq!(supervisor.contain(), contain);
        let seen = said(&mut supervisor, "echo /proc/[0-9]*");
        let count = seen.split_whitespace().count();
        assert!((2..=3).contains(&count), "{seen}");
        let report = shell(&mut supervisor, "true");
        assert_eq!(report.contain, contain);
        // Its number is not that of an init, so its own signals end it.
        let report = shell(&mut supervisor, "kill -TERM $$; sleep 5");
        assert_eq!((report.cause, report.signal), (Cause::None, Some(15)));
        supervisor.close();
    }
}

#[test]
fn a_contained_command_can_neither_stop_nor_kill_its_supervisor() {
    let Some(mut supervisor) = slot(Contain::Pids) else {
        return;
    };
    let pid = supervisor.id().unwrap();
    for mode in [
        "stop-ancestors",
        "trace-parent",
        "kill-ancestors",
        "kill-everything",
    ] {
        let book = Book::open();
        let report = supervisor
            .run(&Launch::new(book.command(&[mode])), &wall(600))
            .unwrap();
        assert_eq!(report.cause, Cause::Wall, "{mode}: {report:?}");
        let books = book.close();
        assert!(books.end - books.start < Duration::from_secs(4), "{mode}");
    }
    assert_eq!(supervisor.id(), Some(pid), "the supervisor was replaced");
    supervisor.close();
}

#[test]
fn control_groups_are_read_only_for_a_contained_command() {
    let Some(mut supervisor) = slot(Contain::Pids) else {
        return;
    };
    let script = "for g in $(grep -E 'cgroup2? ' /proc/self/mounts | grep -E ' cgroup2? ' | cut -d' ' -f2); do \
                  mkdir $g/contained-test 2>/dev/null && echo $g; mount -o remount,rw $g 2>/dev/null && echo $g again; done; true";
    assert_eq!(said(&mut supervisor, script), "");
    supervisor.close();
}

#[test]
fn full_containment_hides_temporary_files_and_the_network() {
    let Some(mut supervisor) = slot(Contain::Full) else {
        return;
    };
    assert_eq!(
        said(&mut supervisor, "ls -A /tmp /dev/shm"),
        "/dev/shm:\n\n/tmp:\n"
    );
    assert_eq!(
        said(&mut supervisor, "touch /tmp/mine /dev/shm/mine; ls /tmp"),
        "mine\n"
    );
    // The next run has others.
    assert_eq!(said(&mut supervisor, "ls /tmp"), "");
    let interfaces = said(
        &mut supervisor,
        "cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '",
    );
    assert_eq!(interfaces, "lo\n");
    supervisor.close();
}
