//! Attaches gdb to tasks of a session and detaches it: by `attach SET` and `detach SET`, and for a command that needs
//! gdb.

use sdm_debug::command::{AttachSpec, StartPoint};
use sdm_debug::{Command, EndPolicy};
use sdm_idset::{IdSet, TaskId};

use super::exit::Ending;
use super::exit::StacksCode;
use super::invocation::Invocation;
use super::model::Over;
use super::{SessionHandle, Verdict, notices, rerun, run};
use super::{ask, memory_estimate};
use crate::commands::{SetExpr, UserCommand};
use crate::exit_codes::{GIVEN_UP, NOT_STARTED};
use sdm_view::item::Item;
use sdm_view::render::Names;

/// Has gdb attach to the tasks of `to` that have no gdb so far, and stops them. Returns false if gdb could attach to
/// none and `to` has no other task.
pub(super) async fn attach_as_needed(session: &SessionHandle, to: &IdSet) -> bool {
    let own = session.read(|model| model.without_gdb(&model.job.seized.intersection(to)).0);
    run::stop(session, &own).await;
    let wanted = session.read(|model| model.job.unattached.intersection(to));
    let spec = session.read(|model| model.job.attachable.clone());
    let Some(spec) = spec.filter(|_| !wanted.is_empty()) else {
        return true;
    };
    let (verdict, attached) = attach_unannounced(session, among(&spec, &wanted), &wanted).await;
    if verdict != Verdict::GivenUp {
        session.edit(|model| model.job.unattached.subtract(&wanted));
    }
    notices::show_places(session, &attached);
    !attached.is_empty() || wanted != *to
}

/// True for commands that need no gdb.
pub(super) fn needs_no_gdb(command: &UserCommand) -> bool {
    use UserCommand as C;
    matches!(
        command,
        C::Nothing { .. }
            | C::Breakpoints { .. }
            | C::SetPending(_)
            | C::Pagination(_)
            | C::Attach(_)
            | C::Detach(_)
            | C::Quit
            | C::Focus(_)
            | C::Ranks(_)
            | C::DefineSet { .. }
            | C::ForgetSet(_)
            | C::Hold { .. }
            | C::About(_)
            | C::Stacks { .. }
            | C::Profile(_)
            | C::Diagnose(..)
            | C::Memory
            | C::More
            | C::Displays
            | C::Define(_)
            | C::ShowDefined(_)
            | C::System(_)
            | C::Echo(_)
            | C::Undisplay(_)
            | C::Save(_)
            | C::Load(_)
            | C::Source(_)
            | C::Outside(_)
            | C::Output(_)
            | C::Help(_)
    )
}

/// The ending of a session that could attach to no process.
pub(super) fn failed_attach(session: &SessionHandle) -> Ending {
    let (code, reason) = match StacksCode::Interrupted.reason() {
        Some(given_up) if session.interrupted_since(0) => (GIVEN_UP, given_up),
        _ => (
            NOT_STARTED,
            "sdm could not attach to any process".to_owned(),
        ),
    };
    Ending {
        code,
        policy: EndPolicy::Detach,
        reason: Some(reason),
    }
}

/// Attaches to the processes that the session's own launcher holds. Returns false on failure; with `partial`, only if
/// it could attach to none. Returns false also if the session is over.
pub(super) async fn attach_held(session: &SessionHandle, spec: AttachSpec, partial: bool) -> bool {
    let all = session.all();
    let attached = attach_quietly(session, spec, &all).await.1;
    notices::show_places(session, &attached);
    let enough = attached == all || (partial && !attached.is_empty());
    enough && !session.is_over()
}

/// `attach SET`: attaches to these tasks and adds them to the focus.
pub(super) async fn attach_more(
    session: &SessionHandle,
    said: &Invocation<'_>,
    set: &SetExpr,
) -> Verdict {
    let Some(spec) = session.read(|model| model.job.attachable.clone()) else {
        let text = "attach: this session did not attach to a running job".to_owned();
        return session.complain(
            text,
            "start `sdm attach TARGET` for processes that already run",
        );
    };
    let elsewhere = elsewhere(session);
    let mut all = session.all();
    all.union_with(&elsewhere);
    let wanted = match session.resolve_among(set, &all).await {
        Ok(wanted) => session.read(|model| wanted.difference(&model.tasks.live())),
        Err(error) => return session.refuse(said.line, &error),
    };
    if !wanted.is_disjoint(&elsewhere) {
        return attach_anew(session, said, wanted).await;
    }
    if wanted.is_empty() {
        return session.complain(
            format!(
                "attach: all processes in `{}` are attached already",
                set.text()
            ),
            "",
        );
    }
    let (verdict, attached) = attach_quietly(session, among(&spec, &wanted), &wanted).await;
    session.edit(|model| model.sets.focus.union_with(&attached));
    notices::show_places(session, &attached);
    verdict
}

/// Shows the tasks and their processes, attaches, and reports failures. Returns the verdict, and the tasks that are
/// attached.
pub(super) async fn attach_quietly(
    session: &SessionHandle,
    spec: AttachSpec,
    to: &IdSet,
) -> (Verdict, IdSet) {
    announce(session, &spec, to);
    attach_unannounced(session, spec, to).await
}

/// Shows that a session begins on these tasks, with their processes.
pub(super) fn announce(session: &SessionHandle, spec: &AttachSpec, to: &IdSet) {
    let item = Item::Start {
        session: session.session_name(),
        tasks: to.clone(),
        programs: Vec::new(),
        pids: spec.pids.clone(),
    };
    session.show(&item);
}

/// Like [`attach_quietly`], for tasks that were announced before.
pub(super) async fn attach_unannounced(
    session: &SessionHandle,
    spec: AttachSpec,
    to: &IdSet,
) -> (Verdict, IdSet) {
    if let Some(lack) = memory_estimate::lack_of_room_to_attach(session, &spec, to).await {
        let verdict = session.complain(lack, "`--force` attaches to them anyway");
        return (verdict, IdSet::new());
    }
    let (verdict, open) = session
        .ask_quietly("attach", to, &Command::Attach(spec))
        .await;
    let attached = match open {
        Some(open) => {
            let attached = open.done();
            session.edit(|model| model.job.unattached.subtract(&attached));
            ask::show_unless_all_well(session, open);
            attached
        }
        None => IdSet::new(),
    };
    (verdict, attached)
}

/// Ranks of the job that are on hosts without a server.
pub(super) fn elsewhere(session: &SessionHandle) -> IdSet {
    let widening = session.shared().widening.borrow();
    let elsewhere = widening.as_ref().map(|widening| widening.elsewhere.clone());
    elsewhere.unwrap_or_default()
}

/// Replaces the tree of servers, which cannot grow, by one that also has servers for `wanted`. Tasks that were
/// attached are attached again, with their breakpoints. The focus becomes all attached tasks.
async fn attach_anew(session: &SessionHandle, said: &Invocation<'_>, mut wanted: IdSet) -> Verdict {
    let who = Names::ranks().label(&wanted.intersection(&elsewhere(session)), 60);
    session.say(&format!(
            "this session has no sdm-server on the hosts of {who}; sdm detaches from all processes and attaches again with servers there"
        ));
    wanted.union_with(&session.read(|model| model.tasks.live()));
    let points = session.read(|model| model.breaks.start_points());
    let opened = match &mut *session.shared().widening.borrow_mut() {
        Some(widening) => (widening.open)(&wanted).inspect(|widened| {
            widening.elsewhere.clone_from(&widened.elsewhere);
        }),
        None => return Verdict::Failed,
    };
    let widened = match opened {
        Ok(widened) => widened,
        Err(why) => {
            session.edit(|model| model.over = Some(Over::Ended(format!("{}: {why}", said.line))));
            return Verdict::Failed;
        }
    };
    rerun::forget_job(session);
    for text in &widened.left_out {
        session.say(text);
    }
    let (spec, wanted) = (widened.spec, widened.wanted);
    let (verdict, attached) = attach_quietly(session, among(&spec, &wanted), &wanted).await;
    session.edit(|model| model.job.attachable = Some(spec));
    session.edit(|model| model.sets.focus.clone_from(&attached));
    for point in points {
        insert_again(session, said, point, &attached).await;
    }
    notices::show_places(session, &attached);
    verdict
}

/// Inserts a breakpoint, watchpoint or catchpoint again, in those of its tasks that are attached.
async fn insert_again(
    session: &SessionHandle,
    said: &Invocation<'_>,
    point: StartPoint,
    attached: &IdSet,
) {
    let tasks = point.tasks.intersection(attached);
    if tasks.is_empty() {
        return;
    }
    let number = point.spec.number();
    let command = point.spec.insertion();
    let disable = Command::BreakEnable {
        number,
        enabled: false,
    };
    let commands = [Some(command), (!point.enabled).then_some(disable)];
    for command in commands.into_iter().flatten() {
        let (_, open) = session.ask_quietly(said.line, &tasks, &command).await;
        if let Some(open) = open {
            ask::show_unless_all_well(session, open);
        }
    }
}

/// `detach [SET]`: detaches these tasks. With a set, the focus keeps its live tasks, and is unchanged if it has none.
pub(super) async fn detach(
    session: &SessionHandle,
    said: &Invocation<'_>,
    set: Option<&SetExpr>,
) -> Verdict {
    let Some(set) = set else {
        return run::end_tasks(session, said, &Command::Detach).await;
    };
    let to = match session.resolve(set).await {
        Ok(to) => to,
        Err(error) => return session.refuse(said.line, &error),
    };
    let said = Invocation {
        line: said.line,
        to,
        named: true,
        depth: said.depth,
    };
    let verdict = run::end_tasks(session, &said, &Command::Detach).await;
    let left = session.read(|model| model.sets.focus.intersection(&model.tasks.live()));
    if !left.is_empty() {
        session.edit(|model| model.sets.focus = left);
    }
    verdict
}

/// Restricts an attachment to the processes of these tasks.
pub(super) fn among(spec: &AttachSpec, tasks: &IdSet) -> AttachSpec {
    let mut spec = spec.clone();
    spec.pids.retain(|(rank, _)| tasks.contains(TaskId(*rank)));
    spec
}
