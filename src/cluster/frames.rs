//! The bytes on the stream between the orchestrator and an agent.
//!
//! A frame is one line: `ct1 LLLLLL CCCCCCCC BODY\n`. `ct1` names the protocol and its version, `LLLLLL` is the length
//! of the body and `CCCCCCCC` its CRC-32, both in hexadecimal. The body is JSON on one line. Frames are text because
//! some engines hold back output until a line ends (`srun`) and others translate it (`kubectl exec`). Also, anything
//! else that arrives on the stream, such as a login banner, differs from the first byte on.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The version of the frames that are written and read.
pub const VERSION: u8 = 1;

/// The longest body. Six hexadecimal digits hold its length.
pub const LONGEST: usize = 0xff_ffff;

/// `ct1 LLLLLL CCCCCCCC `.
const HEAD: usize = 20;

/// How much of unexpected output is shown.
const SHOWN: usize = 400;

/// Why a stream can no longer be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Something other than frames arrived.
    #[error("unexpected output on the stream: {shown}")]
    Stray {
        /// The beginning of it, on one line.
        shown: String,
    },
    /// The other side speaks another version of the protocol.
    #[error(
        "the other side speaks version {theirs} of the protocol, this captime version {VERSION}"
    )]
    Version {
        /// The other side's version.
        theirs: char,
    },
    /// A frame arrived damaged.
    #[error("a frame arrived damaged: {what}")]
    Damaged {
        /// Which part of it.
        what: &'static str,
    },
    /// A frame contains something that this captime does not know.
    #[error("a frame cannot be read: {0}")]
    Unreadable(serde_json::Error),
    /// A frame would be too long.
    #[error("a frame of {length} bytes is too long (at most {LONGEST})")]
    TooLong {
        /// The length of its body.
        length: usize,
    },
    /// The stream has ended.
    #[error("the stream has ended")]
    Closed,
    /// The stream cannot be read or written.
    #[error("the stream failed: {0}")]
    Stream(#[from] std::io::Error),
}

impl FrameError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Stray { .. } => Some(
                "the command must print nothing but what `captime agent` prints; make login scripts \
                 on that machine silent when they are not interactive",
            ),
            Self::Version { .. } | Self::Unreadable(_) => {
                Some("install the same version of captime on every machine")
            }
            _ => None,
        }
    }
}

/// Makes the frame of a message.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![b' '; HEAD];
    serde_json::to_writer(&mut frame, message).map_err(FrameError::Unreadable)?;
    let length = frame.len() - HEAD;
    if length > LONGEST {
        return Err(FrameError::TooLong { length });
    }
    let crc = crc32fast::hash(&frame[HEAD..]);
    let head = format!("ct{VERSION} {length:06x} {crc:08x} ");
    frame[..HEAD].copy_from_slice(head.as_bytes());
    frame.push(b'\n');
    Ok(frame)
}

/// Finds frames in the bytes of a stream, however these are split.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// How many of them belong to frames already taken.
    taken: usize,
}

impl Decoder {
    /// The buffer to add bytes of the stream to.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        &mut self.bytes
    }

    /// Whether a frame has begun but not ended.
    pub fn is_within(&self) -> bool {
        self.taken < self.bytes.len()
    }

    /// The next message, or none if more bytes are needed.
    pub fn take<M: DeserializeOwned>(&mut self) -> Result<Option<M>, FrameError> {
        let Some(body) = self.body()? else {
            return Ok(None);
        };
        serde_json::from_slice(body)
            .map(Some)
            .map_err(FrameError::Unreadable)
    }

    fn body(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let rest = &self.bytes[self.taken..];
        let beginning = &rest[..rest.len().min(HEAD)];
        let place = |wanted: &[u8], at: usize| {
            let there = beginning.get(at..).unwrap_or_default();
            wanted
                .iter()
                .zip(there)
                .all(|(wanted, there)| wanted == there)
        };
        if !place(b"ct", 0) || !place(b" ", 3) {
            return Err(stray(rest));
        }
        match beginning.get(2) {
            Some(version) if *version == b'0' + VERSION => {}
            Some(version) if version.is_ascii_digit() => {
                return Err(FrameError::Version {
                    theirs: char::from(*version),
                });
            }
            Some(_) => return Err(stray(rest)),
            None => return Ok(None),
        }
        if beginning.len() < HEAD {
            return Ok(None);
        }
        let number = |digits: &[u8]| {
            let text = std::str::from_utf8(digits).ok()?;
            u32::from_str_radix(text, 16).ok()
        };
        let damaged = |what| FrameError::Damaged { what };
        let length = number(&rest[4..10]).ok_or(damaged("its length"))? as usize;
        let crc = number(&rest[11..19]).ok_or(damaged("its checksum"))?;
        if rest.len() < HEAD + length + 1 {
            return Ok(None);
        }
        let body = &rest[HEAD..HEAD + length];
        if rest[HEAD + length] != b'\n' || crc32fast::hash(body) != crc {
            return Err(damaged("the checksum does not match"));
        }
        let start = self.taken + HEAD;
        self.taken = start + length + 1;
        Ok(Some(&self.bytes[start..start + length]))
    }
}

/// Shows something that is not a frame, on one line.
fn stray(bytes: &[u8]) -> FrameError {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let shown: String = lines
        .join(" | ")
        .chars()
        .map(|letter| if letter.is_control() { '?' } else { letter })
        .collect();
    FrameError::Stray {
        shown: format!("`{}`", shown.trim()),
    }
}

/// Reads messages from a stream.
#[derive(Debug)]
pub struct FrameReader<R> {
    from: R,
    decoder: Decoder,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads from here.
    pub fn new(from: R) -> Self {
        Self {
            from,
            decoder: Decoder::default(),
        }
    }

    /// The next message. Safe to cancel: dropping the future loses nothing.
    pub async fn next<M: DeserializeOwned>(&mut self) -> Result<M, FrameError> {
        loop {
            if let Some(message) = self.decoder.take()? {
                return Ok(message);
            }
            if self.from.read_buf(self.decoder.buffer()).await? == 0 {
                return Err(FrameError::Closed);
            }
        }
    }
}

/// Writes one message and waits until it is sent.
pub async fn send<W: AsyncWrite + Unpin>(
    to: &mut W,
    message: &impl Serialize,
) -> Result<(), FrameError> {
    to.write_all(&encode(message)?).await?;
    to.flush().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn read_all(chunks: &[&[u8]]) -> Result<Vec<Value>, FrameError> {
        let mut decoder = Decoder::default();
        let mut messages = vec![];
        for chunk in chunks {
            decoder.buffer().extend_from_slice(chunk);
            while let Some(message) = decoder.take()? {
                messages.push(message);
            }
        }
        Ok(messages)
    }

    #[test]
    fn a_frame_is_one_line() {
        let frame = encode(&json!({"text": "a\nb"})).unwrap();
        let text = String::from_utf8(frame).unwrap();
        insta::assert_snapshot!(text.trim_end(), @r#"ct1 00000f 9541bf51 {"text":"a\nb"}"#);
        assert_eq!(text.matches('\n').count(), 1);
    }

    #[test]
    fn a_login_banner_is_shown() {
        let error = read_all(&[b"Welcome to alpha!\r\n* all nodes \x1b[1mreboot\x1b[0m today\r\n"]);
        insta::assert_snapshot!(error.unwrap_err().to_string(), @"unexpected output on the stream: `Welcome to alpha! | * all nodes ?[1mreboot?[0m today`");
        // A word that starts like a frame is not a frame either.
        let error = read_all(&[b"ctrl-c to leave\n"]).unwrap_err();
        assert!(matches!(error, FrameError::Stray { .. }), "{error}");
    }

    #[test]
    fn another_version_of_the_protocol_is_named() {
        let error = read_all(&[b"ct2 00000f"]).unwrap_err();
        assert!(matches!(error, FrameError::Version { theirs: '2' }));
        assert!(error.to_string().contains("version 2"));
        assert!(error.hint().unwrap().contains("same version"));
    }

    #[test]
    fn output_between_frames_is_noticed() {
        let mut bytes = encode(&json!(1)).unwrap();
        bytes.extend(b"warning: low disk\n");
        let error = read_all(&[&bytes]).unwrap_err();
        assert!(error.to_string().contains("low disk"), "{error}");
    }

    proptest! {
        #[test]
        fn messages_arrive_however_the_stream_is_cut(
            texts in prop::collection::vec(".{0,40}", 1..6),
            numbers in prop::collection::vec(any::<f64>().prop_filter("JSON has no others", |x| x.is_finite()), 1..6),
            cut in 1_usize..50,
        ) {
            let sent: Vec<Value> = texts.iter().map(|text| json!(text)).chain(numbers.iter().map(|x| json!(x))).collect();
            let mut bytes = vec![];
            for message in &sent {
                bytes.extend(encode(message).unwrap());
            }
            let chunks: Vec<&[u8]> = bytes.chunks(cut).collect();
            prop_assert_eq!(read_all(&chunks).unwrap(), sent);
        }

        #[test]
        fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), cut in 1_usize..30) {
            let chunks: Vec<&[u8]> = bytes.chunks(cut).collect();
            let _ = read_all(&chunks);
            let mut headed = b"ct1 00000a ".to_vec();
            headed.extend(&bytes);
            let _ = read_all(&[&headed]);
        }

        #[test]
        fn a_changed_byte_is_noticed(place in 0_usize..41, flip in 1_u8..=255) {
            let sent = json!({"pull": 17, "limit": 12.5});
            let mut bytes = encode(&sent).unwrap();
            let place = place % bytes.len();
            bytes[place] ^= flip;
            // Upper-case digits mean the same, and a longer length waits for more.
            if let Ok(messages) = read_all(&[&bytes]) {
                prop_assert!(messages.is_empty() || messages == [sent]);
            }
        }
    }
}
