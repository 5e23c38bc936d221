//! Windows of Open MPI, and the window locks and epochs between groups of ranks that a process has open.
//!
//! A window has a module, the part of Open MPI that moves the window's data. The module has a communicator of its own.
//! The modules `pt2pt` and `rdma` keep an object for each lock, which begins with its class, and the class has a name.
//! The group of an access epoch is in such an object too; the group of an exposure epoch is in the module.
//!
//! The module `sm` serves windows whose ranks all share memory. It has a list of this process's lock state for each
//! rank, and in front of it the groups of both epochs.

use sdm_debug::probe::{ArgumentRole, WindowLock};

use super::{OpenMpi, RANKS_MAX, is_address, words};
use crate::memory::Memory;
use crate::mpi::{GroupEpoch, Members, Piece, WINDOWS_MAX, WORD};

const WINDOW: &str = "ompi_win_t";
const COMMUNICATOR: &str = "ompi_communicator_t";
const TABLE: &str = "opal_hash_table_t";
const GROUP: &str = "ompi_group_t";
const MUTEX: &str = "opal_mutex_t";
const OF_PT2PT: &str = "ompi_osc_pt2pt_sync_t";
const OF_RDMA: &str = "ompi_osc_rdma_sync_t";
/// Bytes of a window and of its module that are examined; `sm`'s module contains a file path.
const WINDOW_BYTES: usize = 1024;
const MODULE_BYTES: usize = 8 << 10;
/// Range of a module's words that are function pointers in any version, and the largest size of the library with these
/// functions, in bytes.
const FUNCTIONS: std::ops::Range<usize> = 3..19;
const LIBRARY_BYTES: u64 = 64 << 20;
/// Number of bytes of the list of all windows that contain the address of its array.
const LIST_BYTES: usize = 192;
/// Offsets in a table: its entries, its capacity, and the size of an entry. In bytes.
const TABLE_ENTRIES: usize = 16;
const TABLE_ROOM: usize = 24;
const ENTRY_BYTES: usize = 32;
/// Maximum number of entries that are examined.
const ENTRIES_MAX: usize = 1 << 16;
/// Number of ranks above which `rdma` has a table in place of a list.
const LISTED_MAX: usize = 256;
/// Bytes of a lock object that are examined. The reference to its module is followed by the lock type and the target
/// rank. With `pt2pt` the number of outstanding acknowledgements follows, and whether the lock is active. Offsets in
/// bytes.
const LOCK_BYTES: usize = 256;
const LOCK_TYPE: usize = 8;
const LOCK_TARGET: usize = 16;
const LOCK_EXPECTED: usize = 44;
const LOCK_ACTIVE: usize = 48;
/// Type numbers of an epoch by `MPI_Win_lock`, and of one by `MPI_Win_start`.
const IS_LOCK: i32 = 1;
const IS_START: i32 = 3;
/// Offsets in front of `sm`'s mutex, in bytes: the list of lock states by rank, the shared part, this rank's part of
/// it, and the first rank's part.
const SM_LOCKS: usize = 40;
const SM_SHARED: usize = 32;
const SM_OWN: usize = 24;
const SM_FIRST: usize = 16;
/// Offsets in front of `sm`'s mutex of the groups of an access epoch and of an exposure epoch, in bytes.
const SM_ACCESS: usize = 56;
const SM_EXPOSURE: usize = 48;
/// Maximum distance from the shared part to the first rank's part, in bytes.
const SM_SHARED_BYTES: u64 = 4096;
/// `sm`'s states of an exclusive and of a shared lock; the latter is the greatest state.
const SM_HELD: [i32; 2] = [2, 3];

/// A window's module, with the context id and the ranks of its communicator.
struct WindowModule {
    address: u64,
    piece: Piece,
    context: i64,
    ranks: Vec<u32>,
}

impl OpenMpi<'_> {
    /// The context id of a window's communicator, and its ranks; `None` if the window is not found.
    pub fn window(&self, window: u64) -> Option<(i64, Members)> {
        let module = self.module(window)?;
        Some((module.context, Members::Of(module.ranks)))
    }

    /// The window locks that this process holds. `list` is the library's list of all windows.
    pub fn window_locks(&self, list: u64) -> Vec<WindowLock> {
        let windows = self.windows(list).unwrap_or_default().into_iter();
        let modules = windows.filter_map(|window| self.module(window));
        let mut locks = Vec::new();
        for module in modules {
            let targets = self.kept(&module).chain(self.shared(&module));
            for target in targets {
                // A negative target stands for all ranks.
                let target = match usize::try_from(target) {
                    Ok(rank) => module.ranks.get(rank).map(|rank| Some(*rank)),
                    Err(_) => Some(None),
                };
                locks.extend(target.map(|target| WindowLock {
                    window: module.context,
                    target,
                }));
            }
        }
        locks.sort_unstable();
        locks.dedup();
        locks
    }

    /// The epochs between groups of ranks that this process has open. `list` is the library's list of all windows.
    pub fn group_epochs(&self, list: u64) -> Vec<GroupEpoch> {
        let windows = self.windows(list).unwrap_or_default().into_iter();
        let modules = windows.filter_map(|window| self.module(window));
        modules.flat_map(|module| self.epochs_of(&module)).collect()
    }

    fn epochs_of(&self, module: &WindowModule) -> Vec<GroupEpoch> {
        let mutex = self.mutexes_of_sm(module).next();
        let places = (0..module.piece.0.len() / WORD).map(|at| at * WORD);
        let groups = places.filter(|at| self.is_of(module.piece.word(*at), GROUP));
        let epochs = groups.filter_map(|at| {
            let is_of_sync =
                at >= LOCK_TARGET && module.piece.word(at - LOCK_TARGET) == module.address;
            let is_access =
                is_of_sync && module.piece.number(at - LOCK_TARGET + LOCK_TYPE) == IS_START;
            let role = match mutex.map(|mutex| mutex - at.min(mutex)) {
                Some(SM_ACCESS) => ArgumentRole::Access,
                Some(SM_EXPOSURE) => ArgumentRole::Exposure,
                Some(_) => return None,
                None if is_access => ArgumentRole::Access,
                // An epoch that is complete leaves its group there.
                None if is_of_sync => return None,
                None => ArgumentRole::Exposure,
            };
            Some(GroupEpoch {
                role,
                window: module.context,
                partners: self.ranks_of_group(module.piece.word(at))?,
            })
        });
        epochs.collect()
    }

    /// The addresses of all windows; `None` if the list is not found.
    fn windows(&self, list: u64) -> Option<Vec<u64>> {
        let all = self.objects(list, WINDOW)?;
        // The first entry of the list is `MPI_WIN_NULL`.
        Some(all.into_iter().skip(1).collect())
    }

    /// The addresses of the communicators in the library's list of them; empty if the list is not found.
    pub fn communicators(&self, list: u64) -> Vec<u64> {
        self.objects(list, COMMUNICATOR).unwrap_or_default()
    }

    /// The addresses of the objects in a list of the library, all of one class; `None` if the list is not found.
    fn objects(&self, list: u64, class: &str) -> Option<Vec<u64>> {
        let head = Piece::read(self.memory, list, LIST_BYTES)?;
        let bytes = WINDOWS_MAX as usize * WORD;
        let read = |address| Piece::read_some(self.memory, address, bytes);
        let mut lists = head.words().filter_map(read);
        let all = lists.find(|all| self.is_of(all.word(0), class))?;
        let all = all
            .words()
            .take_while(|one| *one == 0 || self.is_of(*one, class));
        Some(all.filter(|one| *one != 0).collect())
    }

    fn module(&self, window: u64) -> Option<WindowModule> {
        let head = Piece::read_some(self.memory, window, WINDOW_BYTES)?;
        head.words().find_map(|address| {
            let piece = Piece::read_some(self.memory, address, MODULE_BYTES)?;
            if !begins_with_functions(&piece) {
                return None;
            }
            let known = |it| self.context(it).zip(self.members(it));
            let known = piece.words().find_map(known);
            match known? {
                (context, Members::Of(ranks)) => Some(WindowModule {
                    address,
                    piece,
                    context,
                    ranks,
                }),
                _ => None,
            }
        })
    }

    /// Ranks with a lock for which the module `pt2pt` or `rdma` keeps an object.
    fn kept<'b>(&'b self, module: &'b WindowModule) -> impl Iterator<Item = i32> + 'b {
        let places = (0..module.piece.0.len() / WORD).map(|at| at * WORD);
        let kept = places.flat_map(move |at| {
            let word = module.piece.word(at);
            // Locks are in a hash table, in a list with an entry for each rank, or in the module itself.
            let mut kept = match self.class_of_class(word).as_deref() {
                Some(TABLE) => entries(self.memory, &module.piece, at).unwrap_or_default(),
                Some(_) => vec![module.address + at as u64],
                None => Vec::new(),
            };
            let count = module.ranks.len();
            let is_list = count <= LISTED_MAX && is_address(word);
            let list = is_list.then(|| words(self.memory, word, count)).flatten();
            kept.extend(list.into_iter().flatten());
            kept
        });
        kept.filter_map(move |address| self.lock(module, address))
    }

    /// The locked rank of a lock object; negative if all ranks are locked. `None` if the address has no object of a
    /// granted lock.
    fn lock(&self, module: &WindowModule, address: u64) -> Option<i32> {
        let class = self.class_at(Some(address).filter(|it| is_address(*it))?)?;
        if class != OF_PT2PT && class != OF_RDMA {
            return None;
        }
        let piece = Piece::read_some(self.memory, address, LOCK_BYTES)?;
        let at = piece.words().position(|word| word == module.address)? * WORD;
        let is_there = class == OF_RDMA
            || piece.number(at + LOCK_EXPECTED) == 0 && piece.0.get(at + LOCK_ACTIVE) == Some(&1);
        let is_lock = piece.number(at + LOCK_TYPE) == IS_LOCK;
        (is_lock && is_there).then(|| piece.number(at + LOCK_TARGET))
    }

    /// Ranks whose locks the module `sm` records as held.
    fn shared<'b>(&'b self, module: &'b WindowModule) -> impl Iterator<Item = i32> + 'b {
        let count = module.ranks.len().min(RANKS_MAX);
        let lists = self.mutexes_of_sm(module).filter_map(move |at| {
            let list = Piece::read(self.memory, module.piece.word(at - SM_LOCKS), 4 * count)?;
            let list: Vec<i32> = (0..count).map(|rank| list.number(4 * rank)).collect();
            let is_list = list.iter().all(|it| (0..=SM_HELD[1]).contains(it));
            is_list.then_some(list)
        });
        let held = lists.flat_map(|list| (0..).zip(list));
        held.filter(|(_, state)| SM_HELD.contains(state))
            .map(|(rank, _)| rank)
    }

    /// The offsets in a module of mutexes that have the fields of the module `sm` in front of them.
    fn mutexes_of_sm<'b>(&'b self, module: &'b WindowModule) -> impl Iterator<Item = usize> + 'b {
        let places = (SM_ACCESS..module.piece.0.len()).step_by(WORD);
        places.filter(move |at| {
            let word = |before: usize| module.piece.word(at - before);
            let [first, own, common] = [SM_FIRST, SM_OWN, SM_SHARED].map(word);
            let near = first.checked_sub(common);
            let is_near = near.is_some_and(|near| (1..SM_SHARED_BYTES).contains(&near));
            let is_sm = is_near && common != 0 && own >= first;
            is_sm && self.class_of_class(word(0)).as_deref() == Some(MUTEX)
        })
    }

    fn is_of(&self, address: u64, class: &str) -> bool {
        self.class_at(address).as_deref() == Some(class)
    }

    /// The class name of the object at an address; `None` if it cannot be read.
    fn class_at(&self, address: u64) -> Option<String> {
        self.class_of(&Piece::read(self.memory, address, WORD)?)
    }

    /// The name of a class; `None` if it cannot be read. A class has the form of the start of an object.
    fn class_of_class(&self, class: u64) -> Option<String> {
        self.class_of(&Piece(class.to_ne_bytes().to_vec()))
    }
}

/// The addresses in the entries of a table, which is at this offset of a module; `None` if no table is there.
fn entries(memory: &dyn Memory, module: &Piece, at: usize) -> Option<Vec<u64>> {
    let room = usize::try_from(module.word(at + TABLE_ROOM)).ok()?;
    let room = Some(room).filter(|room| *room <= ENTRIES_MAX)?;
    let entries = module.word(at + TABLE_ENTRIES);
    let entries = Piece::read(memory, entries, room * ENTRY_BYTES)?;
    Some(entries.words().filter(|word| *word != 0).collect())
}

/// True if the words [`FUNCTIONS`] of a module are function pointers that are all in one library.
fn begins_with_functions(module: &Piece) -> bool {
    let functions = FUNCTIONS.map(|at| module.word(at * WORD));
    let (Some(least), Some(most)) = (functions.clone().min(), functions.clone().max()) else {
        return false;
    };
    least != 0 && least != most && most - least < LIBRARY_BYTES
}
