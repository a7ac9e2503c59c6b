//! The calls that wait: the same runs without tokio.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use captime_limit::{Cause, Launch, LimitError, Output, Setup, blocking};

use super::test_bench::wall;

#[test]
fn output_goes_to_a_private_file_or_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("output");
    let script = ["sh", "-c", "echo one; echo two >&2; echo three"];
    let mut supervisor = blocking::Supervisor::start(&Setup::default()).unwrap();
    // Twice: what an earlier run left is gone.
    for _ in 0..2 {
        let launch = Launch {
            output: Output::File(file.clone()),
            ..Launch::new(script)
        };
        let report = supervisor.run(&launch, &wall(15_000)).unwrap();
        assert_eq!(report.exit_code, Some(0));
        assert_eq!((report.stdout, report.stderr), (None, None));
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text, "one\ntwo\nthree\n");
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let launch = Launch {
        output: Output::Discard,
        ..Launch::new([
            "sh",
            "-c",
            "readlink /proc/self/fd/1 >&2; test /proc/self/fd/1 -ef /dev/null",
        ])
    };
    let report = supervisor.run(&launch, &wall(15_000)).unwrap();
    assert_eq!(report.exit_code, Some(0));
    let launch = Launch {
        output: Output::File("/no/such/folder/output".into()),
        ..Launch::new(script)
    };
    let error = supervisor.run(&launch, &wall(15_000)).unwrap_err();
    assert!(matches!(error, LimitError::Output { .. }), "{error}");
    supervisor.close();
}

#[test]
fn a_run_is_cancelled_from_another_thread_and_the_slot_works_on() {
    let mut supervisor = blocking::Supervisor::start(&Setup::default()).unwrap();
    let canceller = supervisor.canceller();
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            canceller.cancel();
        });
        supervisor.run(&Launch::new(["sleep", "20"]), &wall(15_000))
    });
    assert_eq!(report.unwrap().cause, Cause::Cancelled);
    canceller.cancel();
    let report = supervisor
        .run(&Launch::new(["true"]), &wall(15_000))
        .unwrap();
    assert_eq!((report.cause, report.exit_code), (Cause::None, Some(0)));
    supervisor.close();
}
