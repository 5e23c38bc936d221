//! Runs the readers of a process's memory on arbitrary contents.

use std::cell::Cell;

use crate::memory::Memory;
use crate::mpi::{Mpich, OpenMpi, OwnObjects};
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
    let objects = OwnObjects {
        world: BEGIN,
        alone: BEGIN + 64,
        empty: Some(BEGIN + 128),
    };
    let held = memory();
    let _ = OpenMpi::world(&held, objects);
    if let Some(known) = OpenMpi::learn(&held, objects) {
        for at in (BEGIN..BEGIN + 256).step_by(64) {
            let _ = (known.size(), known.members(at), known.context(at));
            let _ = (known.message(at), known.collective(at));
            let _ = known.is_waited_for(at, BEGIN..BEGIN + 256);
        }
    }
    let held = memory();
    let variables = [BEGIN..BEGIN + 4096, BEGIN + 512..BEGIN + 600];
    let _ = Mpich::world(&held, &variables);
    if let Some(known) = Mpich::learn(&held, &variables) {
        for handle in [0x4400_0000, 0x8400_0001, 0x9c00_0000, 7] {
            let _ = (known.size(), known.members(handle), known.context(handle));
        }
    }
}
