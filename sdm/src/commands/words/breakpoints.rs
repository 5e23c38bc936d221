//! Breakpoints.

use crate::commands::cursor::Cursor;
use crate::commands::spec::{Completes, PLAIN, Spec};
use crate::commands::{CommandError, UserCommand as C, args};

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "break",
        short: &["b", "br", "brk"],
        usage: "break LOCATION [if COND]",
        what: "a breakpoint on the tasks in focus",
        more: "break halo.c:40\nbreak exchange if rank == 3\n[0-3] break solve",
        completes: Completes::Program,
        parse: |name, rest| args::breakpoint(rest, name, (false, false)),
        ..PLAIN
    },
    Spec {
        name: "delete",
        short: &["d"],
        usage: "delete [N...]",
        what: "removes breakpoints, or all",
        more: "[0-3] delete 1 removes it from these tasks only.",
        parse: |name, rest| numbers(name, rest).map(C::Delete),
        ..PLAIN
    },
    Spec {
        name: "disable",
        short: &["dis", "disa"],
        usage: "disable [N...]",
        what: "switches breakpoints off",
        parse: |name, rest| {
            numbers(name, rest).map(|numbers| C::Enable {
                numbers,
                enabled: false,
            })
        },
        ..PLAIN
    },
    Spec {
        name: "enable",
        usage: "enable [N...]",
        what: "switches breakpoints on",
        parse: |name, rest| {
            numbers(name, rest).map(|numbers| C::Enable {
                numbers,
                enabled: true,
            })
        },
        ..PLAIN
    },
    Spec {
        name: "hbreak",
        usage: "hbreak LOCATION [if COND]",
        what: "a breakpoint with the processor's help",
        completes: Completes::Program,
        parse: |name, rest| args::breakpoint(rest, name, (false, true)),
        ..PLAIN
    },
    Spec {
        name: "tbreak",
        short: &["tb", "tbr"],
        usage: "tbreak LOCATION [if COND]",
        what: "a breakpoint for one stop",
        completes: Completes::Program,
        parse: |name, rest| args::breakpoint(rest, name, (true, false)),
        ..PLAIN
    },
    Spec {
        name: "thbreak",
        short: &["thb"],
        usage: "thbreak LOCATION [if COND]",
        what: "the same with the processor's help",
        completes: Completes::Program,
        parse: |name, rest| args::breakpoint(rest, name, (true, true)),
        ..PLAIN
    },
];

fn numbers(name: &'static str, rest: &mut Cursor<'_>) -> Result<Vec<u32>, CommandError> {
    rest.take_word("breakpoints");
    args::numbers(rest, name)
}
