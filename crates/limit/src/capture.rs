//! The beginning and the end of a stream, whatever its length.

use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};

use super::Captured;

/// Keeps the first and the last bytes of what is pushed, within a fixed memory.
#[derive(Debug)]
pub(super) struct HeadAndTail {
    limit: usize,
    head: Vec<u8>,
    /// A ring once full; `next` is where its oldest byte is.
    tail: Vec<u8>,
    next: usize,
    dropped: u64,
}

impl HeadAndTail {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            head: Vec::new(),
            tail: Vec::new(),
            next: 0,
            dropped: 0,
        }
    }

    fn head_limit(&self) -> usize {
        self.limit.div_ceil(2)
    }

    fn tail_limit(&self) -> usize {
        self.limit / 2
    }

    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        let room = self.head_limit() - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        bytes = rest;
        let room = self.tail_limit() - self.tail.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.tail.extend_from_slice(first);
        bytes = rest;
        self.dropped += bytes.len() as u64;
        if self.tail.is_empty() {
            return;
        }
        // Only the last ring's worth can survive.
        let skip = bytes.len().saturating_sub(self.tail.len());
        let mut bytes = &bytes[skip..];
        self.next = (self.next + skip) % self.tail.len();
        while !bytes.is_empty() {
            let length = bytes.len().min(self.tail.len() - self.next);
            let (first, rest) = bytes.split_at(length);
            self.tail[self.next..self.next + length].copy_from_slice(first);
            self.next = (self.next + length) % self.tail.len();
            bytes = rest;
        }
    }

    pub(super) fn finish(mut self) -> Captured {
        self.tail.rotate_left(self.next);
        if self.dropped == 0 {
            self.head.append(&mut self.tail);
        }
        Captured {
            head: self.head,
            tail: self.tail,
            dropped_bytes: self.dropped,
        }
    }
}

/// The reading end of a command's stdout or stderr.
#[derive(Debug)]
pub(super) struct Stream {
    pipe: std::io::PipeReader,
    kept: HeadAndTail,
    is_open: bool,
}

impl Stream {
    /// The reading end must not block.
    pub(super) fn new(pipe: std::io::PipeReader, limit: u64) -> Self {
        Self {
            pipe,
            kept: HeadAndTail::new(limit),
            is_open: true,
        }
    }

    /// The descriptor to wait for, until every writer is gone.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.is_open.then(|| self.pipe.as_fd())
    }

    /// Takes one buffer of what is there; true if there may be more.
    pub(super) fn pull(&mut self, buffer: &mut [u8]) -> bool {
        if !self.is_open {
            return false;
        }
        match self.pipe.read(buffer) {
            Ok(0) => self.is_open = false,
            Ok(count) => self.kept.push(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(_) => self.is_open = false,
        }
        self.is_open
    }

    /// Takes what is still in the pipe, without waiting for its end: a process may hold it open forever.
    pub(super) fn finish(mut self, buffer: &mut [u8]) -> Captured {
        // No writer is alive, so this ends after at most a pipe's worth; the bound is for one that escaped.
        for _ in 0..64 {
            if !self.pull(buffer) {
                break;
            }
        }
        self.kept.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn head_and_tail_are_the_ends_of_the_stream(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
            limit in 0_u64..120,
        ) {
            let mut kept = HeadAndTail::new(limit);
            for piece in &pieces {
                kept.push(piece);
            }
            let all = pieces.concat();
            let captured = kept.finish();
            prop_assert!(all.starts_with(&captured.head));
            prop_assert!(all.ends_with(&captured.tail));
            let kept_bytes = (captured.head.len() + captured.tail.len()) as u64;
            prop_assert_eq!(kept_bytes + captured.dropped_bytes, all.len() as u64);
            prop_assert_eq!(kept_bytes, limit.min(all.len() as u64));
            if captured.dropped_bytes == 0 {
                prop_assert!(captured.tail.is_empty());
            }
        }
    }
}
