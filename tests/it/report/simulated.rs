//! Simulated runs, written by the journal's own writer: the policy is real, time and outcomes are not.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::path::{Path, PathBuf};

use captime::journal::{
    Appender, End, EndReason, Header, Learned, Machine, OutcomeRecord, PullRecord, Session,
    Syncing, VERSION,
};
use captime::orchestrator::{Next, Plan, ResolvedScenario, State};
use captime::round::Round;
use captime::scenario;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

/// How pulls end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Some end, some are cut off, some fail.
    Mixed,
    /// All are cut off.
    Censored,
    /// All fail.
    Failed,
}

/// A run to simulate.
#[derive(Debug, Clone)]
pub struct Simulated {
    pub name: &'static str,
    pub rounds: u64,
    pub policy: &'static str,
    /// `arms:` of the scenario.
    pub arms: String,
    /// `limits:` of the scenario.
    pub limits: &'static str,
    pub instances: Vec<String>,
    pub slots: usize,
    /// Whether outcomes say in which slot they were: older journals do not.
    pub tells_slots: bool,
    pub fate: Fate,
    pub stderr: &'static str,
    /// Whether the end is on record.
    pub is_ended: bool,
}

impl Default for Simulated {
    fn default() -> Self {
        Self {
            name: "made-up",
            rounds: 600,
            policy: "rcucb",
            arms: "grid: {restarts: [luby, geometric, none], decay: [0.8, 0.9, 0.95, 0.99], phase: [true, false]}".into(),
            limits: "{of: cpu, max: 5s, grid: 10}",
            instances: vec![],
            slots: 2,
            tells_slots: true,
            fate: Fate::Mixed,
            stderr: "solver: cannot allocate the watch lists\nterminate called after throwing 'std::bad_alloc'\n",
            is_ended: true,
        }
    }
}

/// A pull under way: when it ends, and with what.
struct Running {
    ends: f64,
    slot: u32,
    pull: PullRecord,
    outcome: OutcomeRecord<'static>,
}

impl PartialEq for Running {
    fn eq(&self, other: &Self) -> bool {
        self.pull.round == other.pull.round
    }
}
impl Eq for Running {}
impl PartialOrd for Running {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Running {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_time = self.ends.total_cmp(&other.ends);
        by_time.then(self.pull.round.cmp(&other.pull.round))
    }
}

impl Simulated {
    /// With instances by these many names.
    pub fn with_instances(mut self, count: usize) -> Self {
        self.instances = (1..=count)
            .map(|k| format!("instances/uf250-{k:03}.cnf"))
            .collect();
        self
    }

    fn scenario_text(&self) -> String {
        let instances = if self.instances.is_empty() {
            String::new()
        } else {
            format!("  instances: {}\n", json!(self.instances))
        };
        let instance = if self.instances.is_empty() {
            ""
        } else {
            ", \"{instance}\""
        };
        format!(
            "name: {}\ntarget:\n  command: [solver, \"{{params}}\"{instance}]\n{instances}arms:\n  {}\nlimits: {}\n\
             price: {{cost: x, penalty: 10 * x}}\npolicy: {}\nbudget: {{rounds: {}}}\nslots: {}\nseed: 7\n\
             stop_on_first_failures: false\n",
            self.name,
            self.arms,
            self.limits,
            self.policy,
            self.rounds.max(1),
            self.slots
        )
    }

    /// Writes the run into `runs/NAME` below this folder and gives that.
    pub fn write(&self, root: &Path) -> PathBuf {
        let mut making = self.begin(root);
        making.play(self.rounds);
        if self.is_ended {
            making.end();
        }
        making.journal.sync().unwrap();
        making.folder
    }

    /// A run that has been started, not played.
    pub fn begin(&self, root: &Path) -> Making {
        let folder = root.join("runs").join(self.name);
        fs::create_dir_all(&folder).unwrap();
        let text = self.scenario_text();
        let parsed = scenario::parse(&text, Path::new("made-up.yaml"), root);
        let scenario = match parsed {
            Ok(checked) => checked.scenario,
            Err(error) => panic!("{}\n{text}", error.render(false)),
        };
        let plan = Plan::of(&scenario, &self.instances);
        let header = Header {
            journal: VERSION,
            captime: "0.1.0".into(),
            name: self.name.into(),
            started: "2026-01-01T00:00:00Z".into(),
            file: "made-up.yaml".into(),
            folder: "/home/somebody/tuning".into(),
            hash: "0123456789abcdef".repeat(4),
            seed: 7,
            is_virtual: false,
            machine: Machine {
                host: "somewhere".into(),
                kernel: "Linux 6.12".into(),
                cpus: 2,
                cpu: "Some CPU".into(),
                memory: 8 << 30,
            },
            enforcement: json!({"level": "cgroup2", "memory": "cgroup2"}),
            resolved: ResolvedScenario::of(&scenario, &self.instances).stored(),
            scenario: text,
        };
        // Like a target in virtual time: a test needs no disk.
        let mut journal = Appender::create(&folder, &header, Syncing::AtEnd).unwrap();
        journal
            .append(&Session {
                session: 1,
                started: Some("2026-01-01T00:00:00Z".into()),
                slots: self.slots,
                budget: json!({"rounds": self.rounds}),
                enforcement: Value::Null,
            })
            .unwrap();
        journal.flush().unwrap();
        Making {
            what: self.clone(),
            folder,
            journal,
            state: State::new(plan),
            running: BinaryHeap::new(),
            now: 0.0,
        }
    }
}

/// A run being simulated.
pub struct Making {
    what: Simulated,
    pub folder: PathBuf,
    pub journal: Appender,
    state: State,
    running: BinaryHeap<Reverse<Running>>,
    now: f64,
}

impl Making {
    /// Plays until this many rounds have an outcome.
    pub fn play(&mut self, rounds: u64) {
        while self.state.tally().learned < rounds {
            while self.running.len() < self.what.slots && self.state.tally().launched < rounds {
                if !self.launch() {
                    break;
                }
            }
            let Some(Reverse(ended)) = self.running.pop() else {
                break;
            };
            self.now = ended.ends;
            self.learn(ended);
        }
    }

    fn launch(&mut self) -> bool {
        let Next::Pull(mut pull) = self.state.choose() else {
            return false;
        };
        pull.seed = Some(self.state.target_seed(pull.round));
        self.journal.append(&pull).unwrap();
        self.state.launched(&pull);
        let outcome = outcome(&self.what, &pull, self.now);
        // The last one that is free: a reader that guesses takes the first.
        let is_free = |slot: &u32| {
            self.running
                .iter()
                .all(|Reverse(other)| other.slot != *slot)
        };
        let slot = (1..=self.what.slots as u32).rev().find(is_free);
        self.running.push(Reverse(Running {
            slot: slot.unwrap(),
            ends: self.now + outcome.wall.unwrap() + 0.002,
            pull,
            outcome,
        }));
        true
    }

    fn learn(&mut self, ended: Running) {
        let Running {
            pull,
            mut outcome,
            slot,
            ..
        } = ended;
        outcome.slot = (self.what.tells_slots && self.what.slots > 1).then_some(slot);
        outcome.at = Some(self.now);
        self.journal.append(&outcome).unwrap();
        let observation = outcome.observation(pull.pull()).unwrap();
        let learned = Learned {
            pull,
            observation,
            outcome,
        };
        if let Some(mut found) = self.state.learned(&learned) {
            found.at = Some(self.now);
            self.journal.append(&found).unwrap();
            self.state.calibrated(&found.limits).unwrap();
        }
    }

    /// Hands everything to the kernel, where readers see it.
    pub fn flush(&mut self) {
        self.journal.flush().unwrap();
    }

    pub fn end(&mut self) {
        self.journal
            .append(&End {
                end: EndReason::Rounds,
                at: Some(self.now),
            })
            .unwrap();
    }
}

/// The outcome of a pull: a function of the run's seed and the round.
fn outcome(what: &Simulated, pull: &PullRecord, now: f64) -> OutcomeRecord<'static> {
    let Round(round) = pull.round;
    let mut luck = Pcg64Mcg::seed_from_u64(round * 1_000_003 + 17);
    let mut of_arm = Pcg64Mcg::seed_from_u64(u64::from(pull.arm.number()) * 7919 + 3);
    let mut of_instance = Pcg64Mcg::seed_from_u64(u64::from(pull.instance.unwrap_or(0)) * 31 + 5);
    // Neighbouring arms are alike, some arms are fragile, instances differ by two orders of magnitude.
    let place = f64::from(pull.arm.number() % 24) / 24.0;
    let speed = 0.3 + 2.2 * (place - 0.4).powi(2) * 4.0 + 0.3 * of_arm.random::<f64>();
    let hardness = if pull.instance.is_some() {
        (4.0 * of_instance.random::<f64>() - 2.2).exp()
    } else {
        1.0
    };
    let limit = pull.limit.get();
    let time = speed * hardness * (1.2 * (luck.random::<f64>() + luck.random::<f64>() - 1.0)).exp();
    let is_fragile = pull.arm.number() % 7 == 3;
    let draw: f64 = luck.random();
    let base = OutcomeRecord {
        outcome: round,
        ..OutcomeRecord::default()
    };
    let measured = |used: f64, record: OutcomeRecord<'static>| OutcomeRecord {
        consumption: Some(used),
        cpu: Some(used),
        wall: Some(used * 1.03 + 0.001),
        memory: Some(50 << 20),
        at: Some(now),
        ..record
    };
    let fails = what.fate == Fate::Failed || (what.fate == Fate::Mixed && is_fragile && draw < 0.3);
    if fails {
        let used = (time * 0.4).min(limit);
        let by_signal = draw < 0.1;
        return measured(
            used,
            OutcomeRecord {
                failed: Some(
                    if by_signal {
                        "signal 11"
                    } else {
                        "exit code 134"
                    }
                    .into(),
                ),
                exit: (!by_signal).then_some(134),
                signal: by_signal.then_some(11),
                stderr: Some(what.stderr.into()),
                ..base
            },
        );
    }
    if what.fate == Fate::Censored || time > limit {
        return measured(
            limit,
            OutcomeRecord {
                censored: Some(limit),
                ..base
            },
        );
    }
    measured(
        time,
        OutcomeRecord {
            reward: Some((0.97 - 0.1 * place - 0.05 * draw).clamp(0.0, 1.0)),
            exit: Some(10),
            ..base
        },
    )
}
