//! Standard input of the programs: each task's stream offset, and the next piece of the input of `sdm`
//! itself.
use sdm_core::CommandId;
use sdm_idset::IdSet;

use sdm_view::coalesce::join;

/// Name of the commands that carry the standard input of `sdm` to the programs.
pub(crate) const INPUT: &str = "standard input";

/// The standard input of the tasks.
#[derive(Debug, Default)]
pub(crate) struct Input {
    /// Number of bytes that `send` has given to each task. Tasks that are not listed got none.
    pub(crate) offsets: Vec<(IdSet, u64)>,
    /// Standard input of `sdm` for the programs. None if `sdm` does not read it for them: they get input by `send`, or
    /// their launcher reads it.
    pub(crate) own: Option<ProgramInput>,
}

/// Standard input of `sdm` for the programs.
#[derive(Debug, Default)]
pub(crate) struct ProgramInput {
    /// The tasks that have received all input so far.
    pub(crate) to: IdSet,
    /// Number of bytes that these tasks have read.
    pub(crate) offset: u64,
    /// State of the next piece.
    pub(crate) piece: Piece,
}

/// State of the next piece of input.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Piece {
    /// Not requested, because no program would read it.
    #[default]
    Unasked,
    /// Requested.
    Asked,
    /// Received while there is no job.
    Held(Vec<u8>),
    /// Sent to the tasks by this command; the number is its length in bytes, 0 at end of file.
    Sent(CommandId, usize),
    /// The input has ended.
    Ended,
}

impl Input {
    /// Stream offsets, in bytes, of the next input for these tasks.
    pub(crate) fn offsets_of(&self, to: &IdSet) -> Vec<(IdSet, u64)> {
        let mut rest = to.clone();
        let mut offsets = Vec::new();
        for (tasks, offset) in &self.offsets {
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

    /// Notes that these tasks got all bytes up to this offset.
    pub(crate) fn advance(&mut self, tasks: &IdSet, offset: u64) {
        for (known, _) in &mut self.offsets {
            known.subtract(tasks);
        }
        self.offsets.retain(|(known, _)| !known.is_empty());
        join(&mut self.offsets, tasks, offset);
    }

    /// Number of bytes of the piece that a command carries. None if it carries none.
    pub(crate) fn carried_by(&self, id: CommandId) -> Option<usize> {
        match self.own.as_ref()?.piece {
            Piece::Sent(sent, length) if sent == id => Some(length),
            _ => None,
        }
    }
}

impl ProgramInput {
    /// Notes that a piece of this length has reached the tasks, and that those in `done` have accepted it.
    /// Returns true if the next piece has to be requested.
    pub(crate) fn taken(&mut self, length: usize, done: &IdSet) -> bool {
        // A task that has ended, or closed its input, reads no more.
        self.to = self.to.intersection(done);
        self.offset += length as u64;
        self.piece = if length == 0 {
            Piece::Ended
        } else if self.to.is_empty() {
            Piece::Unasked
        } else {
            Piece::Asked
        };
        self.piece == Piece::Asked
    }
}
