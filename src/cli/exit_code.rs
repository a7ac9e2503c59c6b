//! Exit codes: one documented list for every command except `exec`, which has its own.

use std::process::ExitCode;

/// The whole list, as `captime --help` shows it.
pub const ALL: &str = "Exit codes: 0 done; 1 captime itself failed; 2 bad usage or scenario; 3 the budget was \
used up without a single reward; 130 interrupted (run the same command to resume). `exec` has its own: see `captime exec --help`.";

/// For commands that only read a run, or print what is built in.
pub const PLAIN: &str = "Exit codes: 0 done; 1 captime itself failed; 2 bad usage.";

/// That of `best`.
pub const BEST: &str = "Exit codes: 0 done; 1 captime itself failed; 2 bad usage; 3 no answer yet, because no pull \
has earned a reward.";

/// That of `check`.
pub const CHECK: &str = "Exit codes: 0 done; 1 captime itself failed; 2 bad usage or scenario, or all pulls of `--try` \
failed; 130 interrupted.";

/// That of `pull`.
pub const PULL: &str = "Exit codes: 0 done, whatever the outcomes; 1 captime itself failed, or the only pull was lost; \
2 bad usage or scenario; 130 interrupted.";

/// That of `record`.
pub const RECORD: &str = "Exit codes: 0 done; 1 captime itself failed; 2 bad usage or scenario; 130 interrupted (run the same command to resume).";

/// That of `run`.
pub const RUN: &str = "Exit codes: 0 done; 1 captime itself failed; 2 bad usage or scenario; 3 the budget was used up without \
a single reward; 130 interrupted (run the same command to resume).";

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything asked for was done.
    Done,
    /// captime itself failed: a full disk, a refused system call, a bug.
    Failed,
    /// The command line or the scenario is wrong.
    Usage,
    /// The budget was used up without a single reward.
    NoReward,
    /// Interrupted; `captime run` resumes.
    Interrupted,
    /// The status of the command that `exec` ran.
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
