//! Exit codes of `sdm` that are not the program's own. The table of docs/reference.md has each.

/// All tasks exited with 0, but the requested check of the use of MPI has checked nothing: no task has begun MPI.
pub const UNCHECKED: u8 = 117;
/// All tasks exited with 0, but the MPI of some of them did not find the job.
pub const ISOLATED: u8 = 118;
/// All tasks exited with 0, but MPI was used wrongly.
pub const MISUSED: u8 = 119;
/// A time-out or a hang.
pub const TIMED_OUT: u8 = 120;
/// An abort, or a task that ended before `MPI_Finalize`.
pub const ABORTED: u8 = 121;
/// Tasks or their gdb are lost.
pub const LOST: u8 = 122;
/// A command failed.
pub const COMMAND_FAILED: u8 = 123;
/// The session, the program or the inspection of a job could not be started.
pub const NOT_STARTED: u8 = 124;
/// Output could not be written. This code takes precedence over the program's exit code.
pub const UNWRITTEN: u8 = 125;
/// The program cannot be run.
pub const NOT_RUNNABLE: u8 = 126;
/// There is no such program.
pub const NOT_FOUND: u8 = 127;
/// The end by a signal, with its number added.
pub const SIGNALLED: u8 = 128;
/// The user has given up by Ctrl-C.
pub const GIVEN_UP: u8 = SIGNALLED + 2;
/// Output is not read any more (`| head`), as of a process killed by SIGPIPE.
pub const UNREAD: u8 = SIGNALLED + 13;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_exit_code_is_in_the_documents_table() {
        let document = include_str!("../../docs/reference.md");
        let (_, chapter) = document.split_once("\n## Exit codes\n").expect("a chapter");
        let (table, _) = chapter.split_once("\n\nA script").expect("its end");
        let cells = table.lines().filter_map(|row| row.split('|').nth(1));
        let codes = cells.flat_map(|cell| cell.split(", ").filter_map(|it| it.trim().parse().ok()));
        let documented: BTreeSet<u8> = codes.filter(|code| *code > 0).collect();
        let own = [
            UNCHECKED,
            ISOLATED,
            MISUSED,
            TIMED_OUT,
            ABORTED,
            LOST,
            COMMAND_FAILED,
            NOT_STARTED,
            UNWRITTEN,
            NOT_RUNNABLE,
            NOT_FOUND,
            UNREAD,
        ];
        assert_eq!(documented, BTreeSet::from(own));
        assert!(table.contains("\n| 128 plus the signal |"), "{table}");
        assert_eq!((SIGNALLED, GIVEN_UP), (128, 130));
    }
}
