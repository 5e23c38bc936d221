//! gdb's error and status messages by which the driver decides, with the gdb versions that print them in the C locale.
//! MI has no codes for these.

use std::collections::BTreeSet;

use sdm_debug::{Failure, FailureCode};

/// The meaning of a gdb error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wording {
    /// gdb has aborted a command for reasons that it has printed before.
    Aborted,
    /// The kernel has refused gdb's write of registers.
    WriteFailed,
    /// gdb is not allowed to call functions in the program.
    MayNotCall,
    /// A value is larger than gdb may read.
    ValueTooLarge,
    /// The rows of an array are of a length that gdb does not know, as of a parameter `double a[n][m]` of C.
    UnknownRows,
    /// An expression names a member of a whole array.
    MemberOfMany,
    /// The compiler has put an operator of C++ into its callers only.
    NoOperator,
    /// The program does not have the location of a breakpoint: gdb would ask whether to make it pending.
    NoSuchPlace,
    /// The outermost frame cannot be left.
    Outermost,
    /// A function that gdb has called did not return, and gdb has put the program back where it was before the call.
    ContextRestored,
}

/// The meaning of an error, a part of its text, and the first and last major version of gdb known to print it.
const WORDINGS: [(Wording, &str, u32, u32); 14] = [
    (Wording::Aborted, "Command aborted.", 7, 18),
    (
        Wording::WriteFailed,
        "Couldn't write extended state status",
        8,
        13,
    ),
    (Wording::MayNotCall, "may-call-functions is off", 8, 18),
    (Wording::ValueTooLarge, "max-value-size", 8, 18),
    (
        Wording::UnknownRows,
        "Cannot perform pointer math on incomplete type",
        8,
        18,
    ),
    (
        Wording::MemberOfMany,
        "Attempt to extract a component of a value that is not a structure.",
        8,
        18,
    ),
    (Wording::NoOperator, "Could not find operator", 8, 18),
    (Wording::NoSuchPlace, "No source file named ", 7, 18),
    (Wording::NoSuchPlace, "No line ", 7, 18),
    (Wording::NoSuchPlace, "No compiled code for line ", 14, 18),
    (Wording::NoSuchPlace, "No symbol table is loaded", 7, 18),
    // The text has the name of a C++ or Fortran function in front, as requested.
    (Wording::NoSuchPlace, "\" not defined", 7, 18),
    (
        Wording::Outermost,
        "not meaningful in the outermost frame",
        7,
        18,
    ),
    (Wording::ContextRestored, "has restored the", 7, 18),
];

/// The meaning of an error text; `None` if it is not known.
pub(crate) fn wording(text: &str) -> Option<Wording> {
    let found = WORDINGS.iter().find(|(_, part, ..)| text.contains(part));
    found.map(|(wording, ..)| *wording)
}

/// The failure of a command that makes a breakpoint; its code is `NoSuchPlace` if the location is missing.
pub(crate) fn about_a_place(failure: Failure) -> Failure {
    let is_place = wording(&failure.text) == Some(Wording::NoSuchPlace);
    match failure.code {
        FailureCode::Gdb if is_place => Failure {
            code: FailureCode::NoSuchPlace,
            ..failure
        },
        _ => failure,
    }
}

/// True for gdb's message right before it stops because a breakpoint condition cannot be evaluated. The reason
/// follows. `Error in testing breakpoint condition 1:` up to gdb 12, `Error in testing condition for breakpoint 1:`
/// from 13 to 18.
pub(crate) fn is_untested(text: &str) -> bool {
    // gdb 18 can put a sign in front of it.
    text.contains("Error in testing ")
}

/// True if an error names the file itself, so that it need not be added.
pub(crate) fn names(text: &str, file: &[u8]) -> bool {
    text.contains(&*String::from_utf8_lossy(file))
}

/// The signal that gdb reports as passed; `None` for other messages. With several threads the thread's number and name
/// precede it. gdb 7 to 18 print it so.
pub(crate) fn passed_signal<'a>(passed: &BTreeSet<String>, text: &'a str) -> Option<&'a str> {
    let (who, text) = text.split_once(" received signal ")?;
    let is_thread = who.starts_with(|first: char| first.is_ascii_digit());
    let (name, _) = text.split_once(',')?;
    if !who.is_empty() && !is_thread {
        return None;
    }
    passed.contains(name).then_some(name)
}

/// A remark for users on gdb's message about a fork or a new program; `None` for other texts. gdb 13 to 18 print these
/// messages.
pub(crate) fn remark(text: &str) -> Option<String> {
    if text.starts_with("[Detaching after fork from child process")
        || text.starts_with("[Detaching after vfork from child process")
    {
        return Some("the process has forked a child that runs without the debugger".to_owned());
    }
    if text.starts_with("[Attaching after ") && text.contains("fork to child process") {
        return Some("the debugger now follows the child that the process has forked".to_owned());
    }
    let (process, program) = text.trim_end().split_once(" is executing new program: ")?;
    let name = crate::text::base_name(program);
    process
        .starts_with("process ")
        .then(|| format!("the process executes {name} now"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::signals::passed_at_first;

    #[test]
    fn condition_evaluation_errors_are_recognized() {
        assert!(is_untested("Error in testing breakpoint condition 1:\n"));
        assert!(is_untested(
            "Error in testing condition for breakpoint 1:\n"
        ));
        assert!(!is_untested("Cannot access memory at address 0x0\n"));
    }

    #[test]
    fn known_gdb_errors_are_classified() {
        let check = |text, expect| assert_eq!(wording(text), expect, "{text}");
        check("Command aborted.", Some(Wording::Aborted));
        let text = "Couldn't write extended state status: Bad address.";
        check(text, Some(Wording::WriteFailed));
        let text = "Cannot call functions in the program: may-call-functions is off.";
        check(text, Some(Wording::MayNotCall));
        let text = "value requires 80000 bytes, which is more than max-value-size";
        check(text, Some(Wording::ValueTooLarge));
        let text = "Cannot perform pointer math on incomplete types, try casting to a known type, or void *.";
        check(text, Some(Wording::UnknownRows));
        check("Could not find operator[].", Some(Wording::NoOperator));
        let text = "\"finish\" not meaningful in the outermost frame.";
        check(text, Some(Wording::Outermost));
        for text in [
            "No source file named nosuch.c.",
            "No line 999 in file \"halo.c\".",
            "No line 999 in the current file.",
            "No compiled code for line 999 in file \"halo.c\".",
            "No symbol table is loaded.  Use the \"file\" command.",
            "Function \"nowhere\" not defined.",
            "Function \"nowhere\" not defined in \"halo.c\".",
        ] {
            check(text, Some(Wording::NoSuchPlace));
        }
        for text in [
            "The program being debugged was signaled while in a function called from GDB.\nGDB has restored the context to what it was before the call.",
            "GDB blocked this call in order\nto prevent the program from being terminated, and has restored the\ncontext to its original state before the call.",
        ] {
            check(text, Some(Wording::ContextRestored));
        }
        check("No symbol \"x\" in current context.", None);
    }

    #[test]
    fn passed_signals_are_distinguished_from_stops() {
        let passed = passed_at_first();
        let check = |text, expect| assert_eq!(passed_signal(&passed, text), expect, "{text}");
        check(" received signal SIGUSR1, User defined.\n", Some("SIGUSR1"));
        check(
            " received signal SIG40, Real-time event 40.\n",
            Some("SIG40"),
        );
        check(" received signal SIGSEGV, Segmentation fault.\n", None);
        check(
            "2 \"a b\" received signal SIGTERM, Terminated.\n",
            Some("SIGTERM"),
        );
        check("received signal SIGUSR1", None);
        check("it received signal SIGUSR1, says the program", None);
    }

    #[test]
    fn fork_and_exec_messages_of_gdb_are_reworded() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(remark(text).as_deref(), expect, "{text}");
        };
        let forked = Some("the process has forked a child that runs without the debugger");
        check("[Detaching after fork from child process 7]\n", forked);
        check("[Detaching after vfork from child process 7]\n", forked);
        check("[Detaching after fork from parent process 7]\n", None);
        check(
            "[Attaching after Thread 0x7ffff7dd1740 (LWP 7) fork to child process 8]\n",
            Some("the debugger now follows the child that the process has forked"),
        );
        check(
            "process 7 is executing new program: /usr/bin/true\n",
            Some("the process executes true now"),
        );
        check("it is executing new program: x\n", None);
    }
}
