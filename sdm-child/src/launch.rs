//! Has gdb run a program as it would run without gdb.
//!
//! gdb passes its command line to `/bin/sh -c "exec WRAPPER PROGRAM ARGS"`, which takes any byte in an argument.
//! Without a shell gdb 13 splits at blanks and knows no quotes. The wrapper is SDM's own executable as exec wrapper
//! (`starter`). It undoes the changes of gdb and the shell to the environment, sets signals, and gives the program
//! its own streams. It opens pipes by `O_PATH` descriptors that gdb inherits. So gdb holds neither end of a pipe, and
//! each end closes when the program closes it.
//!
//! The pty is not set by gdb's `inferior-tty`, which makes it the program's controlling terminal. When the server
//! dies that terminal hangs up, and the kernel sends SIGCONT, which discards the SIGSTOP by which gdb stops the
//! program's other threads. gdb would then wait for them for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use sdm_check::LIBRARY_VARIABLE;
use sdm_debug::command::StartSpec;
use sdm_debug::{Failure, FailureCode};
use sdm_system::files::search_path;
use sdm_text::shell_word_of_bytes;

use super::SignalState;
use super::memcheck;
use super::preload::is_changed_by_gdb;
use super::starter_args::{Orders, Source};

/// Maximum length of the shell's command line, in bytes. The kernel accepts 128 KiB in one argument.
pub const COMMAND_LINE_BYTES_MAX: usize = 120 << 10;

/// The program that finds the command of a site's wrapper on `PATH` and executes it: gdb starts a program, not a
/// script.
const ENV: &str = "/usr/bin/env";

/// Variables that gdb, the shell, or SDM for gdb's sake changes before the program gets them.
const TOUCHED: [&str; 10] = [
    "LC_ALL",
    "SHELL",
    "LINES",
    "COLUMNS",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "PYTHONHOME",
    "PYTHONPATH",
];

/// The settings by which gdb runs one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Value of `set exec-wrapper`.
    pub wrapper: Vec<u8>,
    /// Value of `set args`.
    pub args: Vec<u8>,
    /// The program that is finally executed, if `program` is a wrapper; otherwise `None`.
    pub wrapped: Option<PathBuf>,
    /// The command line after the `|` of `target remote |`, if another program such as Valgrind runs the program;
    /// otherwise `None`.
    pub reached_by: Option<Vec<u8>>,
}

/// The parts of a program's environment that its exec wrapper sets up.
pub struct Outfit {
    /// The exec wrapper: a program that calls [`super::exec_program`].
    pub starter: PathBuf,
    /// The sources of standard input, output and errors.
    pub streams: [Source; 3],
    /// Descriptors that the program must not inherit, besides those of its streams.
    pub closed: Vec<RawFd>,
}

/// The environment variable that names the libraries to preload into a program.
pub(crate) const PRELOAD: &str = "LD_PRELOAD";

/// Environment variables by name.
pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// The environment of the program: `base` with the changes of `spec`.
pub(crate) fn program_environment(base: Environment, spec: &StartSpec) -> Environment {
    let mut environment = base;
    if let Some(directory) = &spec.directory
        && environment.contains_key(&OsString::from("PWD"))
    {
        let current = std::env::current_dir().unwrap_or_default();
        let path = current.join(OsString::from_vec(directory.clone()));
        environment.insert("PWD".into(), path.into());
    }
    let text = |bytes: &Vec<u8>| OsString::from_vec(bytes.clone());
    let changes = spec.environment.iter();
    let changes = changes.map(|(name, value)| (text(name), value.as_ref().map(text)));
    change_environment(&mut environment, changes);
    environment
}

/// Sets variables, and removes those without a value.
pub(crate) fn change_environment(
    environment: &mut Environment,
    changes: impl IntoIterator<Item = (OsString, Option<OsString>)>,
) {
    for (name, value) in changes {
        match value {
            Some(value) => environment.insert(name, value),
            None => environment.remove(&name),
        };
    }
}

impl Launch {
    /// Plans the start of `program` by gdb.
    pub fn new(
        program: PathBuf,
        spec: &StartSpec,
        environment: &Environment,
        signals: &SignalState,
        outfit: Outfit,
    ) -> Result<Self, Failure> {
        let path = outfit.starter.clone();
        let orders = orders(spec, environment, signals, outfit)?;
        let starter = path.into_os_string().into_vec();
        let words = std::iter::once(starter).chain(orders.words());
        let words: Vec<Vec<u8>> = words.map(|word| shell_word_of_bytes(&word)).collect();
        let wrapper = words.join(&b' ');
        let mut args = Vec::new();
        let (program, wrapped) = match spec.wrapper.first() {
            None => (program, None),
            Some(first) if first == memcheck::WORD => (program, None),
            Some(first) if first.contains(&b'=') || spec.wrapper.concat().contains(&0) => {
                let text = "--wrapper: the name of the wrapper contains `=`, or one of the words contains a zero byte";
                return Err(Failure::new(FailureCode::BadCommand, text));
            }
            Some(_) => {
                args.extend_from_slice(b"-- ");
                let site = spec.wrapper.iter().map(Vec::as_slice);
                for word in site.chain([program.as_os_str().as_bytes()]) {
                    args.extend_from_slice(&shell_word_of_bytes(word));
                    args.push(b' ');
                }
                (PathBuf::from(ENV), Some(program))
            }
        };
        for arg in &spec.args {
            args.extend_from_slice(&shell_word_of_bytes(arg));
            args.push(b' ');
        }
        args.pop();
        let reached_by = match spec.wrapper.first() {
            Some(first) if first == memcheck::WORD => {
                Some(memcheck::line(&wrapper, &program, &args)?)
            }
            _ => None,
        };
        let bytes = wrapper.len() + args.len() + program.as_os_str().len();
        if bytes > COMMAND_LINE_BYTES_MAX {
            let text = format!(
                "arguments and environment changes have {bytes} bytes, the maximum is {COMMAND_LINE_BYTES_MAX}"
            );
            return Err(Failure::new(FailureCode::Limit, text));
        }
        Ok(Self {
            program,
            wrapper,
            args,
            wrapped,
            reached_by,
        })
    }
}

/// The arguments of a program's exec wrapper.
///
/// # Errors
/// A variable's name or value is invalid, or the program's arguments are.
pub(crate) fn orders(
    spec: &StartSpec,
    environment: &Environment,
    signals: &SignalState,
    outfit: Outfit,
) -> Result<Orders, Failure> {
    let plain = |name: &[u8]| !name.is_empty() && !name.contains(&0) && !name.contains(&b'=');
    for (name, value) in &spec.environment {
        if !plain(name) || value.as_ref().is_some_and(|value| value.contains(&0)) {
            let name = String::from_utf8_lossy(name);
            let text = format!("environment variable {name:?}: invalid name or value");
            return Err(Failure::new(FailureCode::BadCommand, text));
        }
    }
    if spec.args.iter().any(|arg| arg.contains(&0)) {
        let text = "an argument contains a zero byte, which cannot be passed to a program";
        return Err(Failure::new(FailureCode::BadCommand, text));
    }
    Ok(Orders {
        streams: outfit.streams.map(Some),
        closed: outfit.closed,
        signals: signals.clone(),
        changes: differences(spec, environment),
        ..Orders::default()
    })
}

/// Variables to set or unset for the program, by name: those of the request, and those that gdb, the shell or SDM
/// change before the program starts.
fn differences(spec: &StartSpec, environment: &Environment) -> Vec<(OsString, Option<OsString>)> {
    let touched = TOUCHED.iter().map(OsString::from);
    let changed = spec
        .environment
        .iter()
        .map(|(name, _)| OsString::from_vec(name.clone()));
    // A shell drops variables whose names it does not accept, for example bash's exported functions.
    let dropped =
        |name: &OsString, value| !is_shell_name(name.as_bytes()) || is_changed_by_gdb(name, value);
    let dropped = environment
        .iter()
        .filter(|(name, value)| dropped(name, value))
        .map(|(name, _)| name.clone());
    // The value of this variable then differs between gdb and the program.
    let is_checked = environment.contains_key(&OsString::from(LIBRARY_VARIABLE));
    let checked = is_checked.then(|| OsString::from(PRELOAD));
    // gdb gets the trusted folders only.
    let path = OsString::from("PATH");
    let is_restricted = environment.get(&path) != Some(&search_path());
    let restricted = is_restricted.then_some(path);
    let names = touched.chain(changed).chain(dropped);
    let names = names.chain(checked).chain(restricted);
    let names: BTreeSet<_> = names.collect();
    let with_value = names.into_iter().map(|name| {
        let value = environment.get(&name).cloned();
        (name, value)
    });
    with_value.collect()
}

fn is_shell_name(name: &[u8]) -> bool {
    name.first().is_some_and(|byte| !byte.is_ascii_digit())
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapper_arguments_carry_environment_and_signals() {
        let spec = StartSpec {
            args: vec![b"a b".to_vec(), Vec::new()],
            environment: vec![
                (b"GONE".to_vec(), None),
                (b"NEW".to_vec(), Some(b"a b".to_vec())),
            ],
            ..StartSpec::default()
        };
        let base: Environment = [
            ("SHELL", "/bin/zsh"),
            ("PWD", "/x"),
            ("PATH", ":/bin"),
            ("GONE", "1"),
            ("f%%", "()"),
        ]
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
        let environment = program_environment(base, &spec);
        let signals = SignalState {
            blocked: vec![10],
            ignored: vec![1, 2],
        };
        let outfit = Outfit {
            starter: "/proc/self/fd/9".into(),
            streams: [
                Source::Path("/dev/null".into()),
                Source::Path("/dev/pts/3".into()),
                Source::Pipe(8),
            ],
            closed: vec![9],
        };
        let launch = Launch::new("/bin/x".into(), &spec, &environment, &signals, outfit).unwrap();
        assert_eq!(
            String::from_utf8(launch.wrapper).unwrap(),
            "/proc/self/fd/9 --exec-program -0 /dev/null -1 /dev/pts/3 -2 pipe:8 -x 9 -i 1,2 -b 10 \
             -u COLUMNS -u GONE -u LC_ALL -u LINES -e 'NEW=a b' -u OLDPWD -e PATH=:/bin -e PWD=/x -u PYTHONHOME -u PYTHONPATH \
             -e SHELL=/bin/zsh -u SHLVL -u _ -e 'f%%=()' --"
        );
        assert_eq!(launch.args, b"'a b' ''");
    }
}
