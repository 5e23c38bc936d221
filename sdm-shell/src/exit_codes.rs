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
    use std::collections::BTreeMap;

    use super::*;
    use crate::shell::StacksCode;

    /// The cell with the codes of these commands.
    fn codes_of(commands: &str) -> &'static str {
        let document = include_str!("../../docs/reference.md").lines();
        let mut cells = document.filter_map(|row| row.strip_prefix("| ")?.split_once(" | "));
        let row = cells.find(|(first, _)| *first == commands);
        row.expect("a row of the commands").1
    }

    #[test]
    fn codes_of_stacks_and_profiles_are_documented() {
        let (agree, differ) = (StacksCode::Agree as u8, StacksCode::Differ as u8);
        let (error, interrupted) = (StacksCode::Error as u8, StacksCode::Interrupted as u8);
        assert_eq!(interrupted, GIVEN_UP);
        let stacks = format!(
            "{agree} all stacks are in the same place, {differ} some differ, {error} some could not be read; `stacks` \
             {interrupted} after Ctrl-C |"
        );
        assert_eq!(codes_of("`stacks`, `core`"), stacks);
        let profile = format!(
            "{agree} sampled, {error} an error, {interrupted} after Ctrl-C before the first sample |"
        );
        assert_eq!(codes_of("`profile`"), profile);
    }

    #[test]
    fn every_exit_code_is_in_the_documents_table() {
        let document = include_str!("../../docs/reference.md");
        let (_, chapter) = document.split_once("\n## Exit codes\n").expect("a chapter");
        let (table, _) = chapter.split_once("\n\nA script").expect("its end");
        let mut documented: BTreeMap<u8, &str> = BTreeMap::new();
        let is_numbered =
            |row: &&str| row.starts_with("| ") && row[2..].starts_with(char::is_numeric);
        for row in table.lines().filter(is_numbered) {
            let cells: Vec<&str> = row
                .split(" | ")
                .map(|it| it.trim_matches([' ', '|']))
                .collect();
            // A row with several codes has the meaning of each.
            let codes: Vec<&str> = cells[0].split(", ").collect();
            let meanings = match codes.len() {
                1 => vec![cells.get(1).copied().unwrap_or_default()],
                _ => cells[1].split("; ").collect(),
            };
            assert_eq!(codes.len(), meanings.len(), "{row}");
            let numbered = codes.into_iter().zip(meanings);
            documented.extend(numbered.filter_map(|(code, it)| Some((code.parse().ok()?, it))));
        }
        let own: [(u8, &str); 13] = [
            (0, "all ranks ended with exit code 0"),
            (UNCHECKED, "has checked nothing"),
            (ISOLATED, "MPI did not find the job"),
            (MISUSED, "found errors in the use of MPI"),
            (TIMED_OUT, "a time-out, a hang"),
            (ABORTED, "an abort, an exit before `MPI_Finalize`"),
            (LOST, "ranks were lost"),
            (COMMAND_FAILED, "a command failed"),
            (NOT_STARTED, "could not be started"),
            (UNWRITTEN, "could not be written"),
            (NOT_RUNNABLE, "cannot be executed"),
            (NOT_FOUND, "does not exist"),
            (UNREAD, "the reader of the output of `sdm` has ended"),
        ];
        for (code, meaning) in own {
            let row = documented.remove(&code);
            assert!(
                row.is_some_and(|row| row.contains(meaning)),
                "{code}: {row:?}"
            );
        }
        assert!(documented.is_empty(), "{documented:?}");
        assert!(table.contains("\n| 128 plus the signal |"), "{table}");
        assert_eq!((SIGNALLED, GIVEN_UP), (128, 130));
    }
}
