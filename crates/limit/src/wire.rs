//! What the main process and a supervisor process say to each other over their socket.
//!
//! To the supervisor: a request to run (`RUN`, a length, the request), or nine bytes about a run (`CANCEL` or `PING`, its number). From the
//! supervisor: frames, each a kind, a length and a body. Binary, since arguments are bytes and may be megabytes; both ends
//! are the same program.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::contain::Contain;
use super::error::LimitError;
use super::launch::{Input, Launch, Limits, Output};
use super::level::{Level, MemoryControl};
use super::log::Message;
use super::report::{Captured, Report};

/// What the supervisor says first: how it will enforce limits.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Hello {
    pub level: Level,
    pub memory: MemoryControl,
    pub contain: Contain,
    /// The groups to clean, should the supervisor be killed.
    pub home: Option<PathBuf>,
    pub legacy: Option<PathBuf>,
}

/// First byte of a request to run.
pub(super) const RUN: u8 = b'R';
/// First byte of a request to end the run whose number follows.
pub(super) const CANCEL: u8 = b'C';

/// First byte of a request to answer at once, if only to show that the supervisor is alive.
pub(super) const PING: u8 = b'P';
/// Bytes of `CANCEL` and `PING`.
pub(super) const SHORT: usize = 9;

/// A request about run `number`.
pub(super) fn short(kind: u8, number: u64) -> [u8; SHORT] {
    let mut message = [kind; SHORT];
    message[1..].copy_from_slice(&number.to_le_bytes());
    message
}

/// What a frame from the supervisor is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Frame {
    /// The process number of the supervisor.
    Process = b'S',
    /// A `Result<Hello, LimitError>` as JSON.
    Hello = b'H',
    /// The answer to a request to run.
    Reply = b'A',
    /// The answer to a ping.
    Pong = b'P',
}

/// One frame with its kind and length.
pub(super) fn frame(kind: Frame, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind as u8];
    message.extend_from_slice(&(body.len() as u64).to_le_bytes());
    message.extend_from_slice(body);
    message
}

/// Takes the first frame out of what has arrived, if all of it is there.
pub(super) fn take_frame(inbox: &mut Vec<u8>) -> io::Result<Option<(Frame, Vec<u8>)>> {
    let Some((&[kind, length @ ..], rest)) = inbox.split_first_chunk::<SHORT>() else {
        return Ok(None);
    };
    let kind = [Frame::Process, Frame::Hello, Frame::Reply, Frame::Pong]
        .into_iter()
        .find(|frame| *frame as u8 == kind)
        .ok_or(io::ErrorKind::InvalidData)?;
    let length = usize::try_from(u64::from_le_bytes(length)).map_err(io::Error::other)?;
    if rest.len() < length {
        return Ok(None);
    }
    let body = rest[..length].to_vec();
    inbox.drain(..SHORT + length);
    Ok(Some((kind, body)))
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
        match self.byte()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn duration(&mut self) -> io::Result<Duration> {
        let seconds = self.number()?;
        match u32::try_from(self.number()?) {
            Ok(nanos) if nanos < 1_000_000_000 => Ok(Duration::new(seconds, nanos)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn many<T>(&mut self, mut read: impl FnMut(&mut Self) -> io::Result<T>) -> io::Result<Vec<T>> {
        (0..self.number()?).map(|_| read(self)).collect()
    }

    /// Refuses a message with bytes after its end.
    fn end(&self) -> io::Result<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
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
    match &launch.output {
        Output::Inherit => to.0.push(0),
        Output::Discard => to.0.push(1),
        Output::File(path) => {
            to.0.push(2);
            to.bytes(path.as_os_str().as_bytes());
        }
        Output::Capture { limit } => {
            to.0.push(3);
            to.number(*limit);
        }
    }
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
    let length = (to.0.len() - SHORT) as u64;
    to.0[1..SHORT].copy_from_slice(&length.to_le_bytes());
    to.0
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
        2 => Input::File(from.text()?.into()),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let output = match from.byte()? {
        0 => Output::Inherit,
        1 => Output::Discard,
        2 => Output::File(from.text()?.into()),
        3 => Output::Capture {
            limit: from.number()?,
        },
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let limits = Limits {
        wall: from.maybe(Reader::duration)?,
        cpu: from.maybe(Reader::duration)?,
        memory: from.maybe(Reader::number)?,
        grace: from.duration()?,
        cpus: from.maybe(|from| from.many(|from| Ok(from.number()? as usize)))?,
    };
    from.end()?;
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
    let length = u64::from_le_bytes(length);
    // One byte more than that, or the end is looked for with another buffer.
    let mut message = Vec::with_capacity(usize::try_from(length.min(1 << 16)).unwrap_or(0) + 1);
    if from.take(length).read_to_end(&mut message)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(message)
}

/// What comes of a request to run.
#[derive(Debug)]
pub(super) struct Reply {
    pub number: u64,
    pub result: Result<Report, LimitError>,
    /// Whether the supervisor is not fit for another run.
    pub is_last: bool,
    /// What the supervisor adds to the log.
    pub messages: Vec<Message>,
}

impl Reply {
    /// The body of its frame: the account, then what was captured as plain bytes.
    ///
    /// The command is left out: the other side knows it.
    pub(super) fn write(mut self) -> io::Result<Vec<u8>> {
        let mut captured = [None, None];
        if let Ok(report) = &mut self.result {
            captured = [report.stdout.take(), report.stderr.take()];
            report.command.clear();
        }
        let mut to = Writer::default();
        to.number(self.number);
        to.bytes(&serde_json::to_vec(&(
            &self.result,
            self.is_last,
            &self.messages,
        ))?);
        for stream in captured {
            to.maybe(stream, |to, stream| {
                to.bytes(&stream.head);
                to.bytes(&stream.tail);
                to.number(stream.dropped_bytes);
            });
        }
        Ok(to.0)
    }

    /// Reads the body of its frame.
    pub(super) fn read(body: &[u8]) -> io::Result<Self> {
        let mut from = Reader(body);
        let number = from.number()?;
        let (mut result, is_last, messages): (Result<Report, LimitError>, _, _) =
            serde_json::from_slice(&from.bytes()?)?;
        let captured = |from: &mut Reader<'_>| {
            Ok(Captured {
                head: from.bytes()?,
                tail: from.bytes()?,
                dropped_bytes: from.number()?,
            })
        };
        let stdout = from.maybe(captured)?;
        let stderr = from.maybe(captured)?;
        from.end()?;
        if let Ok(report) = &mut result {
            report.stdout = stdout;
            report.stderr = stderr;
        }
        Ok(Self {
            number,
            result,
            is_last,
            messages,
        })
    }
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
                Just(Output::Discard),
                any_text().prop_map(|path| Output::File(path.into())),
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
        fn a_request_that_was_cut_or_prolonged_is_an_error(
            launch in any_launch(),
            limits in any_limits(),
            cut in any::<prop::sample::Index>(),
            extra in prop::collection::vec(any::<u8>(), 1..9),
        ) {
            let whole = request(7, &launch, &limits);
            // The stream ends early.
            let short = &whole[1..=cut.index(whole.len() - 1)];
            prop_assert!(read_request(&mut &*short).is_err());
            // The length says so, or says more than the request needs.
            let body = &whole[SHORT..];
            let sealed = |body: &[u8]| {
                let mut message = (body.len() as u64).to_le_bytes().to_vec();
                message.extend(body);
                message
            };
            let short = sealed(&body[..cut.index(body.len())]);
            prop_assert!(read_request(&mut short.as_slice()).is_err());
            let long = sealed(&[body, &extra].concat());
            prop_assert!(read_request(&mut long.as_slice()).is_err());
        }

        #[test]
        fn an_answer_that_was_cut_or_prolonged_is_an_error(
            head in prop::collection::vec(any::<u8>(), 0..20),
            cut in any::<prop::sample::Index>(),
            extra in prop::collection::vec(any::<u8>(), 1..9),
        ) {
            let whole = any_answer(head.clone()).write().unwrap();
            let read = Reply::read(&whole).unwrap();
            prop_assert_eq!(read.result.unwrap().stdout.unwrap().head, head);
            prop_assert_eq!(read.messages, [Message::Debug("woken".to_owned())]);
            prop_assert!(Reply::read(&whole[..cut.index(whole.len())]).is_err());
            prop_assert!(Reply::read(&[whole, extra].concat()).is_err());
        }

        #[test]
        fn random_bytes_are_not_a_request(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            // Eight bytes that say more than there is, or counts and kinds that do not exist: nothing of it may pass or panic.
            prop_assert!(read_request(&mut bytes.as_slice()).is_err());
            prop_assert!(Reply::read(&bytes).is_err());
            // The same behind a length that is right.
            let mut sealed = (bytes.len() as u64).to_le_bytes().to_vec();
            sealed.extend(&bytes);
            prop_assert!(read_request(&mut sealed.as_slice()).is_err());
        }

        #[test]
        fn frames_arrive_whole_however_they_were_cut(
            body in prop::collection::vec(any::<u8>(), 0..50),
            cut in any::<prop::sample::Index>(),
        ) {
            let message = frame(Frame::Reply, &body);
            let (first, rest) = message.split_at(cut.index(message.len()));
            let mut inbox = first.to_vec();
            prop_assert_eq!(take_frame(&mut inbox).unwrap(), None);
            inbox.extend(rest);
            inbox.push(Frame::Pong as u8);
            prop_assert_eq!(take_frame(&mut inbox).unwrap(), Some((Frame::Reply, body)));
            prop_assert_eq!(inbox, [Frame::Pong as u8]);
        }
    }

    #[test]
    fn an_unknown_kind_of_frame_is_an_error() {
        assert!(take_frame(&mut vec![0; SHORT]).is_err());
    }

    fn any_answer(head: Vec<u8>) -> Reply {
        let report = serde_json::json!({
            "cause": "none", "exit_code": 0, "signal": null, "wall_seconds": 1.5, "cpu_seconds": 1.0, "user_seconds": 0.5,
            "system_seconds": 0.5, "peak_memory_bytes": 4096, "left_behind": 0, "level": "subreaper", "contain": "off",
            "cpu_exact": false, "memory_exact": false, "command": [],
        });
        let mut report: Report = serde_json::from_value(report).unwrap();
        report.stdout = Some(Captured {
            head,
            ..Captured::default()
        });
        Reply {
            number: 3,
            result: Ok(report),
            is_last: false,
            messages: vec![Message::Debug("woken".to_owned())],
        }
    }
}
