//! `sdm stacks`: a session that attaches, shows merged stacks and leaves.

use sdm_debug::Command;
use sdm_debug::command::AttachSpec;

use super::ending::StacksCode;
use super::run::answer;
use super::{SessionHandle, Verdict, ask, attach};

/// Attaches to processes without changing them, shows their merged stacks, and leaves them.
pub(super) async fn show_stacks_of(
    session: &SessionHandle,
    spec: AttachSpec,
    full: bool,
) -> StacksCode {
    let all = session.all();
    let since = session.interrupts();
    let (verdict, attached) = attach::attach_quietly(session, spec, &all).await;
    let mut code = if verdict == Verdict::Done {
        StacksCode::Agree
    } else {
        StacksCode::Error
    };
    if attached.is_empty() || session.is_over() {
        return code_of_nothing(session, since);
    }
    if !session.interrupted_since(since) {
        let (verdict, open) = session
            .ask_quietly("stacks", &attached, &Command::Stacks { full })
            .await;
        if verdict != Verdict::Done {
            code = StacksCode::Error;
        }
        if session.is_over() {
            return code_of_nothing(session, since);
        }
        if let Some(open) = open {
            code = code.of_stacks(open.gathered.stacks().as_ref());
            session.show(&answer(open.gathered, full));
        }
    }
    let whole = !session.interrupted_since(since);
    let (verdict, open) = session
        .ask_quietly("detach", &attached, &Command::Detach)
        .await;
    if verdict != Verdict::Done {
        code = StacksCode::Error;
    }
    if let Some(open) = open {
        ask::show_unless_all_well(session, open);
    }
    if whole { code } else { StacksCode::Interrupted }
}

/// The exit code where there are no stacks.
pub(super) fn code_of_nothing(session: &SessionHandle, since: u64) -> StacksCode {
    if session.interrupted_since(since) && !session.is_over() {
        StacksCode::Interrupted
    } else {
        StacksCode::Error
    }
}
