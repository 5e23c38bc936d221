//! Starts a program, with a gdb or without one, such that the program finds the same environment as without SDM.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use sdm_debug::command::StartSpec;
use sdm_debug::{Failure, FailureCode, GdbOptions};
use sdm_idset::TaskId;
use sdm_system::{proc, programs};
use sdm_text::printable_name;

use super::{
    Binding, Completion, Environment, GdbChild, GdbEnvironment, Launch, Outfit, Preload,
    SignalState, StreamPaths, Streams, find_directory, find_gdb, find_program, name_of,
    program_environment,
};
use crate::launch::{change_environment, orders};
use crate::starter_args::Hold;
use crate::stdio::InheritedStreams;
use crate::tracer::{SeizeRefusal, Tracer, Watch};
use crate::variables::Variables;

/// The start of programs, and of their gdbs.
#[derive(Clone, Debug, Default)]
pub struct StartConfig {
    /// The gdb to use if a command names none; `None` for `gdb` on `PATH`.
    pub gdb: Option<PathBuf>,
    /// The executable of the exec wrapper, of the looker, and of the shims that this process starts. It calls
    /// [`crate::exec_program`], [`crate::run_shim`] and the looker of `sdm-inspect` first in `main`. `None` for this
    /// process's own executable.
    pub starter: Option<PathBuf>,
    /// gdb settings that differ from the defaults.
    pub options: GdbOptions,
    /// The blocked and ignored signals with which a program is started.
    pub signals: SignalState,
    /// The processors of a started program; `None` if it is not bound.
    pub binding: Option<Binding>,
    /// Standard streams that started programs share; `None` for separate streams, whose output is sent as events.
    pub streams: Option<InheritedStreams>,
    /// The only task that reads the shared standard input; `None` if every task reads it.
    pub reader: Option<TaskId>,
    /// Variables in which a started program's environment differs from this process's, or from its shim's.
    pub variables: Variables,
    /// Condition under which gdb gets the library with which it writes registers that it does not know.
    pub completion: Completion,
}

impl StartConfig {
    /// The path of the named gdb, or else of the gdb of this configuration.
    ///
    /// # Errors
    /// There is no such gdb.
    pub fn find_gdb(&self, named: Option<&[u8]>) -> Result<PathBuf, Failure> {
        let configured = self.gdb.as_ref();
        let configured = configured.map(|path| path.as_os_str().as_bytes());
        find_gdb(named.or(configured))
    }

    /// A descriptor of the executable that starts programs. It works even if the file is removed later.
    fn starter(&self) -> Result<OwnedFd, Failure> {
        let own = || proc::own().path("exe");
        let path = self.starter.clone().unwrap_or_else(own);
        name_of(&path).map_err(|error| {
            let path = printable_name(&path);
            let text = format!("cannot start sdm-shim ({path}), which starts programs: {error}");
            Failure::new(FailureCode::System, text)
        })
    }
}

/// A gdb that was started for a program.
pub struct StartedGdb {
    /// The settings by which gdb runs the program.
    pub launch: Launch,
    /// The gdb. Its working directory and its binding are those of the program to start.
    pub child: GdbChild,
    /// The program's streams.
    pub streams: Streams,
}

/// Starts a gdb for a program, with this process's environment: its variables except `given`, its descriptors, and its
/// binding.
///
/// If `config` has streams, the program shares them; it shares the input only with `reads`. Otherwise the streams are
/// opened here, and `is_fed` is true if there will be input. With `goes_with_us` gdb and the program end with this
/// process, even if other processes hold gdb's input open.
///
/// # Errors
/// The program, its directory or the gdb cannot be used, or the system lacks resources.
pub fn begin(
    spec: &StartSpec,
    is_fed: bool,
    reads: bool,
    config: &StartConfig,
    given: &[(OsString, Option<OsString>)],
    preload: &mut Option<Option<Preload>>,
    goes_with_us: bool,
) -> Result<StartedGdb, Failure> {
    let Prepared {
        program,
        directory,
        environment,
        starter,
        streams,
        names,
        outfit,
    } = prepare(spec, is_fed, reads, config, given)?;
    let gdb = config.find_gdb(spec.gdb.as_deref())?;
    let launch = Launch::new(program, spec, &environment, &config.signals, outfit)?;
    let preload = preload.get_or_insert_with(|| config.completion.preload(false));
    let handed: Vec<_> = names.iter().chain([&starter]).collect();
    let child = GdbChild::spawn(
        &gdb,
        &directory,
        &config.options,
        &GdbEnvironment {
            binding: config.binding.as_ref(),
            preload: preload.as_ref(),
            variables: given,
        },
        &handed,
        goes_with_us,
    )?;
    Ok(StartedGdb {
        launch,
        child,
        streams,
    })
}

/// The prerequisites of a program's start, with or without a gdb.
struct Prepared {
    program: PathBuf,
    directory: PathBuf,
    environment: Environment,
    starter: OwnedFd,
    streams: Streams,
    /// Descriptors by which the exec wrapper opens the program's streams. gdb inherits them.
    names: Vec<OwnedFd>,
    outfit: Outfit,
}

fn prepare(
    spec: &StartSpec,
    is_fed: bool,
    reads: bool,
    config: &StartConfig,
    given: &[(OsString, Option<OsString>)],
) -> Result<Prepared, Failure> {
    let directory = find_directory(spec.directory.as_deref())?;
    let mut base: Environment = std::env::vars_os().collect();
    change_environment(&mut base, given.iter().cloned());
    let mut environment = program_environment(base, spec);
    crate::check_library::preload(&mut environment, spec)?;
    let search_path = environment.get(std::ffi::OsStr::new("PATH"));
    let search_path = search_path.map(|path| path.as_os_str());
    let program = find_program(&spec.program, &directory, search_path, spec.gdb_when_needed)?;
    let starter = config.starter()?;
    let (streams, way) = match &config.streams {
        Some(inherited) => (Streams::elsewhere(), StreamPaths::to(inherited, reads)),
        None => Streams::open(is_fed).map_err(|error| {
            let text = format!("cannot open the program's streams: {error}");
            Failure::new(FailureCode::System, text)
        })?,
    };
    let mut closed = way.closed;
    closed.push(starter.as_raw_fd());
    let outfit = Outfit {
        starter: proc::own().path(&format!("fd/{}", starter.as_raw_fd())),
        streams: way.sources,
        closed,
    };
    Ok(Prepared {
        program,
        directory,
        environment,
        starter,
        streams,
        names: way.names,
        outfit,
    })
}

/// A program that runs without a gdb.
pub(crate) struct StartedProgram {
    pub(crate) tracer: Tracer,
    pub(crate) program: PathBuf,
    pub(crate) streams: Streams,
}

/// Starts a program as [`begin`] does, but without a gdb, and seizes it. `server` is the process that starts a gdb for
/// the program later, if that is needed. `None` if the program needs a gdb from its beginning: then it has not begun.
///
/// # Errors
/// As [`begin`].
pub(crate) fn begin_seized(
    spec: &StartSpec,
    is_fed: bool,
    config: &StartConfig,
    given: &[(OsString, Option<OsString>)],
    server: Option<i32>,
    watch: Watch,
) -> Result<Option<StartedProgram>, Failure> {
    let Prepared {
        program,
        directory,
        environment,
        starter,
        streams,
        names,
        outfit,
    } = prepare(spec, is_fed, true, config, given)?;
    let failed = |error: &dyn std::fmt::Display| {
        let text = format!("{}: {error}", printable_name(&program));
        Failure::new(FailureCode::NoProgram, text)
    };
    let path = outfit.starter.clone();
    let (held, release) = std::io::pipe().map_err(|error| failed(&error))?;
    let held = crate::sys::out_of_the_way(held.into());
    let mut orders = orders(spec, &environment, &config.signals, outfit)?;
    orders.hold = Some(Hold {
        release: held.as_raw_fd(),
        tracer: server.unwrap_or(0),
    });
    let words = orders.words().into_iter();
    let own = [program.as_os_str().as_bytes().to_vec()];
    let words = words.chain(own).chain(spec.args.iter().cloned());
    let mut command = programs::at(&path);
    command
        .args(words.map(OsString::from_vec))
        .current_dir(&directory);
    for (name, value) in given {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    crate::sys::prepare_gdb(&mut command, false);
    for file in names.iter().chain([&starter, &held]) {
        sdm_system::hand_on(&mut command, file);
    }
    if let Some(binding) = &config.binding {
        crate::sys::bind(&mut command, binding.program);
    }
    match Tracer::start(command, release, watch) {
        Ok(tracer) => Ok(Some(StartedProgram {
            tracer,
            program,
            streams,
        })),
        Err(SeizeRefusal::NeedsGdb) => Ok(None),
        Err(SeizeRefusal::CannotRun(why)) => Err(failed(&why)),
    }
}
