//! The debug console: the language of `sdm`'s prompt, embedded in the client's session.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_core::ids::SessionId;
use sdm_debug::Command;
use sdm_debug::reply::Stop;
use sdm_idset::IdSet;
use sdm_session::{DebugSession, SendOptions, SessionEvent};
use sdm_shell::{Application, EmbeddedShell, LocalMachine, LocalProcess, Options};
use sdm_view::item::{Item, View};
use sdm_view::render::{Names, Screen, Style, TextView};
use sdm_web::{News, WebView};

use crate::message::Request;

/// Maximum number of lines that wait for the line under way.
pub(crate) const LINES_MAX: usize = 1024;
/// Maximum size of the output of a line, in bytes; further output is left out.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// The number before the first command id of the shell's own numbering. The session's ids count from 1.
const FIRST_COMMAND: u64 = 1 << 62;

/// A request of a console line to the session.
#[derive(Clone, Debug)]
pub(crate) enum ConsoleAction {
    /// Send this command to these tasks.
    Send(CommandId, IdSet, Box<Command>, SendOptions),
    /// Cancel this command.
    Cancel(CommandId),
}

/// A command of a line, with the data to judge its effect on tasks and breakpoints.
#[derive(Clone, Debug)]
pub(crate) struct ConsoleCommand {
    /// The shell's id of the command.
    pub(crate) id: CommandId,
    /// The command itself.
    pub(crate) command: Command,
    /// The stops of the tasks that it resumes, from before.
    pub(crate) before: Vec<(Stop, IdSet)>,
}

/// A line for the console.
#[derive(Clone, Debug)]
pub(crate) struct ConsoleLine {
    /// The request that is answered by the output of the line, once the line is done. `None` for a line of a page, and
    /// for a line that resumes tasks.
    pub(crate) request: Option<Request>,
    pub(crate) text: String,
    /// True if the line resumes tasks; later lines do not wait for it.
    pub(crate) runs: bool,
}

impl ConsoleLine {
    /// True if the request of the line has this sequence number.
    pub(crate) fn is_of(&self, seq: i64) -> bool {
        self.request.as_ref().is_some_and(|it| it.seq == seq)
    }
}

/// A factory of the machine facilities of each console: those of the machine on which `sdm` runs.
pub(crate) struct Machines(pub(crate) Box<dyn Fn() -> Box<dyn LocalMachine>>);

impl Machines {
    pub(crate) fn make(&self) -> Box<dyn LocalMachine> {
        (self.0)()
    }
}

impl fmt::Debug for Machines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Machines")
    }
}

/// The console of one session.
pub(crate) struct Console {
    pub(crate) shell: EmbeddedShell,
    said: Rc<RefCell<VecDeque<ConsoleAction>>>,
    now: Rc<Cell<Instant>>,
    text: TextBuffer,
    /// Lines that wait for the line under way.
    pub(crate) lines: VecDeque<ConsoleLine>,
    /// The line under way; `None` if there is none.
    pub(crate) current: Option<ConsoleLine>,
    /// The shell's id of each command, by the session's id.
    ids: BTreeMap<CommandId, CommandId>,
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console")
            .field("shell", &self.shell)
            .finish_non_exhaustive()
    }
}

impl Console {
    /// Creates the console for these tasks. The live web pages of the session also show its output, through `news`.
    pub(crate) fn new(
        now: Instant,
        (tasks, attached): (IdSet, bool),
        machine: Box<dyn LocalMachine>,
        news: Arc<News>,
    ) -> Self {
        let said = Rc::new(RefCell::new(VecDeque::new()));
        let clock = Rc::new(Cell::new(now));
        let text = TextBuffer::default();
        let session = ConsoleSession {
            tasks,
            said: Rc::clone(&said),
            last: FIRST_COMMAND,
        };
        let shown = Rc::clone(&clock);
        let (_, controls) = std::sync::mpsc::channel();
        let own = Box::new(ConsoleView(TextView::new(text.clone(), Names::ranks())));
        let application = Application {
            view: Box::new(WebView::new(own, Names::ranks(), news)),
            machine,
            controls,
            clock: Box::new(move || shown.get()),
        };
        let options = Options {
            echo: false,
            pagination: false,
            confirm: false,
            attached,
            ..Options::default()
        };
        Self {
            shell: EmbeddedShell::new(session, application, options),
            said,
            now: clock,
            text,
            lines: VecDeque::new(),
            current: None,
            ids: BTreeMap::new(),
        }
    }

    /// Closes the console; returns the requests that will not be answered.
    pub(crate) fn close(self) -> Vec<Request> {
        let lines = self.current.into_iter().chain(self.lines);
        lines.filter_map(|line| line.request).collect()
    }

    pub(crate) fn set_now(&self, now: Instant) {
        self.now.set(now);
    }

    /// The next request of a line to the session; `None` if there is none.
    pub(crate) fn next_said(&self) -> Option<ConsoleAction> {
        self.said.borrow_mut().pop_front()
    }

    /// Output since the last call.
    pub(crate) fn take_text(&self) -> String {
        self.text.0.take()
    }

    /// True while no line is under way, and none waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.current.is_none() && self.lines.is_empty()
    }

    /// Records the id that the session has assigned to a command of a line.
    pub(crate) fn note_sent(&mut self, id: CommandId, own: CommandId) {
        self.ids.insert(id, own);
    }

    /// The session's id of a command of a line; `None` if not known.
    pub(crate) fn sent_as(&self, own: CommandId) -> Option<CommandId> {
        let mut ids = self.ids.iter();
        ids.find_map(|(id, known)| (*known == own).then_some(*id))
    }

    /// Takes an event of the session. Answers to commands that the shell has not sent are left out, unless `is_known`
    /// is set.
    pub(crate) fn handle_event(&mut self, mut event: SessionEvent, is_known: bool) {
        match &mut event {
            SessionEvent::Answer { id, .. } => match self.ids.get(id) {
                Some(own) => *id = *own,
                None if !is_known => return,
                None => {}
            },
            SessionEvent::Complete { id } => match self.ids.remove(id) {
                Some(own) => *id = own,
                None if !is_known => return,
                None => {}
            },
            _ => {}
        }
        self.shell.handle_event(self.now.get(), event);
    }
}

/// The session as the shell sees it. The adapter forwards the shell's commands to the real session.
struct ConsoleSession {
    tasks: IdSet,
    said: Rc<RefCell<VecDeque<ConsoleAction>>>,
    last: u64,
}

impl DebugSession for ConsoleSession {
    fn id(&self) -> SessionId {
        SessionId([0; 8])
    }

    fn tasks(&self) -> &IdSet {
        &self.tasks
    }

    fn send(&mut self, to: &IdSet, command: &Command, options: &SendOptions) -> CommandId {
        self.last += 1;
        let id = CommandId(self.last);
        let said = ConsoleAction::Send(id, to.clone(), Box::new(command.clone()), options.clone());
        self.said.borrow_mut().push_back(said);
        id
    }

    fn cancel(&mut self, id: CommandId) {
        self.said.borrow_mut().push_back(ConsoleAction::Cancel(id));
    }

    fn next_event(&mut self, _wait: Option<Duration>) -> Option<SessionEvent> {
        // The adapter passes on the events.
        None
    }
}

/// The view of the console's output: without the items for which the client gets DAP events.
struct ConsoleView(TextView<TextBuffer>);

impl View for ConsoleView {
    fn show(&mut self, at: Duration, item: &Item) {
        let is_told = matches!(
            item,
            Item::Output { .. }
                | Item::Happened { .. }
                | Item::Lost { .. }
                | Item::Silent { .. }
                | Item::Reachable { .. }
                | Item::LauncherLine(_)
                | Item::LauncherEnded { .. }
                | Item::Start { .. }
                | Item::End { .. }
        );
        if !is_told {
            self.0.show(at, item);
        }
    }

    fn status(&mut self, _line: Option<&str>) {}

    fn pass(&mut self, _stderr: bool, _bytes: &[u8]) {}
}

/// A screen that keeps its text until it is taken.
#[derive(Clone, Default)]
struct TextBuffer(Rc<RefCell<String>>);

impl Screen for TextBuffer {
    fn write(&mut self, text: &str) {
        let mut kept = self.0.borrow_mut();
        if kept.len() < TEXT_BYTES_MAX {
            kept.push_str(text);
        }
    }

    fn status(&mut self, _line: Option<&str>) {}

    fn pass(&mut self, _stderr: bool, _bytes: &[u8]) {}

    fn style(&self) -> Style {
        Style::PLAIN
    }
}

/// The absence of machine facilities: the owner of the adapter has provided none.
pub(crate) struct NoMachine;

impl NoMachine {
    fn none<T>() -> io::Result<T> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }
}

impl LocalMachine for NoMachine {
    fn read_text(&mut self, _file: &Path) -> io::Result<String> {
        Self::none()
    }

    fn write_file(&mut self, _file: &Path, _contents: &[u8]) -> io::Result<()> {
        Self::none()
    }

    fn without_links(&mut self, file: &Path) -> PathBuf {
        file.to_owned()
    }

    fn home(&mut self) -> PathBuf {
        "/".into()
    }

    fn working_directory(&mut self) -> io::Result<PathBuf> {
        Self::none()
    }

    fn change_directory(&mut self, _directory: &Path) -> io::Result<()> {
        Self::none()
    }

    fn start(&mut self, _line: &str) -> io::Result<Box<dyn LocalProcess>> {
        Self::none()
    }
}
