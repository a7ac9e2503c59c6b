//! Messages of a supervisor process. It has no log of its own, so they travel with its answers.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Message {
    Debug(String),
    Warning(String),
}

static WAITING: Mutex<Vec<Message>> = Mutex::new(Vec::new());
/// Enough to understand what went wrong; a supervisor that repeats itself must not fill the memory.
const MOST: usize = 100;

/// In a supervisor process: keeps a message for the next answer.
pub(super) fn note(message: Message) {
    if let Ok(mut waiting) = WAITING.lock()
        && waiting.len() < MOST
    {
        waiting.push(message);
    }
}

/// In a supervisor process: what was noted since the last answer.
pub(super) fn take() -> Vec<Message> {
    WAITING
        .lock()
        .map(|mut waiting| std::mem::take(&mut *waiting))
        .unwrap_or_default()
}

/// In the main process: writes the messages of the supervisor `pid` to its log.
pub(super) fn write(pid: i32, messages: Vec<Message>) {
    for message in messages {
        match message {
            Message::Debug(text) => tracing::debug!(supervisor = pid, "{text}"),
            Message::Warning(text) => tracing::warn!(supervisor = pid, "{text}"),
        }
    }
}
