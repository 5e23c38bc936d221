//! More of a job that runs already, and less of it: `attach SET` and `detach SET`.

use sdm_debug::Command;
use sdm_debug::command::{AttachSpec, PointSpec, StartPoint};
use sdm_idset::{IdSet, TaskId};
use sdm_session::Debug;

use super::run::Said;
use super::{Over, Shell, Verdict};
use crate::commands::SetExpr;

/// How a session gets servers on more hosts of its job.
pub struct Widening<D> {
    /// Ranks of the job that are on hosts without a server.
    pub elsewhere: IdSet,
    /// Opens the other session.
    pub open: Widen<D>,
}

/// Lets all go, ends a session and puts one in its place whose servers are beside these ranks, and which is
/// attached to nobody.
pub type Widen<D> = Box<dyn FnMut(&mut D, &IdSet) -> Result<Widened, String>>;

/// A session with servers on more hosts.
pub struct Widened {
    /// Everybody who can be attached to.
    pub spec: AttachSpec,
    /// Those of the ranks that were wanted.
    pub wanted: IdSet,
    /// Ranks of the job that are on hosts without a server.
    pub elsewhere: IdSet,
    /// Who is left out, and why: a sentence each.
    pub left_out: Vec<String>,
}

impl<D: Debug> Shell<D> {
    /// Attaches to the `first` of these processes; false where none could be attached to. The others are
    /// those that a server is beside, for `attach SET`.
    pub fn attach(&mut self, spec: AttachSpec, first: &IdSet) -> bool {
        let attached = self.attach_quietly(among(&spec, first), first).1;
        self.attachable = Some(spec);
        if attached != *self.debug.tasks() && !attached.is_empty() {
            self.focus.clone_from(&attached);
        }
        self.show_attached(&attached);
        !attached.is_empty() && self.over.is_none()
    }

    /// Attaches to the processes that a launcher of our own holds; false where that failed, or where `partial`
    /// will do, where nobody could be attached to.
    pub fn attach_held(&mut self, spec: AttachSpec, partial: bool) -> bool {
        let all = self.debug.tasks().clone();
        let attached = self.attach_quietly(spec, &all).1;
        self.show_attached(&attached);
        let enough = attached == all || (partial && !attached.is_empty());
        enough && self.over.is_none()
    }

    /// `attach SET`: goes to what is in focus already, and the focus takes in what comes.
    pub(super) fn attach_more(&mut self, said: &Said<'_>, set: &SetExpr) -> Verdict {
        let Some(spec) = self.attachable.clone() else {
            let text = "attach: this session has started its programs".to_owned();
            return self.complain(text, "`sdm attach TARGET` debugs what runs already");
        };
        let elsewhere = self.elsewhere();
        let mut all = self.debug.tasks().clone();
        all.union_with(&elsewhere);
        let wanted = match self.resolve_among(set, &all) {
            Ok(wanted) => wanted.difference(&self.tasks.live()),
            Err(error) => return self.refuse(said.line, &error),
        };
        if !wanted.is_disjoint(&elsewhere) {
            return self.attach_anew(said, wanted);
        }
        if wanted.is_empty() {
            return self.complain(
                format!("attach: all in `{}` are attached to", set.text()),
                "",
            );
        }
        let (verdict, attached) = self.attach_quietly(among(&spec, &wanted), &wanted);
        self.focus.union_with(&attached);
        self.show_attached(&attached);
        verdict
    }

    /// Ranks of the job that are on hosts without a server.
    fn elsewhere(&self) -> IdSet {
        let widening = self.widening.as_ref();
        widening.map_or_else(IdSet::new, |widening| widening.elsewhere.clone())
    }

    /// How the session can get servers on more hosts of its job.
    pub fn set_widening(&mut self, widening: Widening<D>) {
        self.widening = Some(widening);
    }

    /// A tree of servers does not grow: another one takes its place, with servers where `wanted` are, too.
    /// Those that were attached to are attached to again, and have their breakpoints.
    fn attach_anew(&mut self, said: &Said<'_>, mut wanted: IdSet) -> Verdict {
        let label = sdm_view::render::set_text(&wanted.intersection(&self.elsewhere()), 60);
        self.say(&format!(
            "{label}: no server of this session is there; all are let go, and attached to again with servers there"
        ));
        wanted.union_with(&self.tasks.live());
        let points = self.breaks.start_points();
        let Some(mut widening) = self.widening.take() else {
            return Verdict::Failed;
        };
        let opened = (widening.open)(&mut self.debug, &wanted);
        let widened = match opened {
            Ok(widened) => widened,
            Err(why) => {
                self.over = Some(Over::Ended(format!("{}: {why}", said.line)));
                return Verdict::Failed;
            }
        };
        widening.elsewhere = widened.elsewhere;
        self.widening = Some(widening);
        self.forget_job();
        for text in &widened.left_out {
            self.say(text);
        }
        let (spec, wanted) = (widened.spec, widened.wanted);
        let (verdict, attached) = self.attach_quietly(among(&spec, &wanted), &wanted);
        self.attachable = Some(spec);
        self.focus.clone_from(&attached);
        for point in points {
            self.insert_again(said, point, &attached);
        }
        self.show_attached(&attached);
        verdict
    }

    /// What stops tasks, in those of them that are there.
    fn insert_again(&mut self, said: &Said<'_>, point: StartPoint, attached: &IdSet) {
        let tasks = point.tasks.intersection(attached);
        if tasks.is_empty() {
            return;
        }
        let number = point.spec.number();
        let command = match point.spec {
            PointSpec::Break(spec) => Command::BreakInsert(spec),
            PointSpec::Watch(spec) => Command::WatchInsert(spec),
            PointSpec::Catch(spec) => Command::CatchInsert(spec),
        };
        let disable = Command::BreakEnable {
            number,
            enabled: false,
        };
        let commands = [Some(command), (!point.enabled).then_some(disable)];
        for command in commands.into_iter().flatten() {
            let (_, open) = self.ask_quietly(said.line, &tasks, &command);
            if let Some(open) = open {
                self.show_unless_all_well(open);
            }
        }
    }

    /// `detach [SET]`: the focus is what is left.
    pub(super) fn detach(&mut self, said: &Said<'_>, set: Option<&SetExpr>) -> Verdict {
        let Some(set) = set else {
            return self.end_tasks(said, &Command::Detach);
        };
        let to = match self.resolve(set) {
            Ok(to) => to,
            Err(error) => return self.refuse(said.line, &error),
        };
        let said = Said {
            line: said.line,
            to,
            named: true,
        };
        let verdict = self.end_tasks(&said, &Command::Detach);
        let left = self.focus.intersection(&self.tasks.live());
        if !left.is_empty() {
            self.focus = left;
        }
        verdict
    }

    fn show_attached(&mut self, attached: &IdSet) {
        for row in self.tasks.rows_of(attached) {
            if let Some(what) = row.last {
                self.notices.push(self.now(), &row.tasks, what);
            }
        }
        self.show_held();
    }
}

/// What of an attachment concerns these tasks.
fn among(spec: &AttachSpec, tasks: &IdSet) -> AttachSpec {
    let mut spec = spec.clone();
    spec.pids.retain(|(rank, _)| tasks.contains(TaskId(*rank)));
    spec
}
