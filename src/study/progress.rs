//! Reports how far a study is.

/// Shows how far a study is. Worker threads share it.
pub trait Show: Send + Sync {
    /// This many more rounds, or seconds of virtual time, are done.
    fn advance(&self, more: u64);

    /// What is being played now.
    fn at(&self, what: String);
}

/// Where a study reports how far it is.
pub struct StudyProgress(Option<Box<dyn Show>>);

impl StudyProgress {
    /// Reports to this.
    pub fn shown_by(show: impl Show + 'static) -> Self {
        Self(Some(Box::new(show)))
    }

    /// Shows nothing.
    pub fn silent() -> Self {
        Self(None)
    }

    pub(super) fn advance(&self, more: u64) {
        if let Some(show) = &self.0 {
            show.advance(more);
        }
    }

    pub(super) fn at(&self, what: impl FnOnce() -> String) {
        if let Some(show) = &self.0 {
            show.at(what());
        }
    }
}
