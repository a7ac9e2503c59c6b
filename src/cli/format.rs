//! The output format of the commands that know just these two.

use clap::ValueEnum;

/// How to write the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TextOrJson {
    Text,
    Json,
}
