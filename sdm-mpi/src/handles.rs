//! Constants of MPI's, by name and as the two libraries have them.

/// The communicator of all ranks.
pub const COMM_WORLD: &str = "MPI_COMM_WORLD";
/// The communicator of each rank alone.
pub const COMM_SELF: &str = "MPI_COMM_SELF";
/// A receive from anybody.
pub const ANY_SOURCE: &str = "MPI_ANY_SOURCE";
/// A receive under any tag.
pub const ANY_TAG: &str = "MPI_ANY_TAG";
/// In the place of a tag's expression: that of a message that has come, and for which nothing was ready.
pub const UNEXPECTED: &str = "unexpected";
/// What both libraries have for any tag.
pub const ANY_TAG_NUMBER: i32 = -1;
/// MPICH's handle of the communicator of all ranks.
pub const MPICH_WORLD: i32 = 0x4400_0000;
/// That of the communicator of each rank alone.
pub const MPICH_SELF: u32 = 0x4400_0001;
/// The variable that it is in Open MPI.
pub const OPEN_MPI_WORLD: &str = "ompi_mpi_comm_world";

/// True for a communicator's value that is the one of all ranks: its name, or what a library has for it.
#[must_use]
pub fn is_world(value: &str) -> bool {
    value == COMM_WORLD || value.parse() == Ok(MPICH_WORLD) || value.contains(OPEN_MPI_WORLD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_communicator_of_all_is_known_in_both_libraries() {
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
