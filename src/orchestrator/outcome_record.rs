//! An outcome as the journal records it.

use crate::journal::OutcomeRecord;
use crate::round::{Observation, Round, Seen};
use crate::target::{Failing, Outcome};

/// An outcome as the journal records it, without slot and time.
pub(super) fn outcome_record(round: Round, outcome: Outcome) -> OutcomeRecord<'static> {
    let Outcome {
        observation,
        failure,
        consumption,
        score,
        is_clamped,
        read: _,
        measured,
        node,
    } = outcome;
    let (reward, censored, is_failed) = match Observation::seen(&observation) {
        Seen::Rewarded { reward, .. } => (Some(reward), None, false),
        Seen::Censored { at } => (None, Some(at.get()), false),
        Seen::Failed => (None, None, true),
    };
    let consumption = match observation.seen() {
        Seen::Rewarded { consumption, .. } => Some(consumption),
        _ => consumption,
    };
    let failing = failure.filter(|_| is_failed);
    let (reason, guard, stderr) = match failing {
        Some(Failing {
            reason,
            guard,
            stderr,
        }) => (
            Some(reason),
            guard,
            Some(stderr).filter(|text| !text.is_empty()),
        ),
        None => (is_failed.then(|| "failed".to_owned()), None, None),
    };
    OutcomeRecord {
        outcome: round.0,
        reward,
        censored,
        failed: reason.map(Into::into),
        consumption,
        guard,
        score,
        clamped: is_clamped,
        wall: measured.wall,
        cpu: measured.cpu,
        memory: measured.memory,
        exit: measured.exit,
        signal: measured.signal,
        inexact: measured.inexact,
        stderr: stderr.map(Into::into),
        node: node.map(|node| node.to_string().into()),
        ..OutcomeRecord::default()
    }
}
