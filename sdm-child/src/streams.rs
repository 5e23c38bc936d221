//! Standard streams of a program that is about to start: the program's ends, and this process's ends.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use sdm_core::CommandId;
use sdm_debug::event::Stream;

use super::{Source, name_of_pipe};
use crate::shim::{HeldAtShim, ShimLink};
use crate::stdio::{InheritedStreams, InputStream, OutputStream, Pty};

/// The program's ends of its streams, kept open until the program has opened them itself. Otherwise reads of this
/// process's ends would report the end of the stream.
pub struct ProgramEnds {
    _tty: Box<dyn portable_pty::SlavePty + Send>,
    _pipes: [Option<OwnedFd>; 2],
}

/// The paths or descriptors by which a program's exec wrapper opens its streams.
pub struct StreamPaths {
    /// The sources of standard input, output and errors.
    pub sources: [Source; 3],
    /// The descriptors named by the sources, which gdb inherits.
    pub names: Vec<OwnedFd>,
    /// Further descriptors that gdb inherits and the program must not inherit.
    pub closed: Vec<RawFd>,
}

impl StreamPaths {
    /// The descriptors by which a program gets this process's own streams; without `reads` the program's input is
    /// empty.
    pub fn to(inherited: &InheritedStreams, reads: bool) -> Self {
        let [stdin, stdout, stderr] = inherited.copies();
        let (input, closed) = match reads {
            true => (Source::Copy(stdin), Vec::new()),
            false => (Source::Path("/dev/null".into()), vec![stdin]),
        };
        Self {
            sources: [input, Source::Copy(stdout), Source::Copy(stderr)],
            names: Vec::new(),
            closed,
        }
    }
}

/// This process's ends of the streams of one program.
pub struct Streams {
    /// The output streams that are open.
    pub outputs: Vec<OutputStream>,
    /// The input stream; `None` if there is none.
    pub input: Option<InputStream>,
    /// Commands of ended runs whose output was not reported as complete yet.
    pub owed: Vec<CommandId>,
    /// True if this process does not read the program's streams. The end of the program then counts as their end.
    pub elsewhere: bool,
    /// The program's ends; `None` once they are closed here.
    pub theirs: Option<StreamHolder>,
}

/// The holder of the program's ends of its streams until it has opened them.
pub enum StreamHolder {
    /// This process.
    Here(ProgramEnds),
    /// The shim that starts the program or its gdb.
    AtShim(HeldAtShim),
}

impl Streams {
    /// Opens the streams. Also returns the paths and descriptors for the exec wrapper.
    pub fn open(with_stdin: bool) -> std::io::Result<(Self, StreamPaths)> {
        use nix::fcntl::OFlag;
        use nix::unistd::pipe2;
        let pty = Pty::open()?;
        let (stderr, their_stderr) = pipe2(OFlag::O_CLOEXEC)?;
        crate::stdio::set_nonblocking(std::os::fd::AsFd::as_fd(&stderr))?;
        let mut input = None;
        let mut their_stdin = None;
        if with_stdin {
            let (theirs, ours) = pipe2(OFlag::O_CLOEXEC)?;
            crate::stdio::set_nonblocking(std::os::fd::AsFd::as_fd(&ours))?;
            input = Some(InputStream::new(ours));
            their_stdin = Some(theirs);
        }
        let mut names = Vec::new();
        let mut source = |end: &OwnedFd| -> std::io::Result<Source> {
            let name = name_of_pipe(end)?;
            let source = Source::Pipe(name.as_raw_fd());
            names.push(name);
            Ok(source)
        };
        let sources = [
            match &their_stdin {
                Some(end) => source(end)?,
                None => Source::Path("/dev/null".into()),
            },
            Source::Path(pty.path),
            source(&their_stderr)?,
        ];
        let theirs = ProgramEnds {
            _tty: pty.slave,
            _pipes: [their_stdin, Some(their_stderr)],
        };
        let outputs = vec![
            OutputStream::new(Stream::Stdout, pty.master),
            OutputStream::new(Stream::Stderr, stderr),
        ];
        let streams = Self {
            outputs,
            input,
            owed: Vec::new(),
            elsewhere: false,
            theirs: Some(StreamHolder::Here(theirs)),
        };
        let way = StreamPaths {
            sources,
            names,
            closed: Vec::new(),
        };
        Ok((streams, way))
    }

    /// Splits the streams into the program's ends, if they are held here, and this process's ends, to pass on. These
    /// are output and errors, and input if the front-end feeds it; none if the streams are shared.
    pub fn into_ends(self) -> (Option<ProgramEnds>, Vec<OwnedFd>) {
        let outputs = self.outputs.into_iter().map(OutputStream::into_fd);
        let ours = outputs.chain(self.input.and_then(|mut input| input.close()));
        let theirs = match self.theirs {
            Some(StreamHolder::Here(ends)) => Some(ends),
            Some(StreamHolder::AtShim(_)) | None => None,
        };
        (theirs, ours.collect())
    }

    /// The streams of a program that a shim has started, with a gdb or without one. `fds` are the shim's descriptors
    /// from [`Streams::into_ends`]. `None` if there are too few.
    pub fn at_shim(fds: Vec<OwnedFd>, is_fed: bool, link: &Rc<ShimLink>) -> Option<Self> {
        if fds.is_empty() {
            return Some(Self::elsewhere());
        }
        let mut fds = fds.into_iter();
        let outputs = vec![
            OutputStream::new(Stream::Stdout, fds.next()?),
            OutputStream::new(Stream::Stderr, fds.next()?),
        ];
        let input = match is_fed {
            true => Some(InputStream::new(fds.next()?)),
            false => None,
        };
        Some(Self {
            outputs,
            input,
            theirs: Some(StreamHolder::AtShim(HeldAtShim(Rc::clone(link)))),
            ..Self::none()
        })
    }

    /// No streams: the program was not started here and keeps its own.
    pub fn none() -> Self {
        Self {
            outputs: Vec::new(),
            input: None,
            owed: Vec::new(),
            elsewhere: false,
            theirs: None,
        }
    }

    /// The streams of a program that has this process's own streams.
    pub fn elsewhere() -> Self {
        Self {
            elsewhere: true,
            ..Self::none()
        }
    }
}
