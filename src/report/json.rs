//! The page's data alone, for other tools.

use std::io::{self, Write};

use super::Summary;

/// Writes the data of the page as one JSON object.
pub fn write_json(summary: &Summary, to: &mut dyn Write) -> io::Result<()> {
    // Through io::Error, so that a closed pipe is still recognised.
    serde_json::to_writer(&mut *to, summary).map_err(io::Error::from)?;
    writeln!(to)
}
