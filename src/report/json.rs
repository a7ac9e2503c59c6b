//! The page's data by themselves, for those who draw with something else.

use std::io::{self, Write};

use super::Summary;

/// Writes the data of the page as one JSON object.
pub fn write_json(summary: &Summary, to: &mut dyn Write) -> io::Result<()> {
    // Through io::Error, so that a closed pipe is still known as one.
    serde_json::to_writer(&mut *to, summary).map_err(io::Error::from)?;
    writeln!(to)
}
