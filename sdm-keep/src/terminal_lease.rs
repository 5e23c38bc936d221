//! The terminal that is connected to the program, and the output sent to each terminal. No I/O, no clock.
//!
//! One terminal at a time is connected to the program. A terminal that is to be released gets a message, reports its
//! position in the output, and closes its connection. Only then is the next terminal's start position known, and only
//! then does the output for it begin.

use std::collections::BTreeMap;

use crate::ring::Ring;
use crate::wire::{Frame, Size};

/// Bytes of output in one frame.
const CHUNK_BYTES: usize = 32 << 10;
/// Bytes that a terminal may lag behind before the program has to wait.
const LAG_BYTES_MAX: u64 = 256 << 10;

/// Number of a terminal; each new terminal has a higher one.
pub type TerminalId = u64;

/// The state of a keeper, whose caller does the I/O.
pub struct TerminalLease {
    ring: Ring,
    /// The terminals with an open connection; at most one of them has the program.
    terminals: BTreeMap<TerminalId, Terminal>,
    last: TerminalId,
    exited: Option<i32>,
    /// True once the program's end was reported to a terminal.
    told: bool,
}

struct Terminal {
    stage: Stage,
    /// Position of the next byte to send; `None` before the first one.
    next: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Has,
    /// Released, and not notified of that yet; true if another terminal replaces it.
    LetGo(bool),
    /// Notified; nothing more will be sent to the terminal.
    Told,
}

impl TerminalLease {
    /// A lease without terminals. Up to `ring_bytes` of output are kept for the next terminal.
    #[must_use]
    pub fn new(ring_bytes: usize) -> Self {
        Self {
            ring: Ring::new(ring_bytes),
            terminals: BTreeMap::new(),
            last: 0,
            exited: None,
            told: false,
        }
    }

    /// Adds output of the program.
    pub fn print(&mut self, bytes: &[u8]) {
        self.ring.push(bytes);
    }

    /// Records that the program has ended with this exit code. All its output was passed to [`Self::print`] before.
    pub fn exit(&mut self, code: i32) {
        self.exited = Some(code);
    }

    /// The program's exit code; `None` until it has ended.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        self.exited
    }

    /// Adds a terminal, and releases the terminal that has the program.
    pub fn open(&mut self) -> TerminalId {
        self.let_go_for(true);
        self.last += 1;
        let terminal = Terminal {
            stage: Stage::Has,
            next: None,
        };
        self.terminals.insert(self.last, terminal);
        self.last
    }

    /// Begins to release the terminal that has the program.
    pub fn let_go(&mut self) {
        self.let_go_for(false);
    }

    fn let_go_for(&mut self, taken: bool) {
        if let Some(terminal) = self.current()
            && let Some(terminal) = self.terminals.get_mut(&terminal)
        {
            terminal.stage = Stage::LetGo(taken);
        }
    }

    /// The terminal that has the program; `None` if no terminal has it.
    #[must_use]
    pub fn current(&self) -> Option<TerminalId> {
        let mut has = self
            .terminals
            .iter()
            .filter(|(_, terminal)| terminal.stage == Stage::Has);
        has.next().map(|(id, _)| *id)
    }

    /// Handles a terminal's frame; returns the message for the program, if there is one. Only position reports are
    /// accepted from a terminal that does not have the program.
    ///
    /// # Errors
    ///
    /// The frame is one that only a keeper sends, or that a connected terminal does not send.
    pub fn receive(
        &mut self,
        from: TerminalId,
        frame: Frame,
    ) -> Result<Option<TerminalMessage>, Unexpected> {
        let has_it = self.current() == Some(from);
        match frame {
            Frame::Shown(at) if self.terminals.contains_key(&from) => self.ring.set_shown(at),
            // Messages of a released terminal are ignored.
            Frame::Shown(_) => {}
            _ if !has_it => {}
            Frame::Input(bytes) => return Ok(Some(TerminalMessage::Typed(bytes))),
            Frame::Resized(size) => return Ok(Some(TerminalMessage::Resized(size))),
            Frame::Detach => self.let_go(),
            _ => return Err(Unexpected),
        }
        Ok(None)
    }

    /// Removes a terminal whose connection either side has closed. The position that it has reported is final.
    pub fn closed(&mut self, id: TerminalId) {
        self.terminals.remove(&id);
    }

    /// Terminals that are released and still have a connection. The next terminal waits until these connections are
    /// closed.
    pub fn leaving(&self) -> impl Iterator<Item = TerminalId> + '_ {
        let leaving = self
            .terminals
            .iter()
            .filter(|(_, terminal)| terminal.stage != Stage::Has);
        leaving.map(|(id, _)| *id)
    }

    /// The next frame for a terminal; `None` if there is none at present.
    pub fn poll_frame(&mut self, id: TerminalId) -> Option<Frame> {
        let may_begin = self.leaving().next().is_none();
        let terminal = self.terminals.get_mut(&id)?;
        if let Stage::LetGo(taken) = terminal.stage {
            terminal.stage = Stage::Told;
            return Some(Frame::LetGo(taken));
        }
        if terminal.stage == Stage::Told {
            return None;
        }
        let Some(at) = terminal.next else {
            if !may_begin {
                return None;
            }
            let (dropped, at) = self.ring.resume();
            terminal.next = Some(at);
            return Some(Frame::Begin { dropped, at });
        };
        let (dropped, bytes) = self.ring.read(at, CHUNK_BYTES);
        if dropped > 0 {
            let at = at + dropped;
            terminal.next = Some(at);
            return Some(Frame::Begin { dropped, at });
        }
        if !bytes.is_empty() {
            terminal.next = Some(at + bytes.len() as u64);
            return Some(Frame::Output(bytes));
        }
        let code = self.exited?;
        terminal.stage = Stage::Told;
        self.told = true;
        Some(Frame::Exited(code))
    }

    /// True if a terminal will be sent nothing more.
    #[must_use]
    pub fn is_done(&self, id: TerminalId) -> bool {
        let terminal = self.terminals.get(&id);
        terminal.is_none_or(|terminal| terminal.stage == Stage::Told)
    }

    /// True while the terminal with the program lags so far behind that the program has to wait.
    #[must_use]
    pub fn is_lagging(&self) -> bool {
        let current = self.current().and_then(|id| self.terminals.get(&id));
        let next = current.and_then(|terminal| terminal.next);
        next.is_some_and(|next| self.ring.end() - next > LAG_BYTES_MAX)
    }

    /// True once a terminal was notified of the program's end, and all terminals have left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.told && self.terminals.is_empty()
    }
}

/// A terminal's message that is not for the lease itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TerminalMessage {
    /// Keyboard input for the program.
    Typed(Vec<u8>),
    /// The terminal has a new size.
    Resized(Size),
}

/// A terminal has sent a frame that only a keeper sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the terminal sent a message that only a kept session may send")]
pub struct Unexpected;

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> Option<Frame> {
        Some(Frame::Output(text.into()))
    }

    fn begin(dropped: u64, at: u64) -> Option<Frame> {
        Some(Frame::Begin { dropped, at })
    }

    #[test]
    fn next_terminal_continues_after_the_last_output() {
        let mut lease = TerminalLease::new(100);
        lease.print(b"one\n");
        let first = lease.open();
        assert_eq!(lease.poll_frame(first), begin(0, 0));
        assert_eq!(lease.poll_frame(first), output("one\n"));
        assert_eq!(lease.poll_frame(first), None);
        let second = lease.open();
        assert_eq!(lease.poll_frame(first), Some(Frame::LetGo(true)));
        assert!(lease.is_done(first) && !lease.is_done(second));
        // The output that the first terminal has shown is known only after its connection is closed.
        assert_eq!(lease.poll_frame(second), None);
        assert_eq!(lease.receive(first, Frame::Shown(4)), Ok(None));
        lease.closed(first);
        assert_eq!(lease.poll_frame(second), begin(0, 4));
        assert_eq!(lease.receive(first, Frame::Shown(0)), Ok(None));
        lease.print(b"two\n");
        assert_eq!(lease.poll_frame(second), output("two\n"));
    }

    #[test]
    fn only_the_current_terminal_sends_input() {
        let mut lease = TerminalLease::new(100);
        let first = lease.open();
        let typed = |text: &str| Frame::Input(text.into());
        let heard = lease.receive(first, typed("a"));
        assert_eq!(heard, Ok(Some(TerminalMessage::Typed(b"a".to_vec()))));
        assert_eq!(lease.receive(first, Frame::Detach), Ok(None));
        assert_eq!(lease.receive(first, typed("b")), Ok(None));
        assert_eq!(lease.current(), None);
        assert_eq!(lease.poll_frame(first), Some(Frame::LetGo(false)));
        let second = lease.open();
        assert_eq!(lease.receive(second, Frame::Exited(0)), Err(Unexpected));
    }

    #[test]
    fn exit_is_sent_after_all_output() {
        let mut lease = TerminalLease::new(100);
        lease.print(b"bye\n");
        lease.exit(3);
        let only = lease.open();
        assert_eq!(lease.poll_frame(only), begin(0, 0));
        assert_eq!(lease.poll_frame(only), output("bye\n"));
        assert_eq!(lease.poll_frame(only), Some(Frame::Exited(3)));
        assert!(lease.is_done(only) && !lease.is_over());
        lease.closed(only);
        assert!(lease.is_over());
    }

    #[test]
    fn dropped_output_is_reported_to_a_slow_terminal() {
        let mut lease = TerminalLease::new(4);
        let only = lease.open();
        assert_eq!(lease.poll_frame(only), begin(0, 0));
        lease.print(b"123456");
        assert_eq!(lease.poll_frame(only), begin(2, 2));
        assert_eq!(lease.poll_frame(only), output("3456"));
    }
}
