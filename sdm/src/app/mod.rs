//! The command `sdm`, apart from how a session is opened.

mod attach;
mod control;
mod core;
mod diagnose;
mod emulate;
mod job;
mod keep;
mod live;
mod local;
mod machine;
mod prompt;
mod report;
mod roundtrips;
mod run;
mod screen;
mod self_description;
mod signals;
mod stacks;
mod stdin;

use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_debug::EndPolicy;
use sdm_launch::Launch;

use crate::cli::{self, Verb};
use crate::sink::{self, Records, Sink, complain};
pub use live::Live;
use screen::{StatusLine, Stdout};
use sdm_session::{DebugSession, SessionConfig, StartProgress};
use sdm_view::item::{Item, Problem, View};
use sdm_view::json::JsonView;
use sdm_view::render::{Names, TextView};

/// Wakes a session that waits for its next event, from any thread.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Wakes whichever session there is now: a job that is started anew has another one.
#[derive(Clone)]
struct CurrentWake(Arc<Mutex<Wake>>);

impl CurrentWake {
    fn new(wake: Wake) -> Self {
        Self(Arc::new(Mutex::new(wake)))
    }

    /// Another session is woken from now on.
    fn set(&self, wake: Wake) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = wake;
    }

    fn wake(&self) -> Wake {
        let current = self.clone();
        Arc::new(move || {
            let wake = current.0.lock().unwrap_or_else(PoisonError::into_inner);
            let wake = Arc::clone(&wake);
            wake();
        })
    }
}

/// Opens sessions and closes them.
pub trait Opener: Clone + 'static {
    /// A session.
    type Session: DebugSession + 'static;

    /// Opens one. It stays on the calling thread.
    ///
    /// # Errors
    /// Why it could not be opened, for a person.
    fn open(
        &mut self,
        config: &SessionConfig,
        tell: &mut dyn FnMut(StartProgress),
    ) -> Result<(Self::Session, Wake), String>;

    /// Puts who started the tasks under a session that is to attach to them. `records`: standard output is
    /// not for what it prints.
    ///
    /// # Errors
    /// It cannot be watched; for a person.
    fn adopt(
        &mut self,
        session: &mut Self::Session,
        starter: Launch,
        records: bool,
    ) -> Result<(), String>;

    /// Closes it: nothing more can be asked of it.
    ///
    /// # Errors
    /// What could not be ended, for a person.
    fn close(&mut self, session: &mut Self::Session, policy: EndPolicy) -> Result<(), String>;
}

/// Carries out a command line; gives the exit code.
pub fn main<O: Opener>(args: impl IntoIterator<Item = OsString>, opener: &mut O) -> u8 {
    // A file that may not grow is an error like others.
    if let Err(error) = crate::sys::outlive(Signal::SIGXFSZ) {
        complain(format_args!("sdm: handle signals: {error}"));
        return 124;
    }
    sink::exit_code(carry_out(args, opener))
}

fn carry_out<O: Opener>(args: impl IntoIterator<Item = OsString>, opener: &mut O) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let verb = args.get(1).and_then(|word| word.to_str());
    let definition = match self_description::definition(verb) {
        Ok(definition) => definition,
        Err(error) => {
            complain(format_args!("sdm: {error}"));
            return 2;
        }
    };
    let (cli, commands) = match cli::parse(definition, args.iter().cloned()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            self_description::explain(error);
            return code;
        }
    };
    if let Some((name, program)) = keep::wanted(&cli.command) {
        return keep::start(name, &program, &args);
    }
    match cli.command {
        Verb::Run(args) => run::run(&args, commands, opener),
        Verb::Diagnose(args) => diagnose::diagnose(&args, opener),
        Verb::Attach(args) => attach::attach(&args, commands, opener),
        Verb::Emulate(args) => emulate::emulate(&args, commands, opener),
        Verb::Stacks(args) => stacks::stacks(&args, opener),
        Verb::Core(args) => core::core(&args, commands, opener),
        Verb::Settings(args) => self_description::settings(args.verb.as_deref()),
        Verb::Completions(args) => self_description::completions(args.shell),
        Verb::Man(args) => self_description::man(&args.directory),
        Verb::Sessions => keep::sessions(),
        Verb::Resume(args) => keep::resume(args.session.as_deref()),
        Verb::Detach(args) => keep::detach(args.session.as_deref()),
        Verb::Keeper(args) => keep::keeper(&args),
    }
}

/// Where what a session says is shown.
fn view(json: bool, names: Names, queue: Option<Arc<prompt::Queue>>) -> Box<dyn View> {
    if json {
        Box::new(JsonView::new(Records, pass_beside_records))
    } else {
        Box::new(TextView::new(Stdout::new(queue), names))
    }
}

/// Passes on what a launcher carries: standard output is for records.
fn pass_beside_records(bytes: &[u8]) {
    // It is no loss where nobody reads it.
    let _ = Sink::Complaints.pass(bytes);
}

/// Says why there is no session, and gives the exit code back.
fn give_up(json: bool, code: u8, message: String) -> u8 {
    if !json {
        complain(format_args!("sdm: {message}"));
        return code;
    }
    let mut view = view(true, Names::ranks(), None);
    let problem = Problem {
        message,
        ..Problem::default()
    };
    view.show(Duration::ZERO, &Item::Error(problem));
    view.show(Duration::ZERO, &Item::End { code, reason: None });
    code
}

/// Opens a session; on a terminal it shows how far it is.
fn open<O: Opener>(opener: &mut O, config: &SessionConfig) -> Result<(O::Session, Wake), String> {
    const STATUS_AFTER: Duration = Duration::from_secs(1);
    const SLOWEST_AFTER: Duration = Duration::from_secs(10);
    let began = Instant::now();
    let mut line = StatusLine::new();
    let mut tell = |opening: StartProgress| {
        if let Some(note) = &opening.note {
            line.show(None);
            complain(format_args!("[launcher] {note}"));
        }
        let took = began.elapsed();
        if took < STATUS_AFTER {
            return;
        }
        let seconds = took.as_secs();
        let (phase, done, total) = (opening.phase, opening.done, opening.total);
        let mut text = format!("start: {phase} {done}/{total} ({seconds} s)");
        if let Some(slowest) = opening.slowest.filter(|_| took >= SLOWEST_AFTER) {
            text.push_str(&format!(", waiting for {slowest}"));
        }
        line.show(Some(&text));
    };
    let opened = opener.open(config, &mut tell);
    line.show(None);
    opened
}
