//! `sdm stacks`: a session that shows merged stacks and detaches; and the command `stacks` of an
//! interactive session.

use sdm_debug::command::AttachSpec;

use sdm_debug::Command;

use super::exit::StacksCode;
use super::invocation::Invocation;
use super::look::{Look, LookBy, say_attached};
use super::run::answer;
use super::{SessionHandle, Verdict};

/// Reads the stacks of processes without changing them, shows the merged stacks, and detaches.
pub(super) async fn show_stacks_of(
    session: &SessionHandle,
    spec: AttachSpec,
    full: bool,
    by: LookBy,
) -> StacksCode {
    let since = session.interrupts();
    let mut look = Look::new(session, spec, full, by).await;
    let mut seen = None;
    if !look.is_over() && !session.interrupted_since(since) && !session.is_over() {
        let gathered = look.take(session).await;
        if session.is_over() {
            return code_of_nothing(session, since);
        }
        if let Some(gathered) = gathered {
            let stacks = gathered.stacks();
            seen = stacks.map(|stacks| StacksCode::Agree.of_stacks(Some(&stacks)));
            session.show(&answer(gathered, full));
        }
    }
    let whole = !session.interrupted_since(since);
    look.leave(session).await;
    match seen {
        _ if !whole && !session.is_over() => StacksCode::Interrupted,
        None => code_of_nothing(session, since),
        Some(_) if look.has_failed() => StacksCode::Error,
        Some(code) => code,
    }
}

/// The exit code if there are no stacks to show.
pub(super) fn code_of_nothing(session: &SessionHandle, since: u64) -> StacksCode {
    if session.interrupted_since(since) && !session.is_over() {
        StacksCode::Interrupted
    } else {
        StacksCode::Error
    }
}

/// `stacks [--full]`: shows the merged stacks, with `--full` completely. Tasks that gdb is not attached to
/// are read without it.
pub(super) async fn show_stacks(
    session: &SessionHandle,
    said: &Invocation<'_>,
    full: bool,
) -> Verdict {
    let (free, spec) = session.read(|model| model.without_gdb(&said.to));
    let rest = said.to.difference(&free);
    say_attached(session, &said.to, &free);
    let mut look = Look::of(spec, free, full);
    let Some(mut gathered) = look.take(session).await else {
        return Verdict::GivenUp;
    };
    let mut verdict = match look.has_failed() {
        true => Verdict::Failed,
        false => Verdict::Done,
    };
    session.edit(|model| {
        let gone = look.ended().union(look.attached());
        model.job.unattached.subtract(&gone);
    });
    if !rest.is_empty() {
        let (asked, open) = session
            .ask_quietly(said.line, &rest, &Command::Stacks { full })
            .await;
        verdict = if verdict == Verdict::Done {
            asked
        } else {
            verdict
        };
        gathered.absorb(open.map(|open| open.gathered).unwrap_or_default());
    }
    session.show(&answer(gathered, full));
    verdict
}
