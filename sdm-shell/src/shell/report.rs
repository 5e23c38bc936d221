//! The report: what is looked at for it, and when it is written.

use std::time::{Duration, Instant};

use sdm_debug::command::{BacktraceSpec, FrameSelect};
use sdm_debug::reply::Frame;
use sdm_debug::{Command, Reply};
use sdm_idset::{IdSet, TaskId};
use sdm_session::Debug;
use sdm_view::item::{Happening, Item};
use sdm_view::render::{Names, frame_text, value_text};
use sdm_view::report::{Fact, Look, LookFrame, Recorder, Report, outliers};

use super::{Ended, Over, Shell, Verdict};
use crate::ReportFiles;

/// How often the files are written while it goes on.
const PERIOD: Duration = Duration::from_secs(2);
/// How much longer than its writing took the time between two writings is.
const PERIOD_FACTOR: u32 = 20;
/// How long a question may take once a signal wants the end.
const LAST_QUERY_TIMEOUT: Duration = Duration::from_secs(5);
/// The most stacks that are read with variables, of each kind.
const LOOKS_MAX: usize = 4;
/// The most frames of such a stack.
const FRAMES_MAX: u32 = 32;
/// Of how many frames the variables are read.
const LOCALS_FRAMES_MAX: usize = 4;

/// What was shown, and where a report of it goes.
pub(super) struct Reporting {
    recorder: Recorder,
    files: Option<ReportFiles>,
    next: Instant,
}

impl Reporting {
    /// Records, and writes nothing by itself.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            recorder: Recorder::new(Vec::new(), Names::ranks()),
            files: None,
            next: now,
        }
    }

    pub(super) fn record(&mut self, at: Duration, item: &Item) {
        self.recorder.record(at, item);
    }
}

impl<D: Debug> Shell<D> {
    /// What is known of the run for its report, and what its tasks are called; it is written to `files`, where there are some,
    /// as it goes on.
    pub fn set_report(&mut self, facts: Vec<Fact>, names: Names, files: Option<ReportFiles>) {
        self.reporting = Reporting {
            recorder: Recorder::new(facts, names),
            files,
            next: self.now(),
        };
        self.write_report();
    }

    /// True where a report is written.
    pub(super) fn writes_report(&self) -> bool {
        self.reporting.files.is_some()
    }

    /// Writes the files where there is something new and it is time for it.
    pub(super) fn write_due_report(&mut self) {
        if self.reporting.files.is_some()
            && self.now() >= self.reporting.next
            && self.reporting.recorder.take_dirty()
        {
            self.write_report();
        }
    }

    /// Writes the files now. Where that fails it is said once, and not tried again.
    fn write_report(&mut self) {
        let Some(files) = self.reporting.files.take() else {
            return;
        };
        let began = self.now();
        let written = files.write(&self.report());
        let now = self.now();
        match written {
            Ok(()) => {
                self.reporting.files = Some(files);
                self.reporting.next = now + PERIOD.max((now - began) * PERIOD_FACTOR);
            }
            Err(why) => {
                self.complain(format!("no report: {why}"), "");
            }
        }
    }

    /// All that is known now.
    fn report(&self) -> Report {
        let took = self.now().saturating_duration_since(self.began);
        let all = self.debug.tasks();
        let states = self.tasks.rank_rows(all);
        self.reporting.recorder.report(all, states, took)
    }

    /// Leaves the files to be finished once it is known how the session ended.
    pub(super) fn take_report(&mut self) -> Option<(ReportFiles, Report)> {
        let files = self.reporting.files.take()?;
        Some((files, self.report()))
    }

    /// `report FILE`: a page of what is known, and of where everybody is who stands.
    pub(super) fn write_report_to(&mut self, file: &str) -> Verdict {
        self.look();
        let files = ReportFiles::of_page(file.into(), None);
        match files.write(&self.report()) {
            Ok(()) => {
                let also = [&files.text, &files.json].map(|path| path.display().to_string());
                self.say(&format!("{file} is written; also {}", also.join(" and ")));
                Verdict::Done
            }
            Err(why) => self.complain(why, ""),
        }
    }

    /// Stops everybody and, where a report is written, looks at them before it is too late: also
    /// where a signal wants the end.
    pub fn look_back(&mut self) {
        let over = self.over.take();
        let asked_to_end = matches!(over, Some(Over::Terminated(_)));
        if over.is_some() && !(asked_to_end && self.writes_report()) {
            self.over = over;
            return;
        }
        self.write_report();
        let timeout = self.options.query_timeout;
        if asked_to_end {
            self.options.query_timeout = timeout.min(LAST_QUERY_TIMEOUT);
        }
        self.stop_all();
        if self.writes_report() {
            self.look();
        }
        self.options.query_timeout = timeout;
        self.over = over.or(self.over.take());
        self.write_report();
    }

    /// Looks at those who stand: where all of them are, and closer at the crashed and at outliers.
    pub(super) fn look(&mut self) {
        self.show_held();
        let standing = self.standing();
        if standing.is_empty() || self.over.is_some() {
            return;
        }
        self.look_at_versions();
        let crashed = self.looks_at_crashed();
        let (_, open) = self.ask_quietly("report", &standing, &Command::Stacks { full: false });
        let stacks = open.and_then(|open| open.gathered.stacks());
        let seen = IdSet::union_all(crashed.iter().map(|look| &look.tasks));
        let few = stacks.as_ref().map(|stacks| outliers(stacks, &seen));
        let few = few.unwrap_or_default().into_iter().take(LOOKS_MAX);
        let outliers = few.filter_map(|tasks| self.look_at(tasks)).collect();
        self.reporting.recorder.look(stacks, crashed, outliers);
    }

    /// The crashed, those first whose crash was told first.
    fn looks_at_crashed(&mut self) -> Vec<Look> {
        let crashed = self
            .tasks
            .where_last(|last| matches!(last, Happening::Stopped(stop) if stop.reason.is_crash()));
        let mut rows = self.tasks.rows_of(&crashed);
        let first = self.reporting.recorder.first_crash();
        rows.sort_by_key(|row| first.is_none_or(|first| first.is_disjoint(&row.tasks)));
        let rows = rows.into_iter().take(LOOKS_MAX);
        rows.filter_map(|row| self.look_at(row.tasks)).collect()
    }

    /// The stack of the first of these tasks, with variables; its selected frame stays.
    fn look_at(&mut self, tasks: IdSet) -> Option<Look> {
        let task = tasks.first()?;
        let selected = match self.answer_of(task, &Command::SelectFrame(FrameSelect::Current)) {
            Some(Reply::Frame(view)) => Some(view.frame.level),
            _ => None,
        };
        let spec = BacktraceSpec {
            limit: FRAMES_MAX,
            args: true,
            full: false,
        };
        let Some(Reply::Backtrace(backtrace)) = self.answer_of(task, &Command::Backtrace(spec))
        else {
            return None;
        };
        let mut left = LOCALS_FRAMES_MAX;
        let mut frames = Vec::new();
        for frame in &backtrace.frames {
            let wanted = frame.line > 0 && left > 0;
            left -= usize::from(wanted);
            frames.push(self.frame_of(task, frame, wanted));
        }
        if let Some(level) = selected {
            self.answer_of(task, &Command::SelectFrame(FrameSelect::Level(level)));
        }
        Some(Look {
            task,
            tasks,
            frames,
            more: backtrace.more,
        })
    }

    fn frame_of(&mut self, task: TaskId, frame: &Frame, wanted: bool) -> LookFrame {
        let mut found = LookFrame {
            place: frame_text(frame),
            source: String::new(),
            locals: None,
        };
        let select = Command::SelectFrame(FrameSelect::Level(frame.level));
        if !wanted {
            return found;
        }
        if let Some(Reply::Frame(view)) = self.answer_of(task, &select)
            && let Some(source) = view.source
        {
            found.source = format!("{}  {}", frame.line, source.trim());
        }
        if let Some(Reply::Variables(variables)) = self.answer_of(task, &Command::Locals) {
            let pairs = variables
                .into_iter()
                .map(|variable| (variable.name, value_text(&variable.value)));
            found.locals = Some(pairs.collect());
        }
        found
    }

    fn answer_of(&mut self, task: TaskId, command: &Command) -> Option<Reply> {
        let answers = self.answers("report", &IdSet::single(task), command);
        answers.into_iter().next().map(|(_, reply)| reply)
    }

    /// Which gdb and which MPI library, once, while somebody stands who can be asked.
    pub(super) fn look_at_versions(&mut self) {
        let standing = self.standing();
        if standing.is_empty() || self.reporting.recorder.knows("gdb") {
            return;
        }
        let version = Command::Console {
            line: "show version".to_owned(),
        };
        let answers = self.answers("report", &standing, &version).into_iter();
        let texts = answers.filter_map(|(_, reply)| match reply {
            Reply::Text(text) => text.lines().next().map(str::to_owned),
            _ => None,
        });
        self.note_distinct("gdb", texts.collect());
        let one = IdSet::union_all(standing.first().map(IdSet::single).as_ref());
        let answers = self
            .answers("report", &one, &Command::Libraries)
            .into_iter();
        let paths = answers.flat_map(|(_, reply)| match reply {
            Reply::Libraries(libraries) => libraries,
            _ => Vec::new(),
        });
        let paths = paths
            .map(|library| library.path)
            .filter(|path| is_mpi(path));
        self.note_distinct("MPI library", paths.map(|path| followed(&path)).collect());
    }

    fn note_distinct(&mut self, name: &str, mut values: Vec<String>) {
        values.sort_unstable();
        values.dedup();
        if !values.is_empty() {
            self.reporting
                .recorder
                .fact(Fact::new(name, values.join("; ")));
        }
    }
}

/// True for the library of MPI itself.
fn is_mpi(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    [
        "libmpi.so",
        "libmpich.so",
        "libmpi_cray",
        "libmpi_ibm",
        "libmpi-",
    ]
    .iter()
    .any(|start| name.starts_with(start))
}

/// A library's file, whose name often has the version that its link does not have.
fn followed(path: &str) -> String {
    let file = std::fs::canonicalize(path);
    file.map_or_else(|_| path.to_owned(), |file| file.display().to_string())
}

impl Ended {
    /// Finishes the report, where there is one: what is to be said of it on a screen.
    ///
    /// # Errors
    /// Which file could not be written, and why.
    pub fn finish_report(
        &mut self,
        code: u8,
        reason: Option<&String>,
    ) -> Result<Option<String>, String> {
        let Some((files, mut report)) = self.report.take() else {
            return Ok(None);
        };
        report.end = Some(sdm_view::report::End {
            code,
            reason: reason.cloned(),
        });
        report.took = (self.clock)().saturating_duration_since(self.began);
        files.write(&report)?;
        let page = files.page.display();
        Ok(Some(format!(
            "{}  {page} has it all\n",
            sdm_view::report::text(&report)
        )))
    }
}
