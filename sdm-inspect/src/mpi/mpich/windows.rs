//! Windows of MPICH, and the window locks and epochs between groups of ranks that a process has open.
//!
//! A window has a communicator of its own, which is freed with the window. The window has a table (`uthash`) with an
//! object for each rank whose part of the window was used. The object's hash handle points to its key, the rank, and
//! the lock state is in front of the key.

use sdm_debug::probe::{ArgumentRole, WindowLock};

use super::objects::{GROUPS, Objects, WINDOWS, is_later};
use super::{Members, Mpich};
use crate::mpi::{GroupEpoch, Piece, WINDOWS_MAX, WORD};

/// Bytes of a rank's object that are examined.
const TARGET_BYTES: usize = 160;
/// Offsets in the hash handle, in bytes: of the pointer to the next object, and of the pointer to the key. The key's
/// length follows.
const NEXT: usize = 16;
const KEY: usize = 40;
/// Offsets in front of the rank, in bytes: the kind of epoch, and the lock state.
const EPOCH: usize = 12;
const LOCKED: usize = 8;
/// The kinds of epochs that `MPI_Win_lock` and `MPI_Win_lock_all` begin.
const IS_LOCK: i32 = 1;
const IS_LOCK_OF_ALL: i32 = 6;
/// Offset of the count of granted locks, in bytes, from the kind of a window's own epoch.
const GIVEN: usize = 32;
const TARGETS_MAX: usize = 4096;
/// Offsets of the group of an access epoch and of an exposure epoch, in bytes, from the kind of the epoch.
const ACCESS_GROUP: usize = 16;
const EXPOSURE_GROUP: usize = 40;
/// The kind of an access epoch that `MPI_Win_start` is about to begin, the kind of one that it has begun, and the kind
/// of an exposure epoch.
const IS_ACCESS: [i32; 2] = [0, 2];
const IS_EXPOSURE: i32 = 3;

impl Mpich<'_> {
    /// True for the handle of a window.
    pub fn is_window(handle: u32) -> bool {
        is_later(handle, WINDOWS)
    }

    /// True for the handle of a group that is not predefined.
    pub fn is_group(handle: u32) -> bool {
        is_later(handle, GROUPS)
    }

    /// The context id of a window's communicator, and its ranks; `None` if the window is not found.
    pub fn window(&self, handle: u32) -> Option<(i64, Members)> {
        let (_, window) = self.windows()?.any(self.memory, handle)?;
        let (context, ranks) = self.of_window(&window)?;
        Some((context, Members::Of(ranks)))
    }

    /// The window locks that this process holds.
    pub fn window_locks(&self) -> Vec<WindowLock> {
        let Some(windows) = self.windows() else {
            return Vec::new();
        };
        let mut locks = Vec::new();
        for (_, window) in windows.every(self.memory, WINDOWS_MAX) {
            let Some((context, ranks)) = self.of_window(&window) else {
                continue;
            };
            let held = window.words().flat_map(|word| self.held(word));
            let held = held.filter_map(|rank| ranks.get(rank).map(|rank| Some(*rank)));
            let of_all = has_all(&window, ranks.len()).then_some(None);
            locks.extend(held.chain(of_all).map(|target| WindowLock {
                window: context,
                target,
            }));
        }
        locks.sort_unstable();
        locks.dedup();
        locks
    }

    /// The epochs between groups of ranks that this process has open.
    pub fn group_epochs(&self) -> Vec<GroupEpoch> {
        let Some(windows) = self.windows() else {
            return Vec::new();
        };
        let windows = windows.every(self.memory, WINDOWS_MAX);
        let epochs = windows.filter_map(|(_, window)| self.epochs_of(&window));
        epochs.flatten().collect()
    }

    fn epochs_of(&self, window: &Piece) -> Option<Vec<GroupEpoch>> {
        let (context, _) = self.of_window(window)?;
        let places = (EXPOSURE_GROUP..window.0.len()).step_by(WORD);
        let epochs = places.filter_map(|at| {
            let partners = self.group_at(window.word(at))?;
            let is_exposure = window.number(at - EXPOSURE_GROUP + 4) == IS_EXPOSURE;
            let is_access = IS_ACCESS.contains(&window.number(at - ACCESS_GROUP));
            let role = match is_exposure {
                true => ArgumentRole::Exposure,
                false => ArgumentRole::Access,
            };
            (is_exposure || is_access).then_some(GroupEpoch {
                role,
                window: context,
                partners,
            })
        });
        Some(epochs.collect())
    }

    fn windows(&self) -> Option<Objects> {
        Objects::find(self.memory, &self.variables, (WINDOWS, None))
    }

    /// The context id and the ranks of a window's communicator; `None` if it is not found.
    fn of_window(&self, window: &Piece) -> Option<(i64, Vec<u32>)> {
        let all = self.communicators.as_ref()?;
        let mut communicators = window.words().filter_map(|word| {
            let handle = Piece::read(self.memory, word, 4)?.number(0).cast_unsigned();
            let found = all.object(self.memory, handle);
            found.filter(|(at, _)| *at == word)
        });
        communicators.find_map(|(_, one)| match self.members_of(&one)? {
            Members::Of(ranks) => Some((self.context_of(&one)?.into(), ranks)),
            Members::Between(..) | Members::WithOtherJobs => None,
        })
    }

    /// The ranks whose locks are held, in the hash table that begins with the object at this address.
    fn held(&self, address: u64) -> Vec<usize> {
        let first = self.target(address);
        let all = std::iter::successors(first, |(_, next)| self.target(*next));
        let ranks = all.take(TARGETS_MAX).filter_map(|(rank, _)| rank);
        ranks.collect()
    }

    /// Reads a target object: its rank, `None` unless its lock is held, and the address of the next object. `None` if
    /// there is no target object at the address.
    fn target(&self, address: u64) -> Option<(Option<usize>, u64)> {
        let piece = Piece::read_some(self.memory, address, TARGET_BYTES)?;
        let mut keys =
            ((KEY + EPOCH).next_multiple_of(WORD)..piece.0.len().checked_sub(WORD)?).step_by(WORD);
        let key = keys.find_map(|at| {
            let key = usize::try_from(piece.word(at).checked_sub(address)?).ok()?;
            let is_key = (EPOCH..at - KEY).contains(&key) && piece.number(at + WORD) == 4;
            is_key.then_some((at - KEY, key))
        });
        let (table, key) = key?;
        let [epoch, locked, rank] = [key - EPOCH, key - LOCKED, key].map(|at| piece.number(at));
        let rank = usize::try_from(rank).ok()?;
        let is_held = epoch == IS_LOCK && locked == 1;
        Some((is_held.then_some(rank), piece.word(table + NEXT)))
    }
}

/// True if this process holds the locks of all ranks of a window.
fn has_all(window: &Piece, count: usize) -> bool {
    let mut places = (0..window.0.len().saturating_sub(GIVEN)).step_by(4);
    places.any(|at| {
        let given = usize::try_from(window.number(at + GIVEN));
        window.number(at) == IS_LOCK_OF_ALL && given == Ok(count)
    })
}
