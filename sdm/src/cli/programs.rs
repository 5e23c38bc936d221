//! Splits a command line into the programs of one job, as in `./a : -n 3 ./b`.

use sdm_text::printable_name;
use std::ffi::OsString;

use super::{ProgramsError, TASKS_MAX};

/// The options of mpirun, mpiexec and srun for the number of processes.
const NUMBER_OPTIONS: &[&str] = &["-n", "-np", "--n", "--np", "--processes", "--ntasks"];

/// One program of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPart {
    /// Number of processes that run it, 1 or more.
    pub count: u32,
    /// Options for the launcher that apply to this program only, unchanged.
    pub options: Vec<OsString>,
    /// The program and its arguments.
    pub words: Vec<OsString>,
}

/// Splits the words after `--` at each colon before a number of processes. Any other colon is an argument.
pub(super) fn split(count: u32, words: &[OsString]) -> Result<Vec<ProgramPart>, ProgramsError> {
    let begins = |at: &usize| {
        let next = words.get(at + 1).and_then(|word| word.to_str());
        words[*at] == ":" && next.is_some_and(|next| NUMBER_OPTIONS.contains(&next))
    };
    let mut ends: Vec<usize> = (0..words.len()).filter(begins).collect();
    ends.push(words.len());
    let mut parts = vec![ProgramPart {
        count,
        options: Vec::new(),
        words: words[..ends[0]].to_vec(),
    }];
    for pair in ends.windows(2) {
        parts.push(further(&words[pair[0] + 2..pair[1]])?);
    }
    let total: u64 = parts.iter().map(|part| u64::from(part.count)).sum();
    if total > u64::from(TASKS_MAX) {
        return Err(ProgramsError::TooMany {
            count: total,
            max: TASKS_MAX,
        });
    }
    if parts[0].words.is_empty() {
        return Err(ProgramsError::NoFirst);
    }
    Ok(parts)
}

/// `N [OPTIONS --] PROGRAM ARGS`.
fn further(words: &[OsString]) -> Result<ProgramPart, ProgramsError> {
    let number = words.first().map(|word| word.to_string_lossy());
    let count = number.as_ref().and_then(|number| number.parse().ok());
    let Some(count) = count.filter(|count| (1..=TASKS_MAX).contains(count)) else {
        let number = number.unwrap_or_default();
        return Err(ProgramsError::NoNumber(number.into_owned()));
    };
    let rest = &words[1..];
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let (options, program) = match rest.first() {
        Some(first) if is_option(first) => {
            let Some(end) = rest.iter().position(|word| word == "--") else {
                return Err(ProgramsError::NoEnd {
                    count,
                    option: printable_name(first),
                });
            };
            (&rest[..end], &rest[end + 1..])
        }
        _ => (&rest[..0], rest),
    };
    if program.is_empty() {
        return Err(ProgramsError::NoProgram(count));
    }
    Ok(ProgramPart {
        count,
        options: options.to_vec(),
        words: program.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<String, ProgramsError> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let text = |words: &[OsString]| words.join(" ".as_ref()).into_string().unwrap();
        let part = |part: &ProgramPart| {
            format!(
                "{}|{}|{}",
                part.count,
                text(&part.options),
                text(&part.words)
            )
        };
        let parts = split(2, &words)?;
        Ok(parts.iter().map(part).collect::<Vec<_>>().join(" ; "))
    }

    #[test]
    fn colon_separates_programs() {
        for (line, expect) in [
            ("./a x", "2||./a x"),
            ("./a x : -n 3 ./b y", "2||./a x ; 3||./b y"),
            (
                "./a : -np 1 ./b : -n 4 ./c -n 7",
                "2||./a ; 1||./b ; 4||./c -n 7",
            ),
            (
                "./a : -n 3 --host h -- ./b -- y",
                "2||./a ; 3|--host h|./b -- y",
            ),
            ("./a : -n 3 -- ./b", "2||./a ; 3||./b"),
            ("./a : ./b", "2||./a : ./b"),
        ] {
            assert_eq!(read(line).as_deref(), Ok(expect), "{line}");
        }
    }

    #[test]
    fn missing_part_of_a_program_is_named() {
        for (line, part) in [
            ("./a : -n", "expected a number"),
            ("./a : -n x ./b", "`: -n x`"),
            ("./a : -n 0 ./b", "`: -n 0`"),
            ("./a : -n 3", "expected a program"),
            ("./a : -n 3 --host h ./b", "expected `--`"),
            ("./a : -n 3 --host h --", "expected a program"),
            (": -n 3 ./b", "before the first colon"),
            ("./a : -n 1048576 ./b", "the maximum is 1048576"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
