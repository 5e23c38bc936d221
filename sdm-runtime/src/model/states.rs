//! The states of elements, and their transitions ("PTP runtime platform, Elements"). The document's diagrams are
//! lost. The rules here accept an agent that queries its manager from time to time, and so misses states.
//!
//! - The same state may always follow.
//! - A STOPPED manager reaches ERROR only by a start.
//! - A TERMINATED job restarts only by PENDING: Slurm's `scontrol requeue` also applies to ended jobs, and a
//!   requeued job stays pending for its delay. A job in ERROR has not started: its error can be cleared, so that it
//!   has any state at the next query.
//! - A job that has run becomes STARTED only by PENDING or UNKNOWN.
//! - A process that has ended stays ended. One that has begun begins again only by UNKNOWN.
//! - Machines, queues and nodes may have any state that their manager reports.

use crate::attribute;
use crate::wire::event::Kind;

/// The states of one attribute.
#[derive(Debug)]
pub struct States {
    /// The attribute's id.
    pub attribute: &'static str,
    /// The word of each state, in the order of [`State::ALL`].
    pub words: &'static [&'static str],
    /// Alternative words of agents for the states: those of later versions of PTP, and those in other parts of the
    /// document.
    pub aliases: &'static [(&'static str, &'static str)],
    /// The word of each state that PTP's own client accepts, in the order of [`words`](Self::words); empty if it has no
    /// such state. An empty list if the words are the same.
    ptp: &'static [&'static str],
    /// The state of an element for which no state was reported.
    pub default: &'static str,
    /// Transitions: one row for each state, one letter for each next state: `y` allows it, `.` forbids it. Without rows
    /// all are allowed.
    rows: &'static [&'static str],
}

/// The states of one attribute as an enum, each with its word.
pub trait State: Copy + Eq + Sized + 'static {
    /// Words and transitions of the states.
    const STATES: &'static States;
    /// All states, in the order of [`States::words`].
    const ALL: &'static [Self];

    /// The state's word.
    fn word(self) -> &'static str;

    /// The state with this word or alias; `None` if there is none.
    fn read(word: &str) -> Option<Self> {
        Self::ALL.get(Self::STATES.index(word)?).copied()
    }
}

macro_rules! states {
    (@ptp) => { &[] };
    (@ptp $ptp:expr) => { $ptp };
    ($($(#[$about:meta])* $name:ident: $states:ident($default:ident) { $($state:ident = $word:literal),* $(,)? }
        attribute: $attribute:expr, aliases: $aliases:expr, $(ptp: $ptp:expr,)? rows: $rows:expr $(,)?)*) => {
        $(
            $(#[$about])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $name {
                $(#[doc = concat!("`", $word, "`")] $state),*
            }

            $(#[$about])*
            pub const $states: States = States {
                attribute: $attribute,
                words: &[$($word),*],
                aliases: $aliases,
                ptp: states!(@ptp $($ptp)?),
                default: $name::$default.word(),
                rows: $rows,
            };

            impl $name {
                /// The word of the state.
                #[must_use]
                pub const fn word(self) -> &'static str {
                    match self {
                        $(Self::$state => $word),*
                    }
                }
            }

            impl State for $name {
                const STATES: &'static States = &$states;
                const ALL: &'static [Self] = &[$(Self::$state),*];

                fn word(self) -> &'static str {
                    self.word()
                }
            }
        )*

        /// The states of all kinds.
        pub const ALL: &[&States] = &[$(&$states),*];
    };
}

states! {
    /// States of a resource manager. SUSPENDED, which only the document's table of attributes has, means a session
    /// whose events are suspended.
    Manager: MANAGER(Stopped) {
        Starting = "STARTING",
        Started = "STARTED",
        Stopping = "STOPPING",
        Stopped = "STOPPED",
        Suspended = "SUSPENDED",
        Error = "ERROR",
    }
    attribute: attribute::RM_STATE,
    aliases: &[],
    rows: &["yyyy.y", ".yy.yy", "..yy.y", "y..y..", ".yy.yy", "y..y.y"],

    /// States of a machine.
    Machine: MACHINE(Unknown) {
        Up = "UP",
        Down = "DOWN",
        Alert = "ALERT",
        Error = "ERROR",
        Unknown = "UNKNOWN",
    }
    attribute: attribute::MACHINE_STATE,
    aliases: &[],
    rows: &[],

    /// States of a queue.
    Queue: QUEUE(Normal) {
        Normal = "NORMAL",
        Collecting = "COLLECTING",
        Draining = "DRAINING",
        Stopped = "STOPPED",
    }
    attribute: attribute::QUEUE_STATE,
    aliases: &[],
    ptp: &["NORMAL", "NORMAL", "STOPPED", "STOPPED"],
    rows: &[],

    /// States of a node.
    Node: NODE(Unknown) {
        Up = "UP",
        Down = "DOWN",
        Error = "ERROR",
        Unknown = "UNKNOWN",
    }
    attribute: attribute::NODE_STATE,
    aliases: &[],
    rows: &[],

    /// Extended states of a node: its use, as the agent reports it.
    NodeUse: NODE_EXTRA(None) {
        UserExclusive = "USER_ALLOC_EXCL",
        UserShared = "USER_ALLOC_SHARED",
        OtherExclusive = "OTHER_ALLOC_EXCL",
        OtherShared = "OTHER_ALLOC_SHARED",
        None = "NONE",
    }
    attribute: attribute::NODE_EXTRA_STATE,
    aliases: &[],
    rows: &[],

    /// States of the processes on a node. The model derives them; an agent may not report them. The document has them
    /// among the extended states, where they would replace the state that shows who uses the node.
    NodeProcesses: NODE_PROCESSES(None) {
        Running = "RUNNING_PROCESS",
        Exited = "EXITED_PROCESS",
        None = "NONE",
    }
    attribute: attribute::NODE_PROCESS_STATE,
    aliases: &[],
    rows: &[],

    /// States of a job.
    Job: JOB(Unknown) {
        Pending = "PENDING",
        Started = "STARTED",
        Running = "RUNNING",
        Terminated = "TERMINATED",
        Suspended = "SUSPENDED",
        Error = "ERROR",
        Unknown = "UNKNOWN",
    }
    attribute: attribute::JOB_STATE,
    aliases: &[("STARTING", "STARTED"), ("COMPLETED", "TERMINATED")],
    ptp: &["STARTING", "STARTING", "RUNNING", "COMPLETED", "SUSPENDED", "COMPLETED", ""],
    rows: &["yyyyyyy", "yyyyyyy", "y.yyyyy", "y..y...", "y.yyyyy", "yyyyyyy", "yyyyyyy"],

    /// States of a process. SUSPENDED has the name STOPPED in the document's table of attributes.
    Process: PROCESS(Unknown) {
        Starting = "STARTING",
        Running = "RUNNING",
        Exited = "EXITED",
        Signalled = "EXITED_SIGNALLED",
        Suspended = "SUSPENDED",
        Error = "ERROR",
        Unknown = "UNKNOWN",
    }
    attribute: attribute::PROCESS_STATE,
    aliases: &[("STOPPED", "SUSPENDED"), ("COMPLETED", "EXITED")],
    ptp: &["STARTING", "RUNNING", "COMPLETED", "COMPLETED", "SUSPENDED", "COMPLETED", ""],
    rows: &["yyyyyyy", ".yyyyyy", "..y....", "...y...", ".yyyyyy", ".....y.", "yyyyyyy"],
}

impl Job {
    /// True if a job in this state has ended, or could not be started.
    #[must_use]
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Terminated | Self::Error)
    }

    /// True if a job in this state has nodes.
    #[must_use]
    pub fn has_nodes(self) -> bool {
        matches!(self, Self::Started | Self::Running | Self::Suspended)
    }
}

impl States {
    /// The states of elements of a kind; for a node not its extended states.
    #[must_use]
    pub fn of(kind: Kind) -> &'static Self {
        match kind {
            Kind::ResourceManager => &MANAGER,
            Kind::Machine => &MACHINE,
            Kind::Queue => &QUEUE,
            Kind::Node => &NODE,
            Kind::Job => &JOB,
            Kind::Process => &PROCESS,
        }
    }

    /// Index of a word, or of an alias, in [`words`](Self::words); `None` for an unknown word.
    #[must_use]
    pub fn index(&self, word: &str) -> Option<usize> {
        let alias = self.aliases.iter().find(|(alias, _)| *alias == word);
        let word = alias.map_or(word, |(_, word)| word);
        self.words.iter().position(|known| *known == word)
    }

    /// The word of PTP's own client for a word or an alias; empty if it has no such state, `None` for an unknown word.
    pub(crate) fn ptp_word(&self, word: &str) -> Option<&'static str> {
        let at = self.index(word)?;
        self.ptp.get(at).or_else(|| self.words.get(at)).copied()
    }

    /// True if the transition from one state to another is allowed; both are indices in [`words`](Self::words).
    #[must_use]
    pub fn may_follow(&self, from: usize, to: usize) -> bool {
        let is_known = from < self.words.len() && to < self.words.len();
        let row = self.rows.get(from).map(|row| row.as_bytes());
        is_known && row.is_none_or(|row| row.get(to) == Some(&b'y'))
    }

    /// Index of the default state in [`words`](Self::words).
    pub(super) fn default_index(&self) -> usize {
        self.index(self.default).unwrap_or_default()
    }
}

/// True if a process in this state counts as running on its node: it is being started, runs or is suspended.
pub(super) fn is_live(process: usize) -> bool {
    use Process::{Running, Starting, Suspended};
    matches!(
        Process::ALL.get(process),
        Some(Starting | Running | Suspended)
    )
}

/// True if a process in this state has ended.
pub(super) fn has_ended(process: usize) -> bool {
    use Process::{Error, Exited, Signalled};
    matches!(Process::ALL.get(process), Some(Exited | Signalled | Error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair of states of every attribute, compared with the rules in words here.
    #[test]
    fn state_transitions_equal_the_rules_in_words() {
        let expect = |attribute: &str, from: &str, to: &str| -> bool {
            if from == to {
                return true;
            }
            match (attribute, from) {
                ("rmState", "STOPPED") => to == "STARTING",
                ("rmState", "STARTING") => {
                    ["STARTED", "STOPPING", "STOPPED", "ERROR"].contains(&to)
                }
                ("rmState", "STARTED") => ["SUSPENDED", "STOPPING", "ERROR"].contains(&to),
                ("rmState", "SUSPENDED") => ["STARTED", "STOPPING", "ERROR"].contains(&to),
                ("rmState", "STOPPING") => ["STOPPED", "ERROR"].contains(&to),
                ("rmState", "ERROR") => ["STARTING", "STOPPED"].contains(&to),
                ("jobState", "TERMINATED") => to == "PENDING",
                ("jobState", "RUNNING" | "SUSPENDED") => to != "STARTED",
                ("processState", "EXITED" | "EXITED_SIGNALLED" | "ERROR") => false,
                ("processState", "RUNNING" | "SUSPENDED") => to != "STARTING",
                _ => true,
            }
        };
        let mut pairs = 0;
        for states in ALL {
            for (from, first) in states.words.iter().enumerate() {
                for (to, next) in states.words.iter().enumerate() {
                    let allowed = states.may_follow(from, to);
                    let said = (states.attribute, *first, *next);
                    assert_eq!(allowed, expect(said.0, first, next), "{said:?}");
                    pairs += 1;
                }
                assert!(!states.may_follow(from, states.words.len()));
            }
        }
        assert_eq!(pairs, 6 * 6 + 2 * 5 * 5 + 2 * 4 * 4 + 3 * 3 + 2 * 7 * 7);
    }

    #[test]
    fn constants_and_aliases_name_their_states() {
        let processes = [
            ("COMPLETED", Process::Exited),
            ("STOPPED", Process::Suspended),
        ];
        for (word, state) in processes {
            assert_eq!(Process::read(word), Some(state), "{word}");
        }
        for (word, state) in [("COMPLETED", Job::Terminated), ("STARTING", Job::Started)] {
            assert_eq!(Job::read(word), Some(state), "{word}");
        }
        assert!(Job::ALL.iter().all(|it| Job::read(it.word()) == Some(*it)));
        assert_eq!(Job::read("NOWHERE"), None);
    }
}
