//! More of a job that runs already, and less of it: `attach SET` and `detach SET`.

use sdm_debug::Command;
use sdm_debug::command::AttachSpec;
use sdm_idset::{IdSet, TaskId};

use super::run::Said;
use super::{Shell, Verdict};
use crate::commands::SetExpr;
use crate::session::Debug;

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

    /// `attach SET`: goes to what is in focus already, and the focus takes in what comes.
    pub(super) fn attach_more(&mut self, said: &Said<'_>, set: &SetExpr) -> Verdict {
        let Some(spec) = self.attachable.clone() else {
            let text = "attach: this session has started its programs".to_owned();
            return self.complain(text, "`sdm attach TARGET` debugs what runs already");
        };
        let wanted = match self.resolve(set) {
            Ok(wanted) => wanted.difference(&self.tasks.live()),
            Err(error) => return self.refuse(said.line, &error),
        };
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
