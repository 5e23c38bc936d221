//! Standard input of the programs: a numbered stream of bytes for each task. The user feeds it by `send`. Without a
//! prompt and without `send` in a script, it is the standard input of `sdm`, read no faster than the programs read.
use std::io;

use sdm_debug::Command;
use sdm_session::SendOptions;

use super::invocation::Invocation;
use super::model::input::{INPUT, Piece};
use super::model::open_commands::OpenCommand;
use super::{SessionHandle, Verdict};
use crate::commands::SetExpr;
use sdm_view::render::Names;

/// Notes that the programs are being started, and read the standard input of `sdm` from here on.
pub(super) fn begin_input(session: &SessionHandle) {
    let before = session.edit(|model| {
        let to = model.options.stdin_tasks.intersection(&model.all);
        let own = model.input.own.as_mut()?;
        (own.to, own.offset) = (to, 0);
        Some(std::mem::replace(&mut own.piece, Piece::Asked))
    });
    match before {
        Some(Piece::Unasked | Piece::Sent(..)) => request_input(session),
        None | Some(Piece::Asked) => {}
        Some(Piece::Held(bytes)) => pass_input(session, bytes),
        Some(Piece::Ended) => pass_input(session, Vec::new()),
    }
}

/// Passes a piece of input to the programs. An empty one closes it.
pub(super) fn pass_input(session: &SessionHandle, bytes: Vec<u8>) {
    let eof = bytes.is_empty();
    let piece = match feed(session, &bytes, eof) {
        Some(Ok(())) if eof => Piece::Ended,
        Some(Ok(())) => Piece::Asked,
        // The launcher has ended, or does not read.
        Some(Err(why)) => {
            tracing::warn!("{INPUT}: the launcher does not pass standard input on: {why}");
            Piece::Unasked
        }
        None => {
            let own = session.read(|model| {
                let own = model.input.own.as_ref()?;
                Some((own.to.clone(), own.offset))
            });
            let Some((to, offset)) = own else {
                return;
            };
            let length = bytes.len();
            let command = Command::Stdin { offset, bytes, eof };
            // A program may take its time to read it.
            let options = SendOptions::default();
            let debug = &session.shared().session;
            let id = debug.borrow_mut().send(&to, &command, &options);
            session.edit(|model| model.open.insert(id, OpenCommand::new(INPUT, &to)));
            Piece::Sent(id, length)
        }
    };
    let is_asked = piece == Piece::Asked;
    session.edit(|model| {
        if let Some(own) = &mut model.input.own {
            own.piece = piece;
        }
    });
    if is_asked {
        request_input(session);
    }
}

/// Passes input to the launcher, or closes it. None if commands carry the input.
fn feed(session: &SessionHandle, bytes: &[u8], eof: bool) -> Option<io::Result<()>> {
    session.shared().session.borrow_mut().feed(bytes, eof)
}

/// Carries out `send SET TEXT` and `send SET --eof`.
pub(super) async fn send_input(
    session: &SessionHandle,
    said: &Invocation<'_>,
    set: &SetExpr,
    text: &str,
    eof: bool,
) -> Verdict {
    let bytes = if eof {
        Vec::new()
    } else {
        format!("{text}\n").into_bytes()
    };
    if session.read(|model| model.input.own.is_some()) {
        return session.complain(
            "send: the programs read the standard input of sdm directly",
            "`send` works if it is among the commands of -c or -x, or at a prompt (-i)",
        );
    }
    if let Some(fed) = feed(session, &bytes, eof) {
        return match fed {
            Ok(()) => Verdict::Done,
            Err(why) => session.complain(
                format!("send: the launcher does not pass input on: {why}"),
                "",
            ),
        };
    }
    let to = match session.resolve(set).await {
        Ok(to) => to,
        Err(error) => return session.refuse(said.line, &error),
    };
    let unfed = session.read(|model| to.difference(&model.options.stdin_tasks));
    if !unfed.is_empty() {
        let who = Names::ranks().label(&unfed, 60);
        return session.complain(
            format!("send: standard input is empty on {who}"),
            "`--stdin SET` chooses the ranks that read standard input; the default is rank 0",
        );
    }
    let mut verdict = Verdict::Done;
    for (tasks, offset) in session.read(|model| model.input.offsets_of(&to)) {
        let command = Command::Stdin {
            offset,
            bytes: bytes.clone(),
            eof,
        };
        let (one, done) = session.ask(said.line, &tasks, &command).await;
        session.edit(|model| model.input.advance(&done, offset + bytes.len() as u64));
        if one != Verdict::Done {
            verdict = one;
        }
    }
    verdict
}

/// Requests the next piece of the programs' input.
pub(super) fn request_input(session: &SessionHandle) {
    if let Some(source) = &mut *session.shared().input.borrow_mut() {
        source.request();
    }
}
