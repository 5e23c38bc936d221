//! How gdb is made to run a program as it would run without gdb.
//!
//! gdb hands its command line to `/bin/sh -c "exec WRAPPER PROGRAM ARGS"`, which takes any byte in
//! an argument (without a shell gdb 13 splits at blanks and knows no quotes). The wrapper is
//! `env`: it undoes what gdb and the shell change in the environment and sets signals; the
//! redirections behind the arguments give its streams channels of their own, opened by path (pipes
//! through the `/proc/PID/fd` of a process that lends them), so that neither gdb nor the program
//! holds a descriptor of ours.
//!
//! The pty is not put on with gdb's `inferior-tty`, which makes it the program's controlling
//! terminal: where the server dies it hangs up, and the SIGCONT that the kernel then sends discards
//! the SIGSTOP by which gdb stops the program's other threads. gdb waits for them for ever.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use sdm_debug::command::StartSpec;
use sdm_debug::{Failure, FailureCode};

use super::SignalState;
use super::preload::is_changed_by_gdb;
use crate::stdio::InheritedStreams;

/// The longest command line for the shell, in bytes: the kernel takes 128 KiB in one argument.
pub const COMMAND_LINE_BYTES_MAX: usize = 120 << 10;

/// What changes the environment on the way to the program.
const ENV: &str = "/usr/bin/env";

/// Variables that gdb, the shell or SDM for gdb's sake change on the way to the program.
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

/// What gdb is told in order to run one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// The program, absolute.
    pub(crate) program: PathBuf,
    /// For `set exec-wrapper`.
    pub(crate) wrapper: Vec<u8>,
    /// For `set args`: the arguments and the redirections.
    pub(crate) args: Vec<u8>,
    /// The program that `program`, a wrapper, runs in the end.
    pub(crate) wrapped: Option<PathBuf>,
}

/// Where the program's standard streams go.
pub(crate) enum Redirects<'a> {
    /// To streams of ours.
    Ours {
        /// The pty for standard output.
        tty: &'a Path,
        /// Opened for reading.
        stdin: &'a Path,
        /// Opened for writing.
        stderr: &'a Path,
    },
    /// To the standard streams of this process.
    Inherited {
        /// Those.
        streams: &'a InheritedStreams,
        /// Whether it has the standard input, too.
        reads: bool,
    },
}

impl Redirects<'_> {
    /// As a shell reads them.
    fn words(&self) -> Vec<u8> {
        let (tty, stdin, stderr) = match self {
            Self::Ours { tty, stdin, stderr } => (tty, stdin, stderr),
            Self::Inherited { streams, reads } => return streams.redirects(*reads).into_bytes(),
        };
        let mut words = Vec::new();
        for (arrow, path) in [("<", stdin), (" >", tty), (" 2>", stderr)] {
            words.extend_from_slice(arrow.as_bytes());
            words.extend_from_slice(&shell_quote(path.as_os_str().as_bytes()));
        }
        words
    }
}

/// An environment by name.
pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// The environment of the program: `base`, with the changes of `spec`.
pub(crate) fn program_environment(base: Environment, spec: &StartSpec) -> Environment {
    let mut environment = base;
    if let Some(directory) = &spec.directory
        && environment.contains_key(&OsString::from("PWD"))
    {
        let current = std::env::current_dir().unwrap_or_default();
        let path = current.join(OsString::from_vec(directory.clone()));
        environment.insert("PWD".into(), path.into());
    }
    for (name, value) in &spec.environment {
        let name = OsString::from_vec(name.clone());
        match value {
            Some(value) => environment.insert(name, OsString::from_vec(value.clone())),
            None => environment.remove(&name),
        };
    }
    environment
}

impl Launch {
    /// Plans the start of `program`.
    pub(crate) fn new(
        program: PathBuf,
        spec: &StartSpec,
        environment: &Environment,
        signals: &SignalState,
        redirects: &Redirects<'_>,
    ) -> Result<Self, Failure> {
        let plain = |name: &[u8]| !name.is_empty() && !name.contains(&0) && !name.contains(&b'=');
        for (name, value) in &spec.environment {
            if !plain(name) || value.as_ref().is_some_and(|value| value.contains(&0)) {
                let name = String::from_utf8_lossy(name);
                let text = format!("environment variable {name:?}: no such name or value can be");
                return Err(Failure::new(FailureCode::BadCommand, text));
            }
        }
        if spec.args.iter().any(|arg| arg.contains(&0)) {
            let text = "an argument holds a byte 0, which no program can be given";
            return Err(Failure::new(FailureCode::BadCommand, text));
        }
        let by_shell = spec.wrapper.is_empty() && program.as_os_str().as_bytes().contains(&b'=');
        let wrapper = if by_shell {
            shell_wrapper(spec, environment, signals)
        } else {
            env_wrapper(spec, environment, signals)
        };
        let mut args = Vec::new();
        let (program, wrapper, wrapped) = match spec.wrapper.first() {
            None => (program, wrapper, None),
            Some(first) if first.contains(&b'=') || spec.wrapper.concat().contains(&0) => {
                let text = "no wrapper can be called so";
                return Err(Failure::new(FailureCode::BadCommand, text));
            }
            Some(_) => {
                // What gdb would take for a wrapper of one `exec` is what it runs.
                let words = wrapper.strip_prefix(ENV.as_bytes()).unwrap_or(&wrapper);
                args.extend_from_slice(words);
                let site = spec.wrapper.iter().map(Vec::as_slice);
                for word in site.chain([program.as_os_str().as_bytes()]) {
                    args.push(b' ');
                    args.extend_from_slice(&shell_quote(word));
                }
                args.push(b' ');
                (PathBuf::from(ENV), Vec::new(), Some(program))
            }
        };
        for arg in &spec.args {
            args.extend_from_slice(&shell_quote(arg));
            args.push(b' ');
        }
        args.extend(redirects.words());
        let bytes = wrapper.len() + args.len() + program.as_os_str().len();
        if bytes > COMMAND_LINE_BYTES_MAX {
            let text = format!(
                "arguments and environment changes of {bytes} bytes, at most {COMMAND_LINE_BYTES_MAX}"
            );
            return Err(Failure::new(FailureCode::Limit, text));
        }
        Ok(Self {
            program,
            wrapper,
            args,
            wrapped,
        })
    }
}

/// What must be set (or unset) for the program by name, because it was touched on the way.
fn differences<'a>(
    spec: &'a StartSpec,
    environment: &'a Environment,
) -> BTreeMap<OsString, Option<&'a OsString>> {
    let touched = TOUCHED.iter().map(OsString::from);
    let changed = spec
        .environment
        .iter()
        .map(|(name, _)| OsString::from_vec(name.clone()));
    // A shell drops what it cannot name itself, for example bash's exported functions.
    let dropped =
        |name: &OsString, value| !is_shell_name(name.as_bytes()) || is_changed_by_gdb(name, value);
    let dropped = environment
        .iter()
        .filter(|(name, value)| dropped(name, value))
        .map(|(name, _)| name.clone());
    touched
        .chain(changed)
        .chain(dropped)
        .map(|name| {
            let value = environment.get(&name);
            (name, value)
        })
        .collect()
}

fn is_shell_name(name: &[u8]) -> bool {
    name.first().is_some_and(|byte| !byte.is_ascii_digit())
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn env_wrapper(spec: &StartSpec, environment: &Environment, signals: &SignalState) -> Vec<u8> {
    let mut words: Vec<Vec<u8>> = vec![ENV.as_bytes().to_vec()];
    for (option, list) in [("ignore", &signals.ignored), ("block", &signals.blocked)] {
        if !list.is_empty() {
            let list: Vec<String> = list.iter().map(ToString::to_string).collect();
            words.push(format!("--{option}-signal={}", list.join(",")).into_bytes());
        }
    }
    let differences = differences(spec, environment);
    for (name, _) in differences.iter().filter(|(_, value)| value.is_none()) {
        words.push(b"-u".to_vec());
        words.push(name.as_bytes().to_vec());
    }
    words.push(b"--".to_vec());
    for (name, value) in &differences {
        if let Some(value) = value {
            words.push([name.as_bytes(), b"=", value.as_bytes()].concat());
        }
    }
    let words: Vec<Vec<u8>> = words.iter().map(|word| shell_quote(word)).collect();
    words.join(&b' ')
}

/// The wrapper for a program whose path holds `=`, which `env` would take for a variable. Names
/// that no shell knows are lost here.
fn shell_wrapper(spec: &StartSpec, environment: &Environment, signals: &SignalState) -> Vec<u8> {
    let mut script = Vec::new();
    for signal in &signals.ignored {
        script.extend_from_slice(format!("trap '' {signal}; ").as_bytes());
    }
    for (name, value) in &differences(spec, environment) {
        match value {
            _ if !is_shell_name(name.as_bytes()) => continue,
            Some(value) => {
                script.extend_from_slice(b"export ");
                script.extend_from_slice(name.as_bytes());
                script.push(b'=');
                script.extend_from_slice(&shell_quote(value.as_bytes()));
            }
            None => {
                script.extend_from_slice(b"unset ");
                script.extend_from_slice(name.as_bytes());
            }
        }
        script.extend_from_slice(b"; ");
    }
    script.extend_from_slice(b"exec \"$0\" \"$@\"");
    [b"/bin/sh -c ".to_vec(), shell_quote(&script)].concat()
}

/// One word of a POSIX shell that stands for exactly these bytes.
pub(crate) fn shell_quote(word: &[u8]) -> Vec<u8> {
    let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./=,:+@%".contains(byte);
    if !word.is_empty() && word.iter().all(safe) {
        return word.to_vec();
    }
    let mut out = vec![b'\''];
    for &byte in word {
        if byte == b'\'' {
            out.extend_from_slice(b"'\\''");
        } else {
            out.push(byte);
        }
    }
    out.push(b'\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expect: &str) {
        assert_eq!(
            String::from_utf8(shell_quote(word.as_bytes())).unwrap(),
            expect
        );
    }

    #[test]
    fn words_for_the_shell() {
        check("plain-1.0/x", "plain-1.0/x");
        check("", "''");
        check("a b", "'a b'");
        check("it's", "'it'\\''s'");
        check("*$`\\\n\"", "'*$`\\\n\"'");
    }

    #[test]
    fn the_wrapper_restores_what_was_touched() {
        let spec = StartSpec {
            environment: vec![
                (b"GONE".to_vec(), None),
                (b"NEW".to_vec(), Some(b"a b".to_vec())),
            ],
            ..StartSpec::default()
        };
        let base: Environment = [
            ("SHELL", "/bin/zsh"),
            ("PWD", "/x"),
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
        let wrapper = env_wrapper(&spec, &environment, &signals);
        assert_eq!(
            String::from_utf8(wrapper).unwrap(),
            "/usr/bin/env --ignore-signal=1,2 --block-signal=10 -u COLUMNS -u GONE -u LC_ALL \
             -u LINES -u OLDPWD -u PYTHONHOME -u PYTHONPATH -u SHLVL -u _ -- 'NEW=a b' PWD=/x SHELL=/bin/zsh 'f%%=()'"
        );
    }
}
