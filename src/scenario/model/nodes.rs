//! Other machines that pulls run on, as a scenario names them.

/// Machines that pulls run on instead of this one.
#[derive(Debug, Clone, PartialEq)]
pub struct Nodes {
    /// How they are reached.
    pub engines: Engines,
    /// How many seconds a node may be silent before it counts as lost.
    pub lost_after: f64,
}

/// How nodes are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engines {
    /// All nodes of the Slurm allocation that captime runs in.
    Slurm,
    /// These hosts, by ssh.
    Ssh(Vec<SshHost>),
    /// By any commands that connect a stream.
    Launch(Vec<LaunchCommand>),
}

/// A host that is reached by ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshHost {
    /// Its name for ssh.
    pub host: String,
    /// Pulls at a time. By default, as many as its CPUs allow.
    pub slots: Option<usize>,
    /// The program there. By default, `captime`.
    pub captime: Option<String>,
}

/// A command that connects its stdin and stdout with an agent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchCommand {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Pulls at a time. By default, as many as the CPUs there allow.
    pub slots: Option<usize>,
}

impl Nodes {
    /// The engine's name in scenarios.
    pub fn engine(&self) -> &'static str {
        match &self.engines {
            Engines::Slurm => "slurm",
            Engines::Ssh(_) => "ssh",
            Engines::Launch(_) => "launch",
        }
    }
}
