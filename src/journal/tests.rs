//! Whole journals: written, cut, damaged, resumed, read while they grow.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::round::{ArmId, Limit, Round};

fn header() -> Header {
    Header {
        journal: VERSION,
        captime: "0.1.0".into(),
        name: "try".into(),
        started: "2026-01-01T00:00:00Z".into(),
        file: "try.yaml".into(),
        folder: ".".into(),
        hash: "0".into(),
        seed: 1,
        is_virtual: false,
        machine: Machine {
            host: "here".into(),
            kernel: "Linux 6".into(),
            cpus: 2,
            cpu: "some".into(),
            memory: 1 << 30,
        },
        enforcement: Value::Null,
        resolved: Value::Null,
        scenario: "name: try\ntarget: external\n".into(),
    }
}

fn pull(round: u64, seen: u64) -> PullRecord {
    PullRecord {
        round: Round(round),
        arm: ArmId::from_index(round as usize % 7),
        limit: Limit::new(1.5).unwrap(),
        instance: None,
        seed: None,
        seen,
        by: None,
    }
}

fn outcome(round: u64) -> OutcomeRecord<'static> {
    OutcomeRecord {
        outcome: round,
        reward: Some(0.25),
        consumption: Some(round as f64 / 1000.0),
        ..OutcomeRecord::default()
    }
}

/// A journal of this many rounds, one at a time.
fn journal(folder: &Path, rounds: u64) -> Appender {
    let mut journal = Appender::create(folder, &header(), Syncing::Outcomes).unwrap();
    for round in 1..=rounds {
        journal.append(&pull(round, round - 1)).unwrap();
        journal.append(&outcome(round)).unwrap();
    }
    journal
}

fn read_all(reader: &mut Reader) -> Result<u64, JournalError> {
    let mut records = 0;
    while reader.next()?.is_some() {
        records += 1;
    }
    Ok(records)
}

#[test]
fn what_is_written_reads_back_and_nobody_else_may_read_it() {
    let folder = tempfile::tempdir().unwrap();
    journal(folder.path(), 3);
    let mut reader = Reader::open(folder.path()).unwrap();
    assert_eq!(reader.header(), &header());
    assert_eq!(reader.next().unwrap(), Some(Record::Pull(pull(1, 0))));
    assert_eq!(reader.next().unwrap(), Some(Record::Outcome(outcome(1))));
    assert_eq!(read_all(&mut reader).unwrap(), 4);
    assert!(!reader.is_torn());
    let mode = fs::metadata(reader.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_reader_follows_a_journal_that_grows() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = journal(folder.path(), 1);
    let mut reader = Reader::open(folder.path()).unwrap();
    assert_eq!(read_all(&mut reader).unwrap(), 2);
    writer.append(&pull(2, 1)).unwrap();
    assert_eq!(reader.next().unwrap(), Some(Record::Pull(pull(2, 1))));
    // An incomplete last line is not a record, and not damage.
    let path = folder.path().join(FILE);
    let whole = fs::read(&path).unwrap();
    writer.append(&outcome(2)).unwrap();
    let line = fs::read(&path).unwrap()[whole.len()..].to_vec();
    let mut raw = OpenOptions::new().append(true).open(&path).unwrap();
    raw.set_len(whole.len() as u64).unwrap();
    raw.write_all(&line[..20]).unwrap();
    assert_eq!(reader.next().unwrap(), None);
    assert!(reader.is_torn());
    raw.write_all(&line[20..]).unwrap();
    assert_eq!(reader.next().unwrap(), Some(Record::Outcome(outcome(2))));
    assert!(!reader.is_torn());
}

#[test]
fn a_torn_tail_is_cut_wherever_it_is_torn() {
    let folder = tempfile::tempdir().unwrap();
    journal(folder.path(), 2);
    let path = folder.path().join(FILE);
    let whole = fs::read(&path).unwrap();
    let last_line = whole[..whole.len() - 1]
        .iter()
        .rposition(|&byte| byte == b'\n')
        .unwrap()
        + 1;
    for length in last_line..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let mut reader = Reader::open(folder.path()).unwrap();
        assert_eq!(read_all(&mut reader).unwrap(), 3);
        assert_eq!(reader.is_torn(), length > last_line);
        let mut writer = Appender::resume(&reader, Syncing::Outcomes).unwrap();
        writer.append(&outcome(2)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
    // Garbage of any length after the last whole line counts as an incomplete line too.
    fs::write(&path, [&whole[..], &[0; 5000], b"\n\n"].concat()).unwrap();
    let mut reader = Reader::open(folder.path()).unwrap();
    assert_eq!(read_all(&mut reader).unwrap(), 4);
    assert!(reader.is_torn());
}

#[test]
fn damage_in_the_middle_names_its_line() {
    let folder = tempfile::tempdir().unwrap();
    journal(folder.path(), 5);
    let path = folder.path().join(FILE);
    let whole = fs::read(&path).unwrap();
    let starts: Vec<usize> = std::iter::once(0)
        .chain(
            whole
                .iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'\n')
                .map(|(at, _)| at + 1),
        )
        .collect();
    for line in 1..10 {
        let mut damaged = whole.clone();
        damaged[starts[line] + 12] ^= 4;
        fs::write(&path, &damaged).unwrap();
        let mut reader = Reader::open(folder.path()).unwrap();
        let error = read_all(&mut reader).unwrap_err();
        assert!(
            matches!(error, JournalError::Damaged { line: named, damage: Damage::Changed, .. }
                if named == line as u64 + 1),
            "{error}"
        );
    }
    // A line taken out.
    fs::write(&path, [&whole[..starts[3]], &whole[starts[4]..]].concat()).unwrap();
    let error = read_all(&mut Reader::open(folder.path()).unwrap()).unwrap_err();
    assert!(
        matches!(
            error,
            JournalError::Damaged {
                line: 4,
                damage: Damage::Misplaced { number: 5 },
                ..
            }
        ),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("head -n 3"));
    // The header.
    let mut damaged = whole.clone();
    damaged[40] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let error = Reader::open(folder.path()).unwrap_err();
    assert!(matches!(error, JournalError::Damaged { line: 1, .. }));
    let hint = error.hint().unwrap();
    assert!(!hint.contains("head"), "would empty the journal: {hint}");
    assert!(hint.contains("from a copy"), "{hint}");
}

#[test]
fn missing_empty_and_newer_journals_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        Reader::open(folder.path()),
        Err(JournalError::Missing { .. })
    ));
    let path = folder.path().join(FILE);
    fs::write(&path, "").unwrap();
    assert!(matches!(
        Reader::open(folder.path()),
        Err(JournalError::Empty { .. })
    ));
    fs::write(&path, r#"{"journal":1,"capt"#).unwrap();
    assert!(matches!(
        Reader::open(folder.path()),
        Err(JournalError::NoLine { .. })
    ));
    fs::write(
        &path,
        format!("{{\"journal\":{},\"sealed\":\"otherwise\"}}\n", VERSION + 1),
    )
    .unwrap();
    let error = Reader::open(folder.path()).unwrap_err();
    assert!(matches!(error, JournalError::Newer { found, .. } if found == VERSION + 1));
    let version = format!("version {}", VERSION + 1);
    assert!(error.to_string().contains(&version), "{error}");
}

#[test]
fn outcomes_that_come_during_a_sync_share_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = journal(folder.path(), 1);
    let (tell, synced) = mpsc::channel();
    let (end_sync, sync_over) = mpsc::channel::<()>();
    writer
        .sync_elsewhere(move |durable| {
            tell.send(durable.unwrap()).unwrap();
            // The first sync blocks until it is released.
            let _ = sync_over.recv();
        })
        .unwrap();
    let mut write = |round| {
        writer.append(&pull(round, round - 1)).unwrap();
        let line = writer.append(&outcome(round)).unwrap();
        assert_eq!(writer.request_sync().unwrap(), None);
        line
    };
    let first = write(2);
    assert_eq!(synced.recv().unwrap(), first);
    let last = (3..=100).map(&mut write).last().unwrap();
    drop(end_sync);
    drop(writer);
    assert_eq!(
        synced.iter().collect::<Vec<_>>(),
        [last],
        "98 outcomes share one sync"
    );
}

#[test]
fn a_link_as_journal_or_lock_is_refused_and_what_it_leads_to_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let precious = folder.path().join("precious");
    for text in ["mine\n", "mine, without a newline", ""] {
        for name in [FILE, "lock"] {
            fs::write(&precious, text).unwrap();
            let link = folder.path().join(name);
            std::os::unix::fs::symlink(&precious, &link).unwrap();
            let error = if name == FILE {
                Appender::create(folder.path(), &header(), Syncing::Outcomes).unwrap_err()
            } else {
                RunLock::take(folder.path()).unwrap_err()
            };
            assert!(error.to_string().contains("symbolic link"), "{error}");
            assert!(error.hint().is_some());
            assert_eq!(fs::read_to_string(&precious).unwrap(), text);
            fs::remove_file(&link).unwrap();
        }
    }
    // A whole journal behind a link can be read, but not written.
    journal(folder.path(), 1);
    let path = folder.path().join(FILE);
    fs::rename(&path, &precious).unwrap();
    std::os::unix::fs::symlink(&precious, &path).unwrap();
    let before = fs::read(&precious).unwrap();
    let mut reader = Reader::open(folder.path()).unwrap();
    assert_eq!(read_all(&mut reader).unwrap(), 2);
    let error = Appender::resume(&reader, Syncing::Outcomes).unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    assert_eq!(fs::read(&precious).unwrap(), before);
}

#[test]
fn a_pipe_or_device_as_journal_or_lock_is_refused_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    for name in [FILE, "lock"] {
        let path = folder.path().join(name);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = if name == FILE {
            Reader::open(folder.path()).unwrap_err()
        } else {
            RunLock::take(folder.path()).unwrap_err()
        };
        assert!(error.to_string().contains("regular file"), "{error}");
        assert!(
            name == "lock" || Appender::create(folder.path(), &header(), Syncing::AtEnd).is_err()
        );
        fs::remove_file(&path).unwrap();
    }
    std::os::unix::fs::symlink("/dev/zero", folder.path().join(FILE)).unwrap();
    let error = Reader::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("regular file"), "{error}");
}

#[test]
fn a_new_journal_has_its_header_from_the_start_and_takes_no_other_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    // A captime that was killed meanwhile leaves only this.
    fs::write(folder.path().join("journal.new"), "{\"jour").unwrap();
    journal(folder.path(), 1);
    let names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, [FILE], "nothing else stays");
    let before = fs::read(&path).unwrap();
    Appender::create(folder.path(), &header(), Syncing::AtEnd).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_journal_replaced_during_the_run_is_noticed_even_if_it_has_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = journal(folder.path(), 1);
    let path = folder.path().join(FILE);
    fs::hard_link(&path, folder.path().join("backup")).unwrap();
    writer.append(&pull(2, 1)).unwrap();
    writer.sync().unwrap();
    fs::write(folder.path().join("other"), "x\n").unwrap();
    fs::rename(folder.path().join("other"), &path).unwrap();
    writer.append(&outcome(2)).unwrap();
    let error = writer.sync().unwrap_err();
    assert!(error.to_string().contains("was replaced"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "x\n");
    // Taken away altogether.
    fs::remove_file(&path).unwrap();
    let error = writer.sync().unwrap_err();
    assert!(error.to_string().contains("was deleted"), "{error}");
}

#[test]
fn a_full_disk_is_an_error_that_says_so() {
    // Writing to /dev/full fails the way a full disk does.
    let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut journal = Appender::over(file, FILE.into(), Syncing::Outcomes, 0, 0);
    let error = journal.append(&header()).unwrap_err();
    assert!(matches!(error, JournalError::Write { .. }), "{error}");
    assert!(error.hint().unwrap().contains("disk is full"));
    // Whatever is tried next fails the same way: a line must not follow the gap.
    for again in [
        journal.flush().unwrap_err(),
        journal.sync().unwrap_err(),
        journal.request_sync().unwrap_err(),
        journal.append(&pull(1, 0)).unwrap_err(),
    ] {
        assert_eq!(again.to_string(), error.to_string());
        assert_eq!(again.hint(), error.hint());
    }
}

#[test]
fn senseless_journals_are_refused() {
    for (what, write) in [
        (
            "an outcome without its pull",
            (|to| to.append(&outcome(1)).map(|_| ()))
                as fn(&mut Appender) -> Result<(), JournalError>,
        ),
        ("a round that ends twice", |to| {
            to.append(&pull(1, 0))?;
            to.append(&outcome(1))?;
            to.append(&outcome(1)).map(|_| ())
        }),
        ("a pull out of turn", |to| {
            to.append(&pull(2, 0)).map(|_| ())
        }),
        ("a pull that saw the future", |to| {
            to.append(&pull(1, 3)).map(|_| ())
        }),
        ("a reward without consumption", |to| {
            to.append(&pull(1, 0))?;
            to.append(&OutcomeRecord {
                consumption: None,
                ..outcome(1)
            })
            .map(|_| ())
        }),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Appender::create(folder.path(), &header(), Syncing::AtEnd).unwrap();
        write(&mut writer).unwrap();
        writer.sync().unwrap();
        let mut replay = Replay::new(Reader::open(folder.path()).unwrap());
        let end = loop {
            match replay.next() {
                Ok(Some(_)) => {}
                end => break end,
            }
        };
        assert!(matches!(end, Err(JournalError::Senseless { .. })), "{what}");
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Did {
    Launched(u64),
    Learned(u64),
}

proptest! {
    /// In whatever order pulls end, and however many outcomes share a sync, a replay returns the steps in their order.
    #[test]
    fn replay_restores_the_order_of_launches_and_lessons(
        slots in 1_usize..5,
        rounds in 1_u64..40,
        luck in proptest::collection::vec((any::<u8>(), any::<bool>()), 200),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Appender::create(folder.path(), &header(), Syncing::AtEnd).unwrap();
        let (mut did, mut running, mut unsynced) = (vec![], vec![], vec![]);
        let (mut launched, mut learned) = (0, 0);
        let mut launch = |writer: &mut Appender, did: &mut Vec<Did>, running: &mut Vec<u64>, learned: u64| {
            if launched < rounds {
                launched += 1;
                writer.append(&pull(launched, learned)).unwrap();
                did.push(Did::Launched(launched));
                running.push(launched);
            }
        };
        for _ in 0..slots {
            launch(&mut writer, &mut did, &mut running, learned);
        }
        for (which, is_synced) in luck {
            if !running.is_empty() {
                let ended = running.remove(which as usize % running.len());
                writer.append(&outcome(ended)).unwrap();
                unsynced.push(ended);
            }
            if is_synced {
                for round in unsynced.drain(..) {
                    did.push(Did::Learned(round));
                    learned += 1;
                    launch(&mut writer, &mut did, &mut running, learned);
                }
            }
        }
        writer.sync().unwrap();
        let mut replay = Replay::new(Reader::open(folder.path()).unwrap());
        let mut replayed = vec![];
        while let Some(step) = replay.next().unwrap() {
            match step {
                Step::Launched(pull) => replayed.push(Did::Launched(pull.round.0)),
                Step::Learned(learned) => replayed.push(Did::Learned(learned.outcome.outcome)),
                _ => {}
            }
        }
        let in_flight: Vec<u64> = replay.in_flight().map(|pull| pull.round.0).collect();
        while let Some(waiting) = replay.take_waiting() {
            replayed.push(Did::Learned(waiting.outcome.outcome));
        }
        let rest: Vec<Did> = unsynced.into_iter().map(Did::Learned).collect();
        did.extend(rest);
        prop_assert_eq!(replayed, did);
        running.sort_unstable();
        prop_assert_eq!(in_flight, running);
    }
}
