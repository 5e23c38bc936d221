//! Messages between a shim and its server.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use sdm_debug::command::StartSpec;
use sdm_debug::fold::FoldRules;
use sdm_debug::{Failure, GdbOptions, wire};
use serde::{Deserialize, Serialize};

use crate::variables::EnvironmentBytes;
use crate::{Cause, EndingCall, Launch, ProgramNews, SignalState};

/// Messages to a shim.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum ToShim {
    /// Assigns the shim to this server.
    Welcome {
        /// The server's number in the session.
        server: u32,
        /// The server's pid.
        pid: i32,
    },
    /// Start the program, under a gdb or without one.
    Start(Box<StartRequest>),
    /// Release all threads of the program, as a gdb will attach.
    LetGo,
    /// Release all threads of the program for an inspection by another process, until `Seize`.
    LetLook,
    /// Seize the program again: the inspection is over.
    Seize,
    /// Stop all threads of the program.
    Hold,
    /// Resume the threads that `Hold` has stopped.
    Release,
    /// Resume the thread that is stopped before it asks for its rank: the rank is known now.
    GoOn,
    /// Kill the program, its wrapper, and all other traced processes.
    Kill,
    /// The program has opened its streams.
    Opened,
    /// The program runs: its gdb may use all permitted processors from now on.
    Unbind,
    /// Watch this detached program, and report its end.
    Left(i32),
    /// The server has received the shim's report of a signal.
    Heard,
    /// The session is over: the shim must exit with this code.
    End(u8),
    /// Resume the program that is stopped for a debugger: none comes.
    GoOnAlone,
    /// Release all threads of the program, as the session has detached from it.
    Leave,
}

/// A start request.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct StartRequest {
    /// The program, without the settings that gdb gets later.
    pub spec: StartSpec,
    /// gdb settings that differ from the defaults.
    pub options: GdbOptions,
    /// The gdb to use if `spec` names none; `None` for `gdb` on `PATH`.
    pub gdb: Option<Vec<u8>>,
    /// True if the front-end feeds the program's standard input.
    pub is_fed: bool,
    /// Variables in which the program's environment differs from the shim's.
    pub given: EnvironmentBytes,
    /// The rules that recognise frames of runtime libraries.
    pub fold: FoldRules,
    /// The blocked and ignored signals with which the program starts; `None` for the shim's own.
    pub signals: Option<SignalState>,
}

/// Messages to a server.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum ToServer {
    /// Introduces the shim.
    Hello {
        /// The shim's rank, as assigned by the launcher.
        rank: u32,
    },
    /// gdb was started. Descriptors come with the message in this order: gdb's input, output and errors; the program's
    /// output and errors, if they go to the front-end; the program's input, if the front-end feeds it.
    Started(Box<Started>),
    /// The program runs without a gdb. Descriptors come with the message: the program's output and errors, if they go
    /// to the front-end, and its input, if the front-end feeds it.
    Seized {
        /// The pid of the program.
        pid: i32,
        /// Absolute path of the program.
        program: Vec<u8>,
    },
    /// The program needs a gdb from its start, and has not begun.
    NeedsGdb,
    /// News of a program without a gdb.
    Program(ProgramNews),
    /// The start has failed. The bytes are an encoded failure.
    Refused(Vec<u8>),
    /// A process that the shim started, or was told to watch, has ended with this status of `waitpid`.
    Ended {
        /// The pid of the process.
        pid: i32,
        /// The status of the process, as in `waitpid(2)`.
        status: i32,
    },
    /// The launcher has asked the shim to end, by this signal; 0 if the launcher has ended.
    Leaving {
        /// The number of the signal.
        signal: i32,
    },
}

/// A gdb that was started.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// gdb's pid.
    pub gdb: i32,
    /// Absolute path of the program.
    program: Vec<u8>,
    /// The exec wrapper. The following fields are further settings of [`Launch`].
    wrapper: Vec<u8>,
    args: Vec<u8>,
    wrapped: Option<Vec<u8>>,
    reached_by: Option<Vec<u8>>,
}

impl Started {
    pub(super) fn new(gdb: i32, launch: Launch) -> Self {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        Self {
            gdb,
            program: bytes(&launch.program),
            wrapped: launch.wrapped.as_deref().map(bytes),
            wrapper: launch.wrapper,
            args: launch.args,
            reached_by: launch.reached_by,
        }
    }

    /// The settings by which gdb runs the program.
    pub fn launch(self) -> Launch {
        let path = |bytes| PathBuf::from(OsString::from_vec(bytes));
        Launch {
            program: path(self.program),
            wrapper: self.wrapper,
            args: self.args,
            wrapped: self.wrapped.map(path),
            reached_by: self.reached_by,
        }
    }
}

/// Feeds arbitrary bytes to the decoders of messages between shims and servers: no panic, and decoded messages
/// survive a round trip.
///
/// # Panics
/// A message does not.
pub fn fuzz_shim(bytes: &[u8]) {
    if let Ok(said) = wire::decode::<ToShim>(bytes) {
        assert_eq!(wire::decode::<ToShim>(&wire::encode(&said)), Ok(said));
    }
    if let Ok(said) = wire::decode::<ToServer>(bytes) {
        assert_eq!(wire::decode(&wire::encode(&said)).as_ref(), Ok(&said));
        match said {
            ToServer::Started(started) => drop(started.launch()),
            ToServer::Refused(failure) => drop(Failure::decode(&failure)),
            _ => {}
        }
    }
}

/// Example messages of both directions, as a corpus for fuzzing.
#[must_use]
pub fn shim_examples() -> Vec<Vec<u8>> {
    let to_shim = [
        ToShim::Welcome {
            server: 300,
            pid: 4711,
        },
        ToShim::Opened,
        ToShim::Unbind,
        ToShim::Left(4711),
        ToShim::Heard,
        ToShim::LetGo,
        ToShim::LetLook,
        ToShim::Hold,
        ToShim::Release,
        ToShim::Seize,
        ToShim::GoOn,
        ToShim::Kill,
        ToShim::End(130),
        ToShim::GoOnAlone,
        ToShim::Leave,
    ];
    let launch = Launch {
        program: "/opt/solver".into(),
        wrapper: b"exec env A=b".to_vec(),
        args: b"-n 3".to_vec(),
        wrapped: Some("/usr/bin/env".into()),
        reached_by: Some(b"/dev/fd/3".to_vec()),
    };
    let to_server = [
        ToServer::Hello { rank: 300 },
        ToServer::Started(Box::new(Started::new(4711, launch))),
        ToServer::Refused(b"\x01no gdb".to_vec()),
        ToServer::Ended {
            pid: 4711,
            status: 9,
        },
        ToServer::Leaving { signal: 15 },
        ToServer::Seized {
            pid: 4711,
            program: b"/opt/solver".to_vec(),
        },
        ToServer::NeedsGdb,
        ToServer::Program(ProgramNews::Stands {
            thread: 4711,
            cause: Cause::Function(EndingCall::Exit(7)),
        }),
        ToServer::Program(ProgramNews::Is {
            pid: 4711,
            others: vec![4712],
        }),
    ];
    let to_shim = to_shim.iter().map(wire::encode);
    to_shim.chain(to_server.iter().map(wire::encode)).collect()
}

impl ToServer {
    pub(super) fn refused(failure: &Failure) -> Self {
        Self::Refused(failure.encode().to_vec())
    }
}
