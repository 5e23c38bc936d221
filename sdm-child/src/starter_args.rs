//! Arguments of the exec wrapper: the words before the program on gdb's command line.
//!
//! Each option has one value. `--` ends the options; the program with its arguments follows:
//!
//! | option | value |
//! |---|---|
//! | `-0`, `-1`, `-2` | where a standard stream comes from: a [`Source`] |
//! | `-x` | a descriptor that the program is not to have |
//! | `-i`, `-b` | signals that the program finds ignored, or blocked: numbers with commas between |
//! | `-u` | a variable that the program does not have |
//! | `-e` | `NAME=VALUE`, a variable that the program has |
//! | `-w` | a descriptor at which it waits for a byte before it becomes the program: [`Hold`]; addresses are fixed |
//! | `-t` | after `-w`: the process that may trace the program, besides its parent; 0 for none |

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::SignalState;

/// The first argument of an exec wrapper.
pub(super) const MODE: &str = "--exec-program";

/// The argument that ends the options.
const END: &[u8] = b"--";

/// The source of a program's standard stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file to open, by absolute path.
    Path(PathBuf),
    /// An `O_PATH` descriptor that names a pipe; the pipe is opened by it.
    Pipe(RawFd),
    /// A descriptor of the stream itself.
    Copy(RawFd),
}

/// The exec wrapper's arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    /// The sources of standard input, output and errors; a stream without a source is gdb's own. The descriptors named
    /// here are closed after use.
    pub(super) streams: [Option<Source>; 3],
    /// Further descriptors that the program must not inherit.
    pub(super) closed: Vec<RawFd>,
    pub(super) signals: SignalState,
    /// Environment variables to set, or to unset if `None`.
    pub(super) changes: Vec<(OsString, Option<OsString>)>,
    /// The release of the program by its parent; `None` if a gdb starts the program.
    pub(super) hold: Option<Hold>,
}

/// The start of a program that its parent seizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    /// A descriptor from which a byte is read before the program is executed. If its other end is closed before, the
    /// program is not executed.
    pub(super) release: RawFd,
    /// The process that may trace the program later, besides its parent; 0 for none.
    pub(super) tracer: i32,
}

/// The first argument that is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadOrder(OsString);

impl fmt::Display for BadOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: invalid argument of the exec wrapper", self.0)
    }
}

impl Source {
    fn word(&self) -> Vec<u8> {
        match self {
            Self::Path(path) => path.as_os_str().as_bytes().to_vec(),
            Self::Pipe(fd) => format!("pipe:{fd}").into_bytes(),
            Self::Copy(fd) => format!("copy:{fd}").into_bytes(),
        }
    }

    fn parse(word: &OsStr) -> Option<Self> {
        if word.as_bytes().starts_with(b"/") {
            return Some(Self::Path(word.into()));
        }
        match word.to_str()?.split_once(':')? {
            ("pipe", fd) => Some(Self::Pipe(descriptor(fd)?)),
            ("copy", fd) => Some(Self::Copy(descriptor(fd)?)),
            _ => None,
        }
    }
}

impl Orders {
    /// The arguments, from [`MODE`] to `--`.
    pub(super) fn words(&self) -> Vec<Vec<u8>> {
        let mut words = vec![MODE.as_bytes().to_vec()];
        let mut say = |option: &str, value: Vec<u8>| words.extend([option.into(), value]);
        for (option, source) in ["-0", "-1", "-2"].iter().zip(&self.streams) {
            if let Some(source) = source {
                say(option, source.word());
            }
        }
        for fd in &self.closed {
            say("-x", fd.to_string().into_bytes());
        }
        let signals = [("-i", &self.signals.ignored), ("-b", &self.signals.blocked)];
        for (option, list) in signals.into_iter().filter(|(_, list)| !list.is_empty()) {
            let list: Vec<String> = list.iter().map(ToString::to_string).collect();
            say(option, list.join(",").into_bytes());
        }
        for (name, value) in &self.changes {
            match value {
                Some(value) => say("-e", [name.as_bytes(), b"=", value.as_bytes()].concat()),
                None => say("-u", name.as_bytes().to_vec()),
            }
        }
        if let Some(hold) = self.hold {
            say("-w", hold.release.to_string().into_bytes());
            say("-t", hold.tracer.to_string().into_bytes());
        }
        words.push(END.to_vec());
        words
    }

    /// Parses the arguments after [`MODE`]. The second result is the program with its arguments.
    pub(super) fn parse(
        words: impl IntoIterator<Item = OsString>,
    ) -> Result<(Self, Vec<OsString>), BadOrder> {
        let mut orders = Self::default();
        let mut words = words.into_iter();
        while let Some(option) = words.next() {
            if option.as_bytes() == END {
                return Ok((orders, words.collect()));
            }
            let Some(value) = words.next() else {
                return Err(BadOrder(option));
            };
            if orders.take(&option, &value).is_none() {
                return Err(BadOrder(value));
            }
        }
        Err(BadOrder(OsString::new()))
    }

    fn take(&mut self, option: &OsStr, value: &OsStr) -> Option<()> {
        let [input, output, errors] = &mut self.streams;
        match option.as_bytes() {
            b"-0" => *input = Some(Source::parse(value)?),
            b"-1" => *output = Some(Source::parse(value)?),
            b"-2" => *errors = Some(Source::parse(value)?),
            b"-x" => self.closed.push(descriptor(value.to_str()?)?),
            b"-i" => self.signals.ignored = signals(value)?,
            b"-b" => self.signals.blocked = signals(value)?,
            b"-u" => self.changes.push((value.to_owned(), None)),
            b"-e" => {
                let bytes = value.as_bytes();
                let at = bytes.iter().position(|byte| *byte == b'=')?;
                let (name, value) = (bytes[..at].to_vec(), bytes[at + 1..].to_vec());
                let value = Some(OsString::from_vec(value));
                self.changes.push((OsString::from_vec(name), value));
            }
            b"-w" => {
                let release = descriptor(value.to_str()?)?;
                self.hold = Some(Hold { release, tracer: 0 });
            }
            b"-t" => self.hold.as_mut()?.tracer = value.to_str()?.parse().ok()?,
            _ => return None,
        }
        Some(())
    }
}

fn descriptor(text: &str) -> Option<RawFd> {
    text.parse().ok().filter(|fd| *fd >= 0)
}

fn signals(list: &OsStr) -> Option<Vec<i32>> {
    let numbers = list.to_str()?.split(',');
    numbers.map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<(Orders, Vec<OsString>), BadOrder> {
        Orders::parse(words.iter().map(OsString::from))
    }

    #[test]
    fn exec_wrapper_arguments_are_parsed_back() {
        let orders = Orders {
            streams: [
                Some(Source::Pipe(7)),
                Some(Source::Path("/dev/pts/3".into())),
                Some(Source::Copy(12)),
            ],
            closed: vec![3, 40],
            signals: SignalState {
                blocked: vec![10],
                ignored: vec![1, 2],
            },
            changes: vec![
                ("GONE".into(), None),
                ("A".into(), Some("b=c d".into())),
                ("f%%".into(), Some(OsString::from_vec(vec![0xff, b'\n']))),
            ],
            hold: Some(Hold {
                release: 9,
                tracer: 77,
            }),
        };
        let mut words = orders.words();
        assert_eq!(words.remove(0), MODE.as_bytes());
        words.extend([b"/bin/x".to_vec(), b"--".to_vec()]);
        let words = words.into_iter().map(OsString::from_vec);
        let command = vec!["/bin/x".into(), "--".into()];
        assert_eq!(Orders::parse(words), Ok((orders, command)));
        assert_eq!(read(&["--"]), Ok(Default::default()));
    }

    #[test]
    fn malformed_exec_wrapper_argument_is_refused() {
        for words in [
            &[][..],
            &["-0"],
            &["-0", "file", "--"],
            &["-1", "copy:-1", "--"],
            &["-2", "pipe:x", "--"],
            &["-x", "", "--"],
            &["-i", "1,,2", "--"],
            &["-e", "A", "--"],
            &["-z", "1", "--"],
            &["-u", "A"],
            &["-w", "x", "--"],
            &["-t", "1", "--"],
        ] {
            assert!(read(words).is_err(), "{words:?}");
        }
    }
}
