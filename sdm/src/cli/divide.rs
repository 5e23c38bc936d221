//! Finds the boundary between the options of `sdm` and the command line of the program, where the user has given no
//! `--`.

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgAction, Command};

/// The command line with `--` in front of the program's name, as `run -n 4 -- ./app -x` for `run -n 4 ./app -x`. The
/// name is the first word that is neither an option nor an option's value, as for mpirun, mpiexec and srun. Everything
/// behind it is the program's.
///
/// In front of the name, `-np` is written as `-n`. No `--` is added where one precedes the name, and where the command
/// takes no program in this way. None is added either where an option is not known, which is for clap to say.
#[must_use]
pub fn divided(definition: &Command, mut args: Vec<OsString>) -> Vec<OsString> {
    let verb = args
        .get(1)
        .and_then(|word| definition.find_subcommand(word));
    let Some(mut verb) = verb.cloned() else {
        return args;
    };
    // Not the whole definition: to build that takes longer than everything else of a start.
    verb.build();
    let mut command = &verb;
    let mut at = 2;
    while let Some(verb) = args.get(at).and_then(|word| command.find_subcommand(word)) {
        command = verb;
        at += 1;
    }
    rename(command, &mut args, at);
    let mut positionals = command.get_positionals();
    let takes_program = positionals.next().is_some_and(Arg::is_last_set);
    if takes_program
        && positionals.next().is_none()
        && let Some(at) = program(command, &args, at)
    {
        args.insert(at, "--".into());
    }
    args
}

/// The name of mpirun and mpiexec for the number of processes, with one dash; clap knows the names with two.
const NUMBER: &str = "-np";

/// Writes `-np 4` and `-np=4` as `-n` is written, in words from `at` on that are not the program's.
fn rename(command: &Command, args: &mut [OsString], mut at: usize) {
    if !command
        .get_arguments()
        .any(|arg| arg.get_short() == Some('n') && arg.get_long() == Some("processes"))
    {
        return;
    }
    while let Some(word) = args.get(at) {
        let text = word.to_string_lossy();
        let renamed = match text.strip_prefix(NUMBER) {
            Some("") => Some("-n".to_owned()),
            Some(rest) => rest.strip_prefix('=').map(|count| format!("-n{count}")),
            None => None,
        };
        if let Some(renamed) = renamed {
            args[at] = renamed.into();
        }
        at += match values(command, &args[at]) {
            Read::Option { values } => 1 + values,
            Read::Program | Read::Unknown => return,
        };
    }
}

/// Index of the program's name in the words from `at` on. None if there is none, or if an option is
/// unknown.
fn program(command: &Command, args: &[OsString], mut at: usize) -> Option<usize> {
    while let Some(word) = args.get(at).filter(|word| *word != "--") {
        at += match values(command, word) {
            Read::Program => return Some(at),
            Read::Unknown => return None,
            Read::Option { values } => 1 + values,
        };
    }
    None
}

/// The kind of a word of a command line.
enum Read {
    /// An option, with the number of following words that are its values.
    Option { values: usize },
    /// An option that the command does not have.
    Unknown,
    /// A word that is not an option.
    Program,
}

fn values(command: &Command, word: &OsStr) -> Read {
    let text = word.to_string_lossy();
    let behind = |arg: &Arg| match arg.get_action() {
        ArgAction::Set | ArgAction::Append if !arg.is_require_equals_set() => {
            arg.get_num_args().map_or(1, |range| range.min_values())
        }
        _ => 0,
    };
    if let Some(long) = text.strip_prefix("--") {
        let (name, has_value) = match long.split_once('=') {
            Some((name, _)) => (name, true),
            None => (long, false),
        };
        let is_called = |arg: &&Arg| {
            let others = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(name) || others.contains(&name)
        };
        return match command.get_arguments().find(is_called) {
            Some(_) if has_value => Read::Option { values: 0 },
            Some(arg) => Read::Option {
                values: behind(arg),
            },
            None => Read::Unknown,
        };
    }
    let Some(shorts) = text.strip_prefix('-').filter(|shorts| !shorts.is_empty()) else {
        return Read::Program;
    };
    for (index, short) in shorts.char_indices() {
        let is_called = |arg: &&Arg| arg.get_short() == Some(short);
        let Some(arg) = command.get_arguments().find(is_called) else {
            return Read::Unknown;
        };
        let values = behind(arg);
        if values > 0 {
            // The rest of the word is its value.
            let is_last = index + short.len_utf8() == shorts.len();
            return Read::Option {
                values: if is_last { values } else { 0 },
            };
        }
    }
    Read::Option { values: 0 }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn program_is_the_first_word_that_is_no_option() {
        for (line, expect) in [
            (
                "sdm run -n 4 ./prog -x --flag",
                "sdm run -n 4 -- ./prog -x --flag",
            ),
            ("sdm run ./prog -n 3 -- y", "sdm run -- ./prog -n 3 -- y"),
            ("sdm run -n4 -ic bt ./prog", "sdm run -n4 -ic bt -- ./prog"),
            (
                "sdm run --keep --launcher=local --json ./prog",
                "sdm run --keep --launcher=local --json -- ./prog",
            ),
            (
                "sdm run --launcher-option --host -c ./x ./a : -n 3 ./b",
                "sdm run --launcher-option --host -c ./x -- ./a : -n 3 ./b",
            ),
            (
                "sdm submit -n 2 ./prog --wait",
                "sdm submit -n 2 -- ./prog --wait",
            ),
            ("sdm run -np 4 ./prog -np 3", "sdm run -n 4 -- ./prog -np 3"),
            (
                "sdm run --json -np=4 -- ./prog -np",
                "sdm run --json -n4 -- ./prog -np",
            ),
            ("sdm run -c -np ./prog", "sdm run -c -np -- ./prog"),
            ("sdm submit -np 4 ./prog", "sdm submit -n 4 -- ./prog"),
            ("sdm stacks -np 4", "sdm stacks -np 4"),
            // As they are.
            ("sdm run -n 4 -- ./prog", "sdm run -n 4 -- ./prog"),
            ("sdm run -n 4 --launchre x y", "sdm run -n 4 --launchre x y"),
            ("sdm run -n 4", "sdm run -n 4"),
            ("sdm run -n", "sdm run -n"),
            ("sdm run --help", "sdm run --help"),
            ("sdm attach 4711 -c bt", "sdm attach 4711 -c bt"),
            ("sdm keeper name -- run x", "sdm keeper name -- run x"),
            ("sdm frobnicate x", "sdm frobnicate x"),
            ("sdm", "sdm"),
        ] {
            let words = line.split(' ').map(OsString::from).collect();
            let read = divided(&Cli::command(), words).join(" ".as_ref());
            assert_eq!(read, expect, "{line}");
        }
    }
}
