//! Commands that select tasks: `focus`, `defset` and the like.

use crate::commands::cursor::Cursor;
use crate::commands::set::{SetExpr, Until, check_name};
use crate::commands::spec::{Completes, PLAIN, Spec};
use crate::commands::{CommandError, UserCommand as C};

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "defset",
        usage: "defset NAME SET",
        what: "gives a set of ranks a name: @NAME",
        more: "defset workers all!0\n[@workers] bt\ndefset odd @if:(rank % 2 == 1)\nThe set is evaluated once, now. `info sets` shows all sets.",
        completes: Completes::Sets,
        parse: defset,
        ..PLAIN
    },
    Spec {
        name: "focus",
        usage: "focus [SET]",
        what: "sets the focus: the ranks that commands go to",
        more: "focus 0-3,7\nfocus all\nfocus @prev: the previous focus\nfocus 3.2: thread 2 of rank 3\nWithout a set: shows the focus.",
        completes: Completes::Sets,
        parse: |_, rest| {
            if rest.is_empty() {
                return Ok(C::Focus(None));
            }
            Ok(C::Focus(Some(SetExpr::take(rest, Until::End)?)))
        },
        ..PLAIN
    },
    Spec {
        name: "freeze",
        short: &["hold"],
        usage: "freeze [SET]",
        what: "freezes ranks: no command continues them",
        more: "freeze 0\ncontinue: continues all but rank 0\n`thaw` releases them. Without a set: the ranks in focus.",
        completes: Completes::Sets,
        parse: |_, rest| set_or_focus(rest).map(|to| C::Hold { to, on: true }),
        ..PLAIN
    },
    Spec {
        name: "thaw",
        short: &["release"],
        usage: "thaw [SET]",
        what: "ends `freeze`",
        completes: Completes::Sets,
        parse: |_, rest| set_or_focus(rest).map(|to| C::Hold { to, on: false }),
        ..PLAIN
    },
    Spec {
        name: "undefset",
        usage: "undefset NAME",
        what: "removes the name of a set",
        parse: |name, rest| match rest.word().trim_start_matches('@') {
            "" => Err(rest.error(format!("{name}: expected a set's name"))),
            word => Ok(C::ForgetSet(word.to_owned())),
        },
        ..PLAIN
    },
];

fn defset(name: &'static str, rest: &mut Cursor<'_>) -> Result<C, CommandError> {
    let here = *rest;
    let word = rest.word().trim_start_matches('@');
    if word.is_empty() {
        return Err(here.error(format!("{name}: expected a name, then a set")));
    }
    check_name(word).map_err(|why| here.error(format!("{name}: {why}")))?;
    if rest.is_empty() {
        return Err(rest.error(format!("{name}: expected a set after the name")));
    }
    Ok(C::DefineSet {
        name: word.to_owned(),
        set: SetExpr::take(rest, Until::End)?,
    })
}

pub(super) fn set_or_focus(rest: &mut Cursor<'_>) -> Result<Option<SetExpr>, CommandError> {
    if rest.is_empty() {
        return Ok(None);
    }
    SetExpr::take(rest, Until::End).map(Some)
}
