//! The program's standard input: a numbered stream for each task. A person feeds it by `send`; where there is no
//! prompt, what `sdm` itself reads goes in, no faster than it is read there.

use sdm_core::CommandId;
use sdm_debug::Command;
use sdm_idset::IdSet;
use sdm_session::{Debug, SendOptions};

use super::gather::join;
use super::open::Open;
use super::run::Said;
use super::{InputSource, Shell, Verdict};
use crate::commands::SetExpr;

/// The name of the commands by which it goes in.
const INPUT: &str = "standard input";

/// What `sdm` reads for the programs.
pub(super) struct OwnInput {
    source: Box<dyn InputSource>,
    /// Who has read all of it so far.
    to: IdSet,
    /// How much that is, in bytes.
    offset: u64,
    stage: Stage,
}

/// Where the next piece is.
enum Stage {
    /// Nobody has asked for it, as nobody would read it.
    Idle,
    /// It was asked for.
    Asked,
    /// It has come, and there is no job.
    Held(Vec<u8>),
    /// It is under way, so many bytes; at the end none.
    Sent(CommandId, usize),
    /// There is none.
    Ended,
}

impl<D: Debug> Shell<D> {
    /// From now on the programs read what this gives, and `send` feeds nobody.
    pub fn set_input(&mut self, source: Box<dyn InputSource>) {
        self.own_input = Some(OwnInput {
            source,
            to: IdSet::new(),
            offset: 0,
            stage: Stage::Idle,
        });
    }

    /// The programs are on their way.
    pub fn begin_input(&mut self) {
        let to = self.options.stdin_tasks.intersection(self.debug.tasks());
        let Some(input) = &mut self.own_input else {
            return;
        };
        (input.to, input.offset) = (to, 0);
        match std::mem::replace(&mut input.stage, Stage::Asked) {
            Stage::Idle | Stage::Sent(..) => input.source.request(),
            Stage::Asked => {}
            Stage::Held(bytes) => self.pass_input(bytes),
            Stage::Ended => self.pass_input(Vec::new()),
        }
    }

    /// A piece has come.
    pub(super) fn take_input(&mut self, bytes: Vec<u8>) {
        match &mut self.own_input {
            Some(input) if self.jobless => input.stage = Stage::Held(bytes),
            _ => self.pass_input(bytes),
        }
    }

    fn pass_input(&mut self, bytes: Vec<u8>) {
        let eof = bytes.is_empty();
        let fed = self.debug.feed(&bytes, eof);
        let Some(input) = &mut self.own_input else {
            return;
        };
        input.stage = match fed {
            Some(Ok(())) if eof => Stage::Ended,
            Some(Ok(())) => {
                input.source.request();
                Stage::Asked
            }
            // It has ended, or does not read.
            Some(Err(why)) => {
                tracing::warn!("{INPUT}: {why}");
                Stage::Idle
            }
            None => {
                let (to, offset, length) = (input.to.clone(), input.offset, bytes.len());
                let command = Command::Stdin { offset, bytes, eof };
                // A program may take its time.
                let id = self.debug.send(&to, &command, &SendOptions::default());
                self.open.insert(id, Open::new(INPUT, &to));
                Stage::Sent(id, length)
            }
        };
    }

    /// Whether a command that is over was a piece of input: then the next one is asked for.
    pub(super) fn input_taken(&mut self, id: CommandId) -> bool {
        let length = match self.own_input.as_ref().map(|input| &input.stage) {
            Some(Stage::Sent(sent, length)) if *sent == id => *length,
            _ => return false,
        };
        let open = self.open.remove(id).unwrap_or_default();
        for (tasks, failure) in &open.gathered.failed {
            tracing::info!("{INPUT}: {tasks}: {}", failure.text);
        }
        if let Some(input) = &mut self.own_input {
            // Who has ended, or closed it, reads no more.
            input.to = input.to.intersection(&open.plainly_done());
            input.offset += length as u64;
            input.stage = if length == 0 {
                Stage::Ended
            } else if input.to.is_empty() {
                Stage::Idle
            } else {
                input.source.request();
                Stage::Asked
            };
        }
        true
    }
    /// `send SET TEXT`, `send SET --eof`.
    pub(super) fn send_input(
        &mut self,
        said: &Said<'_>,
        set: &SetExpr,
        text: &str,
        eof: bool,
    ) -> Verdict {
        let bytes = if eof {
            Vec::new()
        } else {
            format!("{text}\n").into_bytes()
        };
        if self.own_input.is_some() {
            return self.complain(
                "send: the programs read the standard input of sdm",
                "with `send` among the lines of -c and -x, or at a prompt (-i), they do not",
            );
        }
        if let Some(fed) = self.debug.feed(&bytes, eof) {
            return match fed {
                Ok(()) => Verdict::Done,
                Err(why) => self.complain(format!("send: {why}"), ""),
            };
        }
        let to = match self.resolve(set) {
            Ok(to) => to,
            Err(error) => return self.refuse(said.line, &error),
        };
        let unfed = to.difference(&self.options.stdin_tasks);
        if !unfed.is_empty() {
            let text = sdm_view::render::set_text(&unfed, 60);
            return self.complain(
                format!("send: {text} read an empty standard input"),
                "start with `--stdin SET` to choose who is fed; it is rank 0 unless said otherwise",
            );
        }
        let mut verdict = Verdict::Done;
        for (tasks, offset) in self.stdin_offsets(&to) {
            let command = Command::Stdin {
                offset,
                bytes: bytes.clone(),
                eof,
            };
            let (one, done) = self.ask(said.line, &tasks, &command);
            self.advance_stdin(&done, offset + bytes.len() as u64);
            if one != Verdict::Done {
                verdict = one;
            }
        }
        verdict
    }

    /// Where the next bytes of some tasks' input stand.
    fn stdin_offsets(&self, to: &IdSet) -> Vec<(IdSet, u64)> {
        let mut rest = to.clone();
        let mut offsets = Vec::new();
        for (tasks, offset) in &self.stdin {
            let both = tasks.intersection(to);
            rest.subtract(&both);
            if !both.is_empty() {
                offsets.push((both, *offset));
            }
        }
        if !rest.is_empty() {
            offsets.push((rest, 0));
        }
        offsets
    }

    fn advance_stdin(&mut self, tasks: &IdSet, offset: u64) {
        for (known, _) in &mut self.stdin {
            known.subtract(tasks);
        }
        self.stdin.retain(|(known, _)| !known.is_empty());
        join(&mut self.stdin, tasks, offset);
    }
}
