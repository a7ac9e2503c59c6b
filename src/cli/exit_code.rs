//! Exit codes, one documented list for every command but `exec`, which has its own.

use std::process::ExitCode;

/// The whole list, as `captime --help` shows it.
pub const ALL: &str = "Exit codes: 0 done; 1 failure of ours; 2 bad usage or scenario; 3 the budget ended without \
a single reward; 130 interrupted and resumable. `exec` has its own: see `captime exec --help`.";

/// What of it a command can give that only reads what is there, or writes what it was built with.
pub const PLAIN: &str = "Exit codes: 0 done; 1 failure of ours; 2 bad usage.";

/// That of `best`.
pub const BEST: &str = "Exit codes: 0 done; 1 failure of ours; 2 bad usage; 3 no pull has brought a reward, so there is \
nothing to recommend.";

/// That of `check`.
pub const CHECK: &str = "Exit codes: 0 done; 1 failure of ours; 2 bad usage or scenario, or all pulls of `--try` \
failed; 130 interrupted.";

/// That of `record`.
pub const RECORD: &str = "Exit codes: 0 done; 1 failure of ours; 2 bad usage or scenario; 130 interrupted and resumable.";

/// That of `run`.
pub const RUN: &str = "Exit codes: 0 done; 1 failure of ours; 2 bad usage or scenario; 3 the budget ended without \
a single reward; 130 interrupted and resumable.";

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything asked for was done.
    Done,
    /// We failed: a full disk, a refused system call, a bug.
    Failed,
    /// The command line or the scenario is wrong.
    Usage,
    /// The budget ended without a single reward.
    NoReward,
    /// Interrupted; `captime run` goes on from here.
    Interrupted,
    /// A status that is not ours to choose: that of the command `exec` ran.
    Status(u8),
}

impl Exit {
    /// The number the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoReward => 3,
            Self::Interrupted => 130,
            Self::Status(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
