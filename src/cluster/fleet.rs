//! All agents of a run as one target: each pull goes to a node with a free slot, and a lost node loses only what it was running.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use super::link::{Link, LinkEvent, Place, Shared};
use super::message::{Open, PullEnd, ToAgent};
use super::node::NodeStatus;
use crate::quantity::counted;
use crate::round::{ArmId, Pull};
use crate::space::Configuration;
use crate::target::{Ended, Ending, Ends, PoolChange, Start, Target};

/// A node that loses this many pulls in a row, while its stream works, is withdrawn.
const STRIKES: u32 = 3;

/// How long a run without any node waits for one.
const GIVE_UP: Duration = Duration::from_mins(2);

/// How long a stopped pull may take before captime no longer waits for its node.
const STOPPED: Duration = Duration::from_secs(5);

/// What must be left of an allocation beyond the time a pull may take.
const MARGIN: f64 = 2.0;

/// What the agents of a run have to do.
pub struct Work {
    /// What they open.
    pub open: Open,
    /// How long a node may be silent.
    pub lost_after: Duration,
    /// How many seconds a pull may take, if a limit or a guard bounds it.
    pub longest: Box<dyn Fn(Pull) -> Option<f64> + Send>,
}

/// News about nodes during a run.
#[derive(Debug, Clone, PartialEq)]
pub enum FleetNotice {
    /// A node is ready.
    Up(Box<NodeStatus>),
    /// A node was lost. It is started again.
    Down {
        /// Its name.
        node: String,
        /// What happened.
        why: String,
    },
    /// No more pulls run on a node.
    Withdrawn {
        /// Its name.
        node: String,
        /// Why.
        why: String,
    },
    /// This many pulls may run at a time from now on.
    Slots(usize),
    /// No more pulls can be started.
    Over {
        /// Why.
        why: String,
    },
}

impl From<FleetNotice> for PoolChange {
    fn from(notice: FleetNotice) -> Self {
        match notice {
            FleetNotice::Slots(count) => Self::Slots(count),
            FleetNotice::Over { why } => Self::Over(why),
            FleetNotice::Up(status) => Self::Node {
                text: format!(
                    "node {} is ready: {}",
                    status.node,
                    counted(status.slots as u64, "slot")
                ),
                slots: status.slots,
                node: status.node,
            },
            FleetNotice::Down { node, why } => Self::Node {
                text: format!("node {node} was lost and is started again: {why}"),
                slots: 0,
                node,
            },
            FleetNotice::Withdrawn { node, why } => Self::Node {
                text: format!("node {node} is no longer used: {why}"),
                slots: 0,
                node,
            },
        }
    }
}

/// What the fleet is asked to do.
pub(super) enum Command {
    Start(Start),
    Stop(usize),
}

/// All agents, as a target.
pub(super) struct FleetTarget {
    pub(super) commands: UnboundedSender<Command>,
}

impl Target for FleetTarget {
    fn start(&mut self, start: Start) {
        let _ = self.commands.send(Command::Start(start));
    }

    fn stop(&mut self, slot: usize) {
        let _ = self.commands.send(Command::Stop(slot));
    }
}

/// Starts an agent in every place, and runs pulls on them until no more can come and all agents have left. Call it inside a
/// tokio runtime.
pub(super) async fn run(
    places: Vec<Place>,
    work: Work,
    inbox: UnboundedReceiver<Command>,
    ends: Ends,
    notices: UnboundedSender<FleetNotice>,
) {
    let (events_to, events) = unbounded_channel();
    let shared = Arc::new(Shared {
        open: work.open,
        lost_after: work.lost_after,
    });
    let members = places.into_iter().enumerate().map(|(number, place)| {
        let (commands, inbox) = unbounded_channel();
        let name = place.name.clone();
        let link = Link {
            place,
            number,
            shared: Arc::clone(&shared),
            commands: inbox,
            events: events_to.clone(),
        };
        tokio::spawn(link.keep());
        Member {
            name: name.into(),
            commands: Some(commands),
            state: State::Absent,
            strikes: 0,
            is_missed: false,
            arms: HashMap::new(),
        }
    });
    let fleet = Fleet {
        members: members.collect(),
        flights: BTreeMap::new(),
        waiting: VecDeque::new(),
        stopping: BTreeMap::new(),
        ends,
        notices,
        capacity: 0,
        longest: work.longest,
        empty_since: None,
        is_over: false,
    };
    fleet.run(inbox, events).await;
}

/// One place.
struct Member {
    name: Arc<str>,
    commands: Option<UnboundedSender<ToAgent>>,
    state: State,
    strikes: u32,
    /// Whether its absence was reported since it was last there.
    is_missed: bool,
    /// The configurations of an open space that were sent since then.
    arms: HashMap<ArmId, Arc<Configuration>>,
}

enum State {
    /// Not yet there, or gone. Its link keeps trying.
    Absent,
    Up {
        /// The slot of the run whose pull is in each slot of the agent.
        slots: Vec<Option<usize>>,
        /// The slots of the agent that are free.
        free: Vec<usize>,
        ends_at: Option<Instant>,
    },
    Withdrawn {
        why: String,
    },
}

/// A pull that is on a node.
struct Flight {
    start: Start,
    member: usize,
    slot: usize,
}

struct Fleet {
    members: Vec<Member>,
    /// By slot of the run.
    flights: BTreeMap<usize, Flight>,
    /// Pulls whose node was lost before they could be sent.
    waiting: VecDeque<Start>,
    /// Pulls that were stopped, with the time by which their node must confirm.
    stopping: BTreeMap<usize, Instant>,
    ends: Ends,
    notices: UnboundedSender<FleetNotice>,
    capacity: usize,
    longest: Box<dyn Fn(Pull) -> Option<f64> + Send>,
    /// When the last node went away, if none is there.
    empty_since: Option<Instant>,
    is_over: bool,
}

impl Fleet {
    async fn run(
        mut self,
        mut inbox: UnboundedReceiver<Command>,
        mut events: UnboundedReceiver<(usize, LinkEvent)>,
    ) {
        let mut tick = tokio::time::interval(Duration::from_millis(500));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut closed = 0;
        loop {
            tokio::select! {
                command = inbox.recv() => match command {
                    Some(Command::Start(start)) => self.start(start),
                    Some(Command::Stop(slot)) => self.stop(slot),
                    None => break,
                },
                Some((member, event)) = events.recv() => {
                    closed += usize::from(event == LinkEvent::Closed);
                    self.event(member, event);
                }
                _ = tick.tick() => self.tick(),
            }
        }
        for member in &mut self.members {
            member.commands = None;
        }
        while closed < self.members.len() {
            match events.recv().await {
                Some((_, LinkEvent::Closed)) => closed += 1,
                Some(_) => {}
                None => break,
            }
        }
    }

    fn event(&mut self, number: usize, event: LinkEvent) {
        match event {
            LinkEvent::Up {
                node,
                slots,
                enforcement,
                shared_cpus,
            } => {
                let status = NodeStatus {
                    node: self.members[number].name.to_string(),
                    slots,
                    facts: *node,
                    enforcement,
                    shared_cpus,
                };
                self.up(number, status);
            }
            LinkEvent::Ended { slot, round, end } => {
                let State::Up { slots, free, .. } = &mut self.members[number].state else {
                    return;
                };
                // An end that is not expected belongs to a pull that was given up.
                let Some(place) = slots.get_mut(slot).and_then(Option::take) else {
                    return;
                };
                free.push(slot);
                let is_it =
                    |flight: &Flight| flight.member == number && flight.start.round == round;
                if self.flights.get(&place).is_some_and(is_it)
                    && let Some(flight) = self.flights.remove(&place)
                {
                    self.ended(number, &flight.start, *end);
                }
                self.send_waiting();
            }
            LinkEvent::Down { why } => {
                self.lose(number, &why);
                if !matches!(self.members[number].state, State::Withdrawn { .. }) {
                    let member = &mut self.members[number];
                    member.state = State::Absent;
                    if !std::mem::replace(&mut member.is_missed, true) {
                        let node = member.name.to_string();
                        self.tell(FleetNotice::Down { node, why });
                    }
                }
                self.count();
            }
            LinkEvent::Withdrawn { why } => {
                self.lose(number, &why);
                self.withdraw(number, why);
            }
            LinkEvent::Closed => {}
        }
    }

    fn tell(&self, notice: FleetNotice) {
        let _ = self.notices.send(notice);
    }

    fn up(&mut self, number: usize, status: NodeStatus) {
        let member = &mut self.members[number];
        if matches!(member.state, State::Withdrawn { .. }) {
            return;
        }
        let slots = status.slots;
        let left = status.facts.time_left.map(|left| (left - MARGIN).max(0.0));
        member.arms.clear();
        member.state = State::Up {
            slots: vec![None; slots],
            free: (0..slots).rev().collect(),
            ends_at: left
                .and_then(|left| Duration::try_from_secs_f64(left).ok())
                .and_then(|left| Instant::now().checked_add(left)),
        };
        member.strikes = 0;
        member.is_missed = false;
        self.tell(FleetNotice::Up(Box::new(status)));
        self.count();
        self.send_waiting();
    }

    /// Reports how many pulls can run, and whether more nodes may come.
    fn count(&mut self) {
        let of = |member: &Member| match &member.state {
            State::Up { slots, .. } => slots.len(),
            State::Absent | State::Withdrawn { .. } => 0,
        };
        let count = self.members.iter().map(of).sum();
        if count != self.capacity {
            self.capacity = count;
            self.tell(FleetNotice::Slots(count));
        }
        if count > 0 {
            self.empty_since = None;
            return;
        }
        self.empty_since.get_or_insert_with(Instant::now);
        let reasons: Vec<String> = (self.members.iter())
            .filter_map(|member| match &member.state {
                State::Withdrawn { why } => Some(format!("{}: {why}", member.name)),
                State::Absent | State::Up { .. } => None,
            })
            .collect();
        if reasons.len() == self.members.len() {
            self.over(format!("every node was withdrawn. {}", reasons.join(". ")));
        }
    }

    fn over(&mut self, why: String) {
        if !self.is_over {
            self.is_over = true;
            self.tell(FleetNotice::Over { why });
        }
        for start in std::mem::take(&mut self.waiting) {
            self.end(&start, Ending::Stopped);
        }
    }

    fn end(&self, start: &Start, ending: Ending) {
        let _ = self.ends.send(Ended {
            slot: start.slot,
            round: start.round,
            ending,
        });
    }

    fn start(&mut self, start: Start) {
        self.waiting.push_back(start);
        self.send_waiting();
    }

    /// Sends waiting pulls to nodes with free slots, the emptiest first.
    fn send_waiting(&mut self) {
        while let Some(start) = self.waiting.front().cloned() {
            if self.is_over {
                self.waiting.pop_front();
                self.end(&start, Ending::Stopped);
                continue;
            }
            let until = (self.longest)(start.pull)
                .and_then(|longest| Duration::try_from_secs_f64(longest).ok())
                .and_then(|longest| Instant::now().checked_add(longest))
                .unwrap_or_else(Instant::now);
            let mut has_time = false;
            let mut best: Option<(f64, usize)> = None;
            for (number, member) in self.members.iter().enumerate() {
                let State::Up {
                    slots,
                    free,
                    ends_at,
                } = &member.state
                else {
                    continue;
                };
                if ends_at.is_some_and(|ends_at| ends_at < until) {
                    continue;
                }
                has_time = true;
                let share = free.len() as f64 / slots.len() as f64;
                if share > best.map_or(0.0, |(most, _)| most) {
                    best = Some((share, number));
                }
            }
            let Some((_, number)) = best else {
                if !has_time && self.empty_since.is_none() {
                    self.over("the allocation ends before another pull could".into());
                    continue;
                }
                return;
            };
            self.waiting.pop_front();
            self.send(start, number);
        }
    }

    /// Sends a pull to a free slot of this node.
    fn send(&mut self, start: Start, number: usize) {
        let member = &mut self.members[number];
        let State::Up { slots, free, .. } = &mut member.state else {
            return;
        };
        let Some(slot) = free.pop() else { return };
        slots[slot] = Some(start.slot);
        if let Some(commands) = &member.commands {
            // A link that is about to report its loss accepts messages and drops them.
            // `captime pull` gives every configuration the same number.
            if let Some(configuration) = &start.configuration
                && member.arms.get(&start.pull.arm) != Some(configuration)
            {
                let sent = Arc::clone(configuration);
                member.arms.insert(start.pull.arm, sent);
                let values = configuration.iter().map(|(name, value)| {
                    (
                        name.to_owned(),
                        serde_json::to_value(value).unwrap_or_default(),
                    )
                });
                let _ = commands.send(ToAgent::Arm {
                    arm: start.pull.arm,
                    configuration: values.collect(),
                });
            }
            let _ = commands.send(ToAgent::Pull {
                slot,
                round: start.round,
                pull: start.pull,
                seed: start.seed,
                is_sent: start.configuration.is_some(),
            });
        }
        let place = start.slot;
        let flight = Flight {
            start,
            member: number,
            slot,
        };
        self.flights.insert(place, flight);
    }

    fn stop(&mut self, place: usize) {
        if let Some(at) = self.waiting.iter().position(|start| start.slot == place) {
            if let Some(start) = self.waiting.remove(at) {
                self.end(&start, Ending::Stopped);
            }
        } else if let Some(flight) = self.flights.get(&place) {
            self.stopping.insert(place, Instant::now() + STOPPED);
            if let Some(commands) = &self.members[flight.member].commands {
                let _ = commands.send(ToAgent::Stop { slot: flight.slot });
            }
        }
    }

    /// A pull ended on its node.
    fn ended(&mut self, number: usize, start: &Start, end: PullEnd) {
        self.stopping.remove(&start.slot);
        let name = Arc::clone(&self.members[number].name);
        let lost = |why: &str| Ending::NodeLost {
            node: Arc::clone(&name),
            why: format!("{name}: {why}"),
        };
        let ending = match end.of(start.pull) {
            Ok(Ending::Lost { why }) => {
                self.members[number].strikes += 1;
                if self.members[number].strikes >= STRIKES {
                    self.withdraw(number, why.clone());
                }
                lost(&why)
            }
            // The program existed when the node was opened, so this is the node's fault, not the arm's.
            Ok(Ending::NotStarted(outcome)) => {
                let why = outcome.failure.map_or_else(String::new, |it| it.reason);
                self.withdraw(number, why.clone());
                lost(&why)
            }
            Ok(mut ending) => {
                self.members[number].strikes = 0;
                if let Ending::Brought(outcome) = &mut ending {
                    outcome.node = Some(Arc::clone(&name));
                }
                ending
            }
            Err(error) => {
                self.withdraw(number, error.to_string());
                lost(&error.to_string())
            }
        };
        self.end(start, ending);
    }

    /// Starts nothing more there, and gives up what it runs.
    fn withdraw(&mut self, number: usize, why: String) {
        let member = &mut self.members[number];
        if matches!(member.state, State::Withdrawn { .. }) {
            return;
        }
        // What it still runs is lost with it, because its results would not be comparable.
        member.state = State::Withdrawn { why: why.clone() };
        member.commands = None;
        let node = member.name.to_string();
        self.lose(number, &why);
        self.tell(FleetNotice::Withdrawn { node, why });
        self.count();
    }

    /// Everything on this node is lost, and can run elsewhere.
    fn lose(&mut self, number: usize, why: &str) {
        let name = Arc::clone(&self.members[number].name);
        let is_there = |(_, flight): &(&usize, &Flight)| flight.member == number;
        let places: Vec<usize> = (self.flights.iter().filter(is_there))
            .map(|(place, _)| *place)
            .collect();
        for place in places {
            let Some(flight) = self.flights.remove(&place) else {
                continue;
            };
            let ending = match self.stopping.remove(&place) {
                Some(_) => Ending::Stopped,
                None => Ending::NodeLost {
                    node: Arc::clone(&name),
                    why: format!("{name} was lost: {why}"),
                },
            };
            self.end(&flight.start, ending);
        }
    }

    fn tick(&mut self) {
        let now = Instant::now();
        let due: Vec<usize> = (self.stopping.iter())
            .filter(|(_, until)| **until <= now)
            .map(|(place, _)| *place)
            .collect();
        for place in due {
            self.stopping.remove(&place);
            if let Some(flight) = self.flights.remove(&place) {
                self.end(&flight.start, Ending::Stopped);
            }
        }
        if self
            .empty_since
            .is_some_and(|since| since.elapsed() > GIVE_UP)
        {
            self.over(format!("no node was available for {} s", GIVE_UP.as_secs()));
        }
        self.send_waiting();
    }
}
