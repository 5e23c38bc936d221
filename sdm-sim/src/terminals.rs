//! Terminals that attach to and detach from the session: the real [`TerminalLease`] of a keeper, simulated terminals,
//! and their invariants.
//!
//! All outputs of the root are printed, a line each. A terminal shows a line and acknowledges it later. It may leave,
//! be replaced, be killed or hang. The next terminal must continue at the right place. A line shown by a terminal
//! that left in order is not shown again. No line is missing except those reported as dropped.
//!
//! The module has a random generator of its own, so that the tree's events are the same with and without it.

use std::collections::{BTreeMap, VecDeque};

use sdm_keep::{Frame, TerminalId, TerminalLease, TerminalMessage};

use crate::ledger::{Checked, violated};
use crate::log::Log;
use crate::rng::Rng;

const SECOND: u64 = 1_000_000;
/// Time after which a released terminal is cut off, as in the keeper.
const LET_GO_WAIT_US: u64 = SECOND;
/// Number of frames that a connection holds while its terminal does not read.
const UNREAD_MAX: usize = 4;
/// Time in which everything must be shown after the repair, in microseconds.
const SHOW_US: u64 = 30 * SECOND;

/// A scheduled event.
enum TerminalEvent {
    /// The user acts.
    User,
    /// A frame arrives at a terminal.
    ToTerminal(TerminalId),
    /// A frame arrives at the keeper.
    ToKeeper(TerminalId),
    /// The time of a released terminal is over: it is cut off.
    CutOff(TerminalId),
}

/// A connection with its terminal.
#[derive(Default)]
struct Terminal {
    to_it: VecDeque<Frame>,
    /// Frames from the terminal; `None` is the end of its connection.
    from_it: VecDeque<Option<Frame>>,
    /// Position in the output that the terminal shows next; `None` before the keeper has reported it.
    at: Option<u64>,
    /// True if the terminal reads nothing.
    hangs: bool,
    /// True if the terminal has closed its end, or was killed.
    has_left: bool,
    /// True once the time at which the terminal is cut off is scheduled.
    is_seen_off: bool,
    /// Minimum delay of the terminal's connection, in microseconds.
    slow_us: u64,
}

/// The keeper and its terminals, with the output that each has shown.
pub(crate) struct Terminals {
    rng: Rng,
    now: u64,
    queue: BTreeMap<(u64, u64), TerminalEvent>,
    sequence: u64,
    lease: TerminalLease,
    terminals: BTreeMap<TerminalId, Terminal>,
    /// All output of the program.
    printed: Vec<u8>,
    /// True if the last line of output has no newline yet, as a prompt has none.
    owes_newline: bool,
    ring_bytes: u64,
    /// Position up to which the keeper knows that output was shown or dropped. A killed terminal may have shown more.
    shown: u64,
    /// The last key that was typed, and the last one that the program received.
    typed: u64,
    got: u64,
    gap_us: u64,
    has_faults: bool,
}

impl Terminals {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x7465_726d_696e_616c);
        // The ring can be so small that it drops much, or so large that it drops nothing.
        let ring_bytes = rng.skewed(200, 1 << 20);
        let ring = usize::try_from(ring_bytes).expect("a million");
        let gap_us = rng.between(50_000, 10 * SECOND);
        let mut terminals = Self {
            rng,
            now: 0,
            queue: BTreeMap::new(),
            sequence: 0,
            lease: TerminalLease::new(ring),
            terminals: BTreeMap::new(),
            printed: Vec::new(),
            owes_newline: false,
            ring_bytes,
            shown: 0,
            typed: 0,
            got: 0,
            gap_us,
            has_faults: true,
        };
        terminals.at(0, TerminalEvent::User);
        terminals
    }

    fn at(&mut self, when: u64, act: TerminalEvent) {
        self.sequence += 1;
        self.queue.insert((when, self.sequence), act);
    }

    /// Schedules an event after a short random delay.
    fn soon(&mut self, slow_us: u64, act: TerminalEvent) {
        let delay = self.rng.between(1, 20_000) + slow_us;
        self.at(self.now + delay, act);
    }

    /// Makes the program print a line.
    pub(crate) fn print(&mut self, now: u64, line: &str, log: &mut Log) -> Checked {
        self.run_until(now, log)?;
        let before = if self.owes_newline { "\n" } else { "" };
        // A terminal may connect while a line is incomplete.
        self.owes_newline = self.rng.one_in(3);
        let after = if self.owes_newline { "" } else { "\n" };
        let text = format!("{before}{line}{after}");
        self.printed.extend_from_slice(text.as_bytes());
        self.lease.print(text.as_bytes());
        self.pump();
        Ok(())
    }

    /// Handles everything that is due until `until`.
    pub(crate) fn run_until(&mut self, until: u64, log: &mut Log) -> Checked {
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > until {
                break;
            }
            let ((when, _), act) = entry.remove_entry();
            self.now = self.now.max(when);
            match act {
                TerminalEvent::User => self.next_act(log),
                TerminalEvent::ToTerminal(id) => self.reach_terminal(id)?,
                TerminalEvent::ToKeeper(id) => self.reach_keeper(id)?,
                TerminalEvent::CutOff(id) => self.cut_off(id, log),
            }
            self.pump();
        }
        self.now = self.now.max(until);
        Ok(())
    }

    /// Lets hanging terminals resume. One terminal attaches and stays, and shows all remaining output.
    pub(crate) fn finish(&mut self, now: u64, log: &mut Log) -> Checked {
        self.run_until(now, log)?;
        self.has_faults = false;
        let ids: Vec<TerminalId> = self.terminals.keys().copied().collect();
        for id in ids {
            self.set_hangs(id, false);
        }
        self.open(log);
        self.pump();
        self.run_until(now + SHOW_US, log)?;
        let end = self.printed.len() as u64;
        if self.shown == end {
            return Ok(());
        }
        let text = format!("{} of {end} bytes were shown", self.shown);
        violated("shown to the end", text)
    }

    fn next_act(&mut self, log: &mut Log) {
        if !self.has_faults {
            return;
        }
        let current = self.lease.current();
        match (self.rng.below(8), current) {
            (0..3, Some(id)) => self.type_key(id),
            (3, Some(id)) => {
                log.note(self.now, format_args!("terminal {id} detaches"));
                self.send(id, Some(Frame::Detach));
            }
            (4, Some(id)) => {
                log.note(self.now, format_args!("terminal {id} is killed"));
                self.kill(id);
            }
            (5, Some(id)) => {
                let hangs = self.rng.one_in(2);
                log.note(self.now, format_args!("terminal {id} hangs: {hangs}"));
                self.set_hangs(id, hangs);
            }
            (6, Some(_)) => {
                log.note(self.now, format_args!("the terminal is told to leave"));
                self.lease.let_go();
                self.see_off();
            }
            _ => self.open(log),
        }
        let gap = self.rng.between(0, 2 * self.gap_us);
        self.at(self.now + gap, TerminalEvent::User);
    }

    fn open(&mut self, log: &mut Log) {
        let id = self.lease.open();
        log.note(self.now, format_args!("terminal {id} comes"));
        let slow_us = self.rng.skewed(1, SECOND / 4);
        let terminal = Terminal {
            slow_us,
            ..Terminal::default()
        };
        self.terminals.insert(id, terminal);
        self.see_off();
    }

    /// Schedules the time limit of released terminals.
    fn see_off(&mut self) {
        let leaving: Vec<TerminalId> = self.lease.leaving().collect();
        for id in leaving {
            if let Some(terminal) = self.terminals.get_mut(&id)
                && !std::mem::replace(&mut terminal.is_seen_off, true)
            {
                self.at(self.now + LET_GO_WAIT_US, TerminalEvent::CutOff(id));
            }
        }
    }

    fn type_key(&mut self, id: TerminalId) {
        if self.terminals.get(&id).is_some_and(|t| !t.has_left) {
            self.typed += 1;
            let key = self.typed.to_le_bytes().to_vec();
            self.send(id, Some(Frame::Input(key)));
        }
    }

    /// A terminal sends a frame, or closes its end.
    fn send(&mut self, id: TerminalId, frame: Option<Frame>) {
        if let Some(terminal) = self.terminals.get_mut(&id)
            && !terminal.has_left
        {
            terminal.has_left = frame.is_none();
            terminal.from_it.push_back(frame);
            let slow_us = terminal.slow_us;
            self.soon(slow_us, TerminalEvent::ToKeeper(id));
        }
    }

    /// Kills a terminal: frames in transit to it are never shown, while frames that it sent arrive.
    fn kill(&mut self, id: TerminalId) {
        if let Some(terminal) = self.terminals.get_mut(&id) {
            terminal.to_it.clear();
        }
        // Later messages of the terminal do not count.
        self.send(id, None);
    }

    fn set_hangs(&mut self, id: TerminalId, hangs: bool) {
        let Some(terminal) = self.terminals.get_mut(&id) else {
            return;
        };
        terminal.hangs = hangs;
        let unread = if hangs { 0 } else { terminal.to_it.len() };
        for _ in 0..unread {
            self.soon(0, TerminalEvent::ToTerminal(id));
        }
    }

    /// Acts as the keeper's threads: sends each terminal its frames, as long as its connection accepts them.
    fn pump(&mut self) {
        let mut sent = Vec::new();
        for (id, terminal) in &mut self.terminals {
            while !terminal.has_left && terminal.to_it.len() < UNREAD_MAX {
                let Some(frame) = self.lease.poll_frame(*id) else {
                    break;
                };
                terminal.to_it.push_back(frame);
                sent.push((*id, terminal.slow_us));
            }
        }
        for (id, slow_us) in sent {
            self.soon(slow_us, TerminalEvent::ToTerminal(id));
        }
    }

    /// Delivers the next frame to a terminal.
    fn reach_terminal(&mut self, id: TerminalId) -> Checked {
        let Some(terminal) = self.terminals.get_mut(&id) else {
            return Ok(());
        };
        if terminal.hangs || terminal.has_left {
            return Ok(());
        }
        match terminal.to_it.pop_front() {
            Some(Frame::Begin { dropped, at }) => {
                let before = terminal.at.replace(at);
                self.check_begin(id, before, dropped, at)?;
                self.send(id, Some(Frame::Shown(at)));
            }
            Some(Frame::Output(bytes)) => {
                let from = terminal.at.unwrap_or(u64::MAX);
                let upto = from.saturating_add(bytes.len() as u64);
                terminal.at = Some(upto);
                let printed = usize::try_from(from)
                    .ok()
                    .and_then(|at| self.printed.get(at..));
                if !printed.is_some_and(|printed| printed.starts_with(&bytes)) {
                    let text = format!("other bytes than were printed from {from} on");
                    return violated("shown as printed", text);
                }
                self.send(id, Some(Frame::Shown(upto)));
            }
            Some(Frame::LetGo(_)) => self.send(id, None),
            Some(other) => {
                return violated("terminals", format!("terminal {id} was told {other:?}"));
            }
            None => {}
        }
        Ok(())
    }

    /// Checks the position at which a terminal is told to begin, or to continue after a gap.
    fn check_begin(&self, id: TerminalId, before: Option<u64>, dropped: u64, at: u64) -> Checked {
        let (end, shown) = (self.printed.len() as u64, self.shown);
        let goes_on = before.unwrap_or(shown) + dropped;
        let text =
            format!("terminal {id} begins at {at} of {end}, {shown} shown, {dropped} dropped");
        if goes_on > end.saturating_sub(self.ring_bytes) && dropped > 0 {
            return violated("dropped no more than must be", text);
        }
        if at > goes_on || (before.is_some() && at != goes_on) {
            return violated("shown without a gap", text);
        }
        let again =
            usize::try_from(at).expect("in memory")..usize::try_from(goes_on).expect("in memory");
        match self.printed.get(again) {
            Some(again) if !again.contains(&b'\n') => Ok(()),
            _ => violated("shown once", text),
        }
    }

    /// Delivers the next frame of a terminal to the keeper, or the end of its connection.
    fn reach_keeper(&mut self, id: TerminalId) -> Checked {
        let next = self.terminals.get_mut(&id).map(|t| t.from_it.pop_front());
        let Some(Some(frame)) = next else {
            return Ok(());
        };
        let Some(frame) = frame else {
            self.lease.closed(id);
            self.terminals.remove(&id);
            return Ok(());
        };
        if let Frame::Shown(at) = frame {
            self.shown = self.shown.max(at);
        }
        match self.lease.receive(id, frame) {
            Ok(Some(TerminalMessage::Typed(key))) => {
                let key = key.try_into().map_or(0, u64::from_le_bytes);
                if key <= self.got {
                    let text = format!("key {key} came after key {}", self.got);
                    return violated("typed once, in order", text);
                }
                self.got = key;
            }
            Ok(_) => {}
            Err(error) => return violated("terminals", error.to_string()),
        }
        self.see_off();
        Ok(())
    }

    fn cut_off(&mut self, id: TerminalId, log: &mut Log) {
        if self.terminals.remove(&id).is_some() {
            log.note(self.now, format_args!("terminal {id} is cut off"));
            self.lease.closed(id);
        }
    }
}
