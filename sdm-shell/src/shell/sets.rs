//! The commands for the focus, for named sets, and for tasks under `freeze`.
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_idset::set_text;
use sdm_view::item::{Item, SetRow};
use sdm_view::render::Names;

use super::invocation::Invocation;
use super::{SessionHandle, Verdict};
use crate::commands::{CommandError, PREDEFINED, SetExpr};

/// Maximum number of named sets.
const NAMED_MAX: usize = 1024;
/// Maximum number of classes of the last answer that `info sets` shows.
const CLASSES_SHOWN_MAX: usize = 16;

impl SessionHandle {
    /// Resolves a set to its current tasks. Tasks are queried if it has a condition.
    pub(super) async fn resolve(&self, set: &SetExpr) -> Result<IdSet, CommandError> {
        self.resolve_among(set, &self.all()).await
    }

    /// Resolves a set that may contain tasks outside of the session.
    pub(super) async fn resolve_among(
        &self,
        set: &SetExpr,
        all: &IdSet,
    ) -> Result<IdSet, CommandError> {
        let mut conditions: Vec<(String, IdSet)> = Vec::new();
        for expression in set.conditions() {
            if conditions.iter().all(|(known, _)| known != expression) {
                let holds = where_it_holds(self, expression).await?;
                conditions.push((expression.to_owned(), holds));
            }
        }
        let members = self.members();
        self.read(|model| model.resolve(set, all, &conditions, &members))
    }
}

/// The tasks of a set, or without one the target set of the line.
pub(super) async fn whom(
    session: &SessionHandle,
    said: &Invocation<'_>,
    set: Option<&SetExpr>,
) -> Result<IdSet, Verdict> {
    match set {
        None => Ok(said.to.clone()),
        Some(set) => match session.resolve(set).await {
            Ok(to) => Ok(to),
            Err(error) => Err(session.refuse(said.line, &error)),
        },
    }
}

/// Evaluates a condition in every stopped task. Tasks that cannot evaluate it are reported.
async fn where_it_holds(session: &SessionHandle, expression: &str) -> Result<IdSet, CommandError> {
    let standing = session.standing();
    if standing.is_empty() {
        return Err(CommandError::new(format!(
            "@if:({expression}): not evaluated, because no rank is stopped"
        )));
    }
    let running = session.running();
    if !running.is_empty() {
        let who = set_text(&running, 60);
        session.say(&format!(
            "@if:({expression}): not evaluated on running ranks: {who}"
        ));
    }
    let command = Command::Evaluate {
        expression: expression.to_owned(),
    };
    let (_, open) = session.ask_quietly("@if", &standing, &command).await;
    let Some(mut open) = open else {
        return Err(CommandError::new("@if: no answer from sdm-server"));
    };
    let answers = std::mem::take(&mut open.gathered.ok);
    let mut holds = IdSet::new();
    for (tasks, reply) in &answers {
        let Reply::Value(value) = reply else { continue };
        let refused = |why| CommandError::new(format!("@if:({expression}): {why}"));
        if sdm_debug::truth(&value.text).map_err(refused)? {
            holds.union_with(tasks);
        }
    }
    let silent = open.gathered.failed.is_empty()
        && open.gathered.missing.is_empty()
        && open.gathered.lost.is_empty()
        && open.gathered.others.is_empty();
    if answers.is_empty() && !silent {
        let why = open.gathered.failed.first();
        let why = why.map_or("no answer in time", |(_, failure)| failure.text.trim_end());
        return Err(CommandError::new(format!("@if:({expression}): {why}")));
    }
    if !silent {
        session.show(&Item::Answer(open.gathered));
    }
    Ok(holds)
}

/// Carries out `focus [SET]`.
pub(super) async fn set_focus(
    session: &SessionHandle,
    said: &Invocation<'_>,
    set: Option<&SetExpr>,
) -> Verdict {
    let Some(set) = set else {
        let focus = session.read(|model| model.sets.focus.clone());
        let text = set_text(&focus, 60);
        session.say(&format!("focus: {text} ({})", focus.len()));
        return Verdict::Done;
    };
    let focus = match session.resolve(set).await {
        Ok(focus) => focus,
        Err(error) => return session.refuse(said.line, &error),
    };
    if focus.is_empty() {
        return session.complain(
            format!("focus: the set `{}` contains no rank", set.text()),
            "",
        );
    }
    let to = focus.clone();
    session.edit(|model| model.sets.previous = std::mem::replace(&mut model.sets.focus, focus));
    if let Some(number) = set.thread() {
        return session
            .ask(said.line, &to, &Command::SelectThread { number })
            .await
            .0;
    }
    Verdict::Done
}

/// Carries out `defset NAME SET`.
pub(super) async fn define_set(
    session: &SessionHandle,
    said: &Invocation<'_>,
    name: String,
    set: &SetExpr,
) -> Verdict {
    let tasks = match session.resolve(set).await {
        Ok(tasks) => tasks,
        Err(error) => return session.refuse(said.line, &error),
    };
    let is_full = session.read(|model| {
        let named = &model.sets.named;
        named.len() == NAMED_MAX && !named.contains_key(&name)
    });
    if is_full {
        return session.complain(
            format!("defset: {NAMED_MAX} sets are defined, no more are allowed"),
            "`undefset NAME` removes a set",
        );
    }
    if tasks.is_empty() {
        session.say(&format!(
            "defset: the set @{name} is defined, but contains no rank"
        ));
    }
    session.edit(|model| model.sets.named.insert(name, tasks));
    Verdict::Done
}

/// Carries out `undefset NAME`.
pub(super) fn forget_set(session: &SessionHandle, name: &str) -> Verdict {
    match session.edit(|model| model.sets.named.remove(name)) {
        Some(_) => Verdict::Done,
        None => session.complain(format!("no set has the name `@{name}`"), ""),
    }
}

/// Carries out `info sets`.
pub(super) async fn show_sets(session: &SessionHandle) -> Verdict {
    let named = session.read(|model| model.sets.named.clone());
    let mut rows: Vec<_> = named
        .iter()
        .map(|(name, tasks)| SetRow {
            name: name.clone(),
            tasks: tasks.clone(),
            what: String::new(),
        })
        .collect();
    for (name, what) in PREDEFINED {
        let set = SetExpr::parse(&format!("@{name}"), 0).expect("it is one of the list");
        rows.push(SetRow {
            name: (*name).to_owned(),
            tasks: session.resolve(&set).await.unwrap_or_default(),
            what: (*what).to_owned(),
        });
    }
    for (program, tasks) in session.read(|model| model.job.several_programs()) {
        rows.push(SetRow {
            name: program,
            tasks,
            what: "by program".to_owned(),
        });
    }
    let classes = session.read(|model| model.sets.classes.clone());
    for (number, tasks) in (1..).zip(classes.into_iter().take(CLASSES_SHOWN_MAX)) {
        rows.push(SetRow {
            name: format!("{number}"),
            tasks,
            what: "a class of the last answer".to_owned(),
        });
    }
    if !session.read(|model| model.sets.held.is_empty()) {
        rows.push(SetRow {
            name: String::new(),
            tasks: session.read(|model| model.sets.held.clone()),
            what: "these ranks are frozen: no command continues them".to_owned(),
        });
    }
    session.show(&Item::Sets(rows));
    Verdict::Done
}

/// Carries out `freeze [SET]` and `thaw [SET]`.
pub(super) async fn hold(
    session: &SessionHandle,
    said: &Invocation<'_>,
    set: Option<&SetExpr>,
    on: bool,
) -> Verdict {
    let to = match whom(session, said, set).await {
        Ok(to) => to,
        Err(verdict) => return verdict,
    };
    if on {
        session.edit(|model| model.sets.held.union_with(&to));
    } else {
        session.edit(|model| model.sets.held.subtract(&to));
    }
    let running = session.running().intersection(&to);
    if on && !running.is_empty() {
        let who = Names::ranks().label(&running, 60);
        session.say(&format!("frozen from their next stop: {who}"));
    }
    Verdict::Done
}

/// The tasks of a run without those under `freeze`, which are reported.
pub(super) fn not_held(session: &SessionHandle, said: &Invocation<'_>) -> IdSet {
    let held = session.read(|model| said.to.intersection(&model.sets.held));
    if held.is_empty() {
        return said.to.clone();
    }
    let who = Names::ranks().label(&held, 60);
    session.say(&format!(
        "frozen, not resumed: {who} (`thaw` ends the freeze)"
    ));
    said.to.difference(&held)
}
