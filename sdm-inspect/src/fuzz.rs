//! Runs the readers of a process's memory on arbitrary contents.

use std::cell::Cell;
use std::ops::Range;

use crate::memory::Memory;
use crate::mpi::{Mpich, OpenMpi, PredefinedObjects, arrived_of_collectives, communicator_of_file};
use crate::python;

/// Number of reads after which the memory cannot be read any more, as if the process had ended.
const READS_MAX: u32 = 20_000;
/// Address of the first byte of the process's memory.
const BEGIN: u64 = 1 << 20;

/// Memory in which these bytes repeat without end. Every pointer leads into them, so that walks go far.
struct Mirror<'a> {
    bytes: &'a [u8],
    left: Cell<u32>,
}

impl Memory for Mirror<'_> {
    fn read(&self, address: u64, to: &mut [u8]) -> Option<()> {
        let length = u64::try_from(self.bytes.len()).ok()?;
        self.left.set(self.left.get().checked_sub(1)?);
        // The highest addresses are not mapped.
        let mut at = address
            .checked_add(to.len() as u64)?
            .wrapping_sub(BEGIN + to.len() as u64);
        for byte in to {
            *byte = *self
                .bytes
                .get(usize::try_from(at.checked_rem(length)?).ok()?)?;
            at = at.wrapping_add(1);
        }
        Some(())
    }
}

/// Feeds arbitrary memory to the readers of the structures of CPython, Open MPI and MPICH. Checks that none panics
/// and that each ends.
pub fn fuzz_walkers(bytes: &[u8]) {
    let memory = || Mirror {
        bytes,
        left: Cell::new(READS_MAX),
    };
    let runtime = python::Runtime {
        address: BEGIN,
        version: Some(BEGIN + 8),
    };
    let _ = python::threads(&memory(), runtime);
    let _ = python::TorchArguments::read(&memory(), runtime, BEGIN + 300);
    let _ = python::TorchArguments::below(&memory(), runtime, BEGIN + 300);
    let objects = PredefinedObjects {
        world: BEGIN,
        alone: BEGIN + 64,
        empty: Some(BEGIN + 128),
    };
    let places = (BEGIN..BEGIN + 256).step_by(64);
    walk_open_mpi(&memory(), objects, places.clone());
    let variables = [BEGIN..BEGIN + 4096, BEGIN + 512..BEGIN + 600];
    walk_mpich(&memory(), &variables, places);
}

/// Calls every reader of Open MPI's structures, with each address as that of any object.
pub(crate) fn walk_open_mpi(
    memory: &dyn Memory,
    objects: PredefinedObjects,
    places: impl Iterator<Item = u64>,
) {
    let _ = OpenMpi::world(memory, objects);
    let Some(known) = OpenMpi::learn(memory, objects) else {
        return;
    };
    for at in places {
        let _ = (known.size(), known.members(at), known.context(at));
        let _ = (known.message(at), known.collective(at));
        let _ = (known.ranks_of_group(at), known.communicators(at));
        let _ = (known.unexpected(at, 1), known.arrived(at), known.posted(at));
        let _ = (known.window(at), known.window_locks(at));
        let _ = (known.group_epochs(at), communicator_of_file(&known, at));
        let _ = arrived_of_collectives(&known, at);
        let _ = known.is_waited_for(at, at..at.saturating_add(256));
    }
}

/// Calls every reader of MPICH's structures, with handles of all kinds and with these addresses.
pub(crate) fn walk_mpich(
    memory: &dyn Memory,
    variables: &[Range<u64>],
    places: impl Iterator<Item = u64>,
) {
    let _ = Mpich::world(memory, variables);
    let Some(known) = Mpich::learn(memory, variables) else {
        return;
    };
    let _ = (known.size(), known.has_other_jobs());
    let _ = (known.window_locks(), known.group_epochs());
    for at in places {
        let _ = known.of_file(at);
    }
    let receives = known.receives();
    let _ = receives.as_ref().map(crate::mpi::Receives::arrived);
    let kinds = [1, 2, 8, 0xb].map(|kind: u32| kind << sdm_mpi::MPICH_KIND);
    for kind in kinds {
        for handle in [0x4000_0000, 0x8000_0001, 0xc000_0001].map(|it| it | kind) {
            let _ = (known.members(handle), known.group(handle));
            let context = known.context(handle).unwrap_or_default();
            let _ = known.window(handle);
            if let Some(receives) = &receives {
                let _ = (receives.message(handle), receives.collective(handle));
                let _ = (receives.posted(context), receives.unexpected(context, 1));
                let _ = receives.posted_of_collectives(context);
            }
        }
    }
}
