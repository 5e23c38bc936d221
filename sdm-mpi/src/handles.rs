//! Constants of MPI, by name and by their values in Open MPI and MPICH.

use crate::ArgumentRole;
use crate::symbols::OPEN_MPI_WORLD;

/// The communicator of all ranks.
pub const COMM_WORLD: &str = "MPI_COMM_WORLD";
/// The communicator of each rank alone.
pub const COMM_SELF: &str = "MPI_COMM_SELF";
/// The source of a receive from any rank.
pub const ANY_SOURCE: &str = "MPI_ANY_SOURCE";
/// The rank of a peer that does not exist: sends to it and receives from it do nothing.
pub const PROC_NULL: &str = "MPI_PROC_NULL";
/// The argument by which the root itself is named, in a collective operation on an intercommunicator.
pub const ROOT: &str = "MPI_ROOT";
/// The tag of a receive with any tag.
pub const ANY_TAG: &str = "MPI_ANY_TAG";
/// The expression of a tag argument that stands for an unexpected message: one that has arrived without a
/// matching receive.
pub const UNEXPECTED: &str = "unexpected";
/// The expression of a tag argument that stands for an unexpected message in another communicator than that of the call.
pub const ELSEWHERE: &str = "elsewhere";
/// The expression of a target argument. It says that a collective operation waits for no data.
pub const NOTHING: &str = "nothing";
/// The expression of a tag argument with the tags of the data that a collective operation waits for.
pub const AWAITED_TAGS: &str = "awaited";
/// The expression of a tag argument with the tags of the data of collective operations that has arrived and is not
/// received.
pub const ARRIVED_TAGS: &str = "arrived";
/// The words between the tag of an unexpected message and its sender, where the call names no sender.
pub const FROM_RANK: &str = " from rank ";
/// The expression of a source argument. It says that the receive of a call that also sends is still pending.
pub const PENDING: &str = "pending";
/// The expression of a source argument. It says that the receive of a call that also sends is no longer pending.
pub const RECEIVED: &str = "received";
/// The value of `MPI_ANY_TAG` in both libraries.
pub const ANY_TAG_NUMBER: i32 = -1;
/// MPICH's handle of the communicator of all ranks.
pub const MPICH_WORLD: i32 = 0x4400_0000;
/// MPICH's handle of `MPI_COMM_SELF`.
pub const MPICH_SELF: u32 = 0x4400_0001;
/// MPICH's handle of the null request.
pub const MPICH_NO_REQUEST: u32 = 0x2c00_0000;
/// MPICH's handles of `MPI_ERRORS_ARE_FATAL` and `MPI_ERRORS_ABORT`.
const MPICH_FATAL: [u32; 2] = [0x5400_0000, 0x5400_0003];
/// The lowest bit of the object's kind in a handle of MPICH.
pub const MPICH_KIND: u32 = 26;
/// The number of bits of the kind.
const MPICH_KIND_BITS: u32 = 4;
/// The kind of error handlers in MPICH.
const MPICH_ERROR_HANDLERS: u32 = 5;

/// True for MPICH's handle of an error handler that ends the job, false for that of another one. None for other numbers.
#[must_use]
pub fn is_fatal_handler(handle: u32) -> Option<bool> {
    let place = handle >> (MPICH_KIND + MPICH_KIND_BITS);
    let kind = (handle >> MPICH_KIND) & ((1 << MPICH_KIND_BITS) - 1);
    (place != 0 && kind == MPICH_ERROR_HANDLERS).then(|| MPICH_FATAL.contains(&handle))
}

/// The constant that a negative argument of a blocking call stands for, in either library. As sources, -1 and -2 have
/// opposite meanings in the two libraries: Open MPI's are taken. `None` for other numbers.
#[must_use]
pub fn constant(role: ArgumentRole, number: i64) -> Option<&'static str> {
    use ArgumentRole as R;
    match (role, number) {
        (R::Root, -4 | -3) => Some(ROOT),
        (R::Root | R::Destination, -2 | -1) | (R::Source, -2) => Some(PROC_NULL),
        (R::Source, -1) => Some(ANY_SOURCE),
        (R::Tag | R::ReceiveTag, -1) => Some(ANY_TAG),
        _ => None,
    }
}

/// True for the value of `MPI_COMM_WORLD`: its name, or a library's handle.
#[must_use]
pub fn is_world(value: &str) -> bool {
    value == COMM_WORLD || value.parse() == Ok(MPICH_WORLD) || value.contains(OPEN_MPI_WORLD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_have_names_in_both_libraries() {
        use ArgumentRole as R;
        let roots = [-4, -3, -2, -1, 0].map(|number| constant(R::Root, number));
        let (root, nobody) = (Some("MPI_ROOT"), Some("MPI_PROC_NULL"));
        assert_eq!(roots, [root, root, nobody, nobody, None]);
        assert_eq!(constant(R::Tag, -1), Some(ANY_TAG));
        let sources = [-2, -1, 0].map(|number| constant(R::Source, number));
        assert_eq!(sources, [nobody, Some(ANY_SOURCE), None]);
        assert_eq!(constant(R::Count, -1), None);
    }

    #[test]
    fn error_handlers_of_mpich_have_handles_of_their_kind() {
        let handlers = [0x5400_0000, 0x5400_0001, 0x5400_0003, 0xd400_0007];
        let fatal = handlers.map(is_fatal_handler);
        assert_eq!(fatal, [Some(true), Some(false), Some(true), Some(false)]);
        for other in [0, 0x1400_0000, MPICH_SELF, MPICH_NO_REQUEST, u32::MAX] {
            assert_eq!(is_fatal_handler(other), None, "{other:#x}");
        }
    }

    #[test]
    fn mpi_comm_world_is_recognized_in_both_libraries() {
        for world in [
            "MPI_COMM_WORLD",
            "1140850688",
            "0x55d0 <ompi_mpi_comm_world>",
        ] {
            assert!(is_world(world), "{world}");
        }
        for other in ["1140850689", "row", ""] {
            assert!(!is_world(other), "{other}");
        }
    }
}
