//! What a pull ran into besides its limit, and how exactly it was measured.

use serde::{Deserialize, Serialize};

/// The fixed bound that a pull ran into. Hitting one is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// On wall time, while the policy limits something else.
    Wall,
    /// On CPU time, while the policy limits something else.
    Cpu,
    /// On memory.
    Memory,
    /// On a forest's work, while the policy limits something else.
    Work,
}

impl Guard {
    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Work => "work",
        }
    }
}

/// What was measured and limited less exactly than promised. Such numbers are lower bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Inexact {
    /// CPU time.
    pub cpu: bool,
    /// Memory.
    pub memory: bool,
}

/// Not a word for what is inexact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not `cpu`, `memory` or `cpu,memory`")]
pub struct NotInexact(String);

impl Inexact {
    /// Every combination with the word that is written for it.
    const WORDS: [(&'static str, Self); 4] = [
        ("", Self::new(false, false)),
        ("cpu", Self::new(true, false)),
        ("memory", Self::new(false, true)),
        ("cpu,memory", Self::new(true, true)),
    ];

    const fn new(cpu: bool, memory: bool) -> Self {
        Self { cpu, memory }
    }

    /// Whether everything is as exact as promised.
    pub fn is_exact(&self) -> bool {
        *self == Self::default()
    }

    /// What is less exact than `promised`, which may be inexact itself.
    #[must_use]
    pub fn beyond(self, promised: Self) -> Self {
        Self {
            cpu: self.cpu && !promised.cpu,
            memory: self.memory && !promised.memory,
        }
    }
}

impl TryFrom<String> for Inexact {
    type Error = NotInexact;

    fn try_from(word: String) -> Result<Self, NotInexact> {
        let known = Self::WORDS.iter().find(|(own, _)| *own == word);
        known.map(|(_, what)| *what).ok_or(NotInexact(word))
    }
}

impl From<Inexact> for String {
    fn from(what: Inexact) -> Self {
        let known = Inexact::WORDS.iter().find(|(_, own)| *own == what);
        known.map_or("", |(word, _)| word).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_and_others_are_errors() {
        for (word, what) in Inexact::WORDS {
            assert_eq!(String::from(what), word);
            assert_eq!(Inexact::try_from(word.to_owned()), Ok(what));
        }
        for word in ["memory,cpu", "CPU", "cpu,", "wall"] {
            let error = Inexact::try_from(word.to_owned()).unwrap_err();
            assert!(error.to_string().contains(word));
        }
        assert!(serde_json::from_str::<Guard>("\"disk\"").is_err());
    }
}
