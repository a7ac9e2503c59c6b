//! What the async face and its supervisor process say to each other over their socket.
//!
//! Length-prefixed and binary, since arguments are bytes and may be megabytes; both ends are the same program.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::LimitError;
use super::launch::{Input, Launch, Limits, Output};
use super::level::{Level, MemoryControl};
use super::report::{Captured, Report};

/// The supervisor's first words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hello {
    pub level: Level,
    pub memory: MemoryControl,
    /// The groups to clean, should the supervisor be killed.
    pub home: Option<PathBuf>,
    pub legacy: Option<PathBuf>,
}

/// First byte of a request to run.
pub(super) const RUN: u8 = b'R';
/// First byte of a request to end the run whose number follows.
pub(super) const CANCEL: u8 = b'C';

/// The request to end run `number`.
pub(super) fn cancel(number: u64) -> [u8; 9] {
    let mut message = [CANCEL; 9];
    message[1..].copy_from_slice(&number.to_le_bytes());
    message
}

/// A message being written.
#[derive(Debug, Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn maybe<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn duration(&mut self, duration: Duration) {
        self.number(duration.as_secs());
        self.number(u64::from(duration.subsec_nanos()));
    }
}

/// A message being read.
#[derive(Debug)]
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, count: usize) -> io::Result<&[u8]> {
        if self.0.len() < count {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (first, rest) = self.0.split_at(count);
        self.0 = rest;
        Ok(first)
    }

    fn byte(&mut self) -> io::Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }

    fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let count = self.number()? as usize;
        Ok(self.take(count)?.to_vec())
    }

    fn text(&mut self) -> io::Result<OsString> {
        Ok(OsString::from_vec(self.bytes()?))
    }

    fn maybe<T>(&mut self, read: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<Option<T>> {
        (self.byte()? != 0).then(|| read(self)).transpose()
    }

    fn duration(&mut self) -> io::Result<Duration> {
        let seconds = self.number()?;
        let nanos = self.number()? as u32;
        Ok(Duration::new(seconds, nanos.min(999_999_999)))
    }

    fn many<T>(&mut self, mut read: impl FnMut(&mut Self) -> io::Result<T>) -> io::Result<Vec<T>> {
        (0..self.number()?).map(|_| read(self)).collect()
    }
}

/// Writes the request to run `launch` under `limits` as run `number`, with its first byte and length.
pub(super) fn request(number: u64, launch: &Launch, limits: &Limits) -> Vec<u8> {
    let mut to = Writer::default();
    to.0.push(RUN);
    to.number(0);
    to.number(number);
    to.number(launch.command.len() as u64);
    for argument in &launch.command {
        to.bytes(argument.as_bytes());
    }
    to.number(launch.env.len() as u64);
    for (name, value) in &launch.env {
        to.bytes(name.as_bytes());
        to.bytes(value.as_bytes());
    }
    to.maybe(launch.directory.as_ref(), |to, directory| {
        to.bytes(directory.as_os_str().as_bytes());
    });
    match &launch.input {
        Input::Empty => to.0.push(0),
        Input::Inherit => to.0.push(1),
        Input::File(path) => {
            to.0.push(2);
            to.bytes(path.as_os_str().as_bytes());
        }
    }
    let limit = match launch.output {
        Output::Inherit => None,
        Output::Capture { limit } => Some(limit),
    };
    to.maybe(limit, Writer::number);
    to.maybe(limits.wall, Writer::duration);
    to.maybe(limits.cpu, Writer::duration);
    to.maybe(limits.memory, Writer::number);
    to.duration(limits.grace);
    to.maybe(limits.cpus.as_ref(), |to, cpus| {
        to.number(cpus.len() as u64);
        for &cpu in cpus {
            to.number(cpu as u64);
        }
    });
    seal(to.0, 1)
}

/// Fills in the length, which stands in the eight bytes from `at`.
fn seal(mut message: Vec<u8>, at: usize) -> Vec<u8> {
    let length = (message.len() - at - 8) as u64;
    message[at..at + 8].copy_from_slice(&length.to_le_bytes());
    message
}

/// Reads the rest of a request, after its first byte.
pub(super) fn read_request(from: &mut impl Read) -> io::Result<(u64, Launch, Limits)> {
    let message = read_message(from)?;
    let mut from = Reader(&message);
    let number = from.number()?;
    let command = from.many(Reader::text)?;
    let env = from.many(|from| Ok((from.text()?, from.text()?)))?;
    let directory = from.maybe(|from| Ok(PathBuf::from(from.text()?)))?;
    let input = match from.byte()? {
        0 => Input::Empty,
        1 => Input::Inherit,
        _ => Input::File(from.text()?.into()),
    };
    let output = match from.maybe(Reader::number)? {
        None => Output::Inherit,
        Some(limit) => Output::Capture { limit },
    };
    let limits = Limits {
        wall: from.maybe(Reader::duration)?,
        cpu: from.maybe(Reader::duration)?,
        memory: from.maybe(Reader::number)?,
        grace: from.duration()?,
        cpus: from.maybe(|from| from.many(|from| Ok(from.number()? as usize)))?,
    };
    let launch = Launch {
        command,
        env,
        directory,
        input,
        output,
    };
    Ok((number, launch, limits))
}

fn read_message(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let mut message = vec![0; usize::try_from(u64::from_le_bytes(length)).unwrap_or(0)];
    from.read_exact(&mut message)?;
    Ok(message)
}

/// Writes anything that fits JSON, with its length.
pub(super) fn send_json(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut message = vec![0; 8];
    serde_json::to_writer(&mut message, value)?;
    to.write_all(&seal(message, 0))
}

/// Writes the answer to run `number`: the account, then what was captured as plain bytes.
///
/// The command is left out: the other side knows it.
pub(super) fn answer(number: u64, mut result: Result<Report, LimitError>) -> io::Result<Vec<u8>> {
    let mut captured = [None, None];
    if let Ok(report) = &mut result {
        captured = [report.stdout.take(), report.stderr.take()];
        report.command.clear();
    }
    let mut to = Writer::default();
    to.number(0);
    to.number(number);
    to.bytes(&serde_json::to_vec(&result)?);
    for stream in captured {
        to.maybe(stream, |to, stream| {
            to.bytes(&stream.head);
            to.bytes(&stream.tail);
            to.number(stream.dropped_bytes);
        });
    }
    Ok(seal(to.0, 0))
}

/// Reads the body of an answer.
pub(super) fn read_answer(message: &[u8]) -> io::Result<(u64, Result<Report, LimitError>)> {
    let mut from = Reader(message);
    let number = from.number()?;
    let mut result: Result<Report, LimitError> = serde_json::from_slice(&from.bytes()?)?;
    let captured = |from: &mut Reader<'_>| {
        Ok(Captured {
            head: from.bytes()?,
            tail: from.bytes()?,
            dropped_bytes: from.number()?,
        })
    };
    let stdout = from.maybe(captured)?;
    let stderr = from.maybe(captured)?;
    if let Ok(report) = &mut result {
        report.stdout = stdout;
        report.stderr = stderr;
    }
    Ok((number, result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_text() -> impl Strategy<Value = OsString> {
        prop::collection::vec(any::<u8>(), 0..20).prop_map(OsString::from_vec)
    }

    prop_compose! {
        fn any_launch()(
            command in prop::collection::vec(any_text(), 0..5),
            env in prop::collection::vec((any_text(), any_text()), 0..3),
            directory in prop::option::of(any_text().prop_map(PathBuf::from)),
            input in prop_oneof![
                Just(Input::Empty),
                Just(Input::Inherit),
                any_text().prop_map(|path| Input::File(path.into())),
            ],
            output in prop_oneof![
                Just(Output::Inherit),
                any::<u64>().prop_map(|limit| Output::Capture { limit }),
            ],
        ) -> Launch {
            Launch { command, env, directory, input, output }
        }
    }

    prop_compose! {
        fn any_limits()(
            wall in any::<Option<Duration>>(),
            cpu in any::<Option<Duration>>(),
            memory in any::<Option<u64>>(),
            grace in any::<Duration>(),
            cpus in any::<Option<Vec<usize>>>(),
        ) -> Limits {
            Limits { wall, cpu, memory, grace, cpus }
        }
    }

    proptest! {
        #[test]
        fn requests_arrive_as_they_were_sent(
            number: u64,
            launch in any_launch(),
            limits in any_limits(),
        ) {
            let message = request(number, &launch, &limits);
            prop_assert_eq!(message[0], RUN);
            let arrived = read_request(&mut &message[1..]).unwrap();
            prop_assert_eq!(arrived, (number, launch, limits));
        }

        #[test]
        fn broken_messages_are_errors(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = read_answer(&bytes);
            let mut whole = (bytes.len() as u64).to_le_bytes().to_vec();
            whole.extend(&bytes);
            let _ = read_request(&mut whole.as_slice());
        }
    }
}
