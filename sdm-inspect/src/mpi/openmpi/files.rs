//! The communicators of Open MPI's files.

use super::OpenMpi;
use crate::mpi::{Piece, WORD};

/// Bytes of a file, of `ompio`'s data for it, and of these data after the address of the file.
const FILE_BYTES: usize = 256;
const DATA_BYTES: usize = 2048;
const NEAR_BYTES: usize = 128;

/// The communicator that `ompio` has made for a file; `None` if it is not found. Its data for the file have the address
/// of the file, and soon after it the communicator.
pub fn communicator_of_file(known: &OpenMpi<'_>, file: u64) -> Option<u64> {
    let head = Piece::read(known.memory, file, FILE_BYTES)?;
    head.words().find_map(|data| {
        let data: Vec<u64> = Piece::read_some(known.memory, data, DATA_BYTES)?
            .words()
            .collect();
        let at = data.iter().position(|word| *word == file)?;
        let near = data[at..].iter().take(NEAR_BYTES / WORD);
        let mut near = near.filter(|one| known.members(**one).is_some());
        near.next().copied()
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;

    #[test]
    fn communicator_of_a_file_is_found() {
        const FILE: u64 = 0xd00_0000;
        const DATA: u64 = 0xd10_0000;
        let mut memory = memory();
        memory.set(FILE, 96, &WORLD.to_ne_bytes());
        memory.set(FILE, 104, &DATA.to_ne_bytes());
        let found = |memory: &MemoryPieces| {
            let known = OpenMpi::learn(memory, OBJECTS).unwrap();
            communicator_of_file(&known, FILE)
        };
        memory.set(DATA, 1120, &HALF.to_ne_bytes());
        assert_eq!(found(&memory), None);
        memory.set(DATA, 1080, &FILE.to_ne_bytes());
        assert_eq!(found(&memory), Some(HALF));
    }
}
