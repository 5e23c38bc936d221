//! Reads the error that a sanitizer has found in the program.
//!
//! The sanitizer's runtime has functions for this, which read the recorded error and take no lock. No other thread runs
//! meanwhile.

use sdm_debug::quotes::bare;
use sdm_debug::reply::{Access, Finding};

use super::frames::FRAMES_MAX;
use super::language::IN_C;
use super::output::unchecked;
use super::registers::FIRST_ARGUMENT;
use crate::gdb::Gdb;
use crate::state::internal::Finder;
use sdm_mi::Results;

/// Maximum length of the text of a finding, in bytes.
const KIND_BYTES_MAX: usize = 256;

/// Distance below the stack pointer, in bytes, of the memory for results of called runtime functions. These functions
/// do not use the stack so far down, and the smallest stack of a thread is larger.
pub(super) const BELOW: u32 = 12 << 10;

/// Reads the error; `None` if it is reported elsewhere, or cannot be read.
pub(crate) async fn read(gdb: &Gdb, finder: Finder) -> Option<Finding> {
    let (tool, kind) = match finder {
        Finder::Check => (
            Finding::MPI_CHECK.to_owned(),
            super::check_errors::read(gdb).await?,
        ),
        Finder::Summary => {
            let text = text(gdb, &format!("(char*){FIRST_ARGUMENT}")).await;
            let (tool, kind) = summary(text.as_deref().unwrap_or_default());
            if tool == UNDEFINED {
                // [`Finder::Undefined`] reports the error too. The summary is a second report, which a program can
                // request.
                return None;
            }
            (tool.to_owned(), kind.to_owned())
        }
        Finder::Undefined => {
            let kind = undefined(gdb).await;
            (UNDEFINED.to_owned(), kind)
        }
    };
    let access = match (finder, tool.as_str()) {
        (Finder::Summary, ADDRESS) => noted_access(gdb).await,
        _ => None,
    };
    let access = match (finder, access) {
        (Finder::Summary, None) => called(gdb, access_of).await,
        (_, access) => access,
    };
    Some(Finding {
        tool,
        kind: bounded(kind),
        access,
    })
}

const ADDRESS: &str = "AddressSanitizer";
const UNDEFINED: &str = "UndefinedBehaviorSanitizer";

/// The error that UBSan is about to print, without the parts that differ between tasks.
async fn undefined(gdb: &Gdb) -> String {
    let slot = |number: u32| format!("((char**)$sp - {})", (BELOW >> 3) - number);
    let slots: Vec<String> = (0..6).map(slot).collect();
    let call = format!(
        "((void(*)(void*,void*,void*,void*,void*,void*))__ubsan_get_current_report_data)({}), *{}",
        slots.join(","),
        slots[1],
    );
    let said = alone(gdb, vec![call]).await.into_iter().next().flatten();
    if let Some(text) = said.as_deref().and_then(quoted) {
        // The text begins with a capital letter here, but not in the printed report.
        let mut text = without_values(&text);
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        return text;
    }
    // The name of the handler, as in `__ubsan_handle_add_overflow`, names the error.
    let handler = called(gdb, |name| {
        let name = name.strip_prefix("__ubsan_handle_")?;
        let name = name.strip_suffix("_abort").unwrap_or(name);
        Some(name.replace('_', " "))
    });
    handler
        .await
        .unwrap_or_else(|| "undefined behavior".to_owned())
}

/// The access that ASan has recorded; `None` for an error without an access, for which ASan gives the size 0.
async fn noted_access(gdb: &Gdb) -> Option<Access> {
    let call = |what| format!("((unsigned long(*)(void))__asan_get_report_access_{what})()");
    // The returned type is an `int`, so the upper half of the register is undefined.
    let type_of = "((int(*)(void))__asan_get_report_access_type)()".to_owned();
    let values = alone(gdb, vec![call("size"), type_of]).await;
    let mut numbers = values.iter().map(|value| value.as_deref()?.parse().ok());
    let size_bytes: u64 = numbers.next()??;
    let is_write = numbers.next()?? != 0;
    (size_bytes > 0).then_some(Access {
        is_write,
        size_bytes,
    })
}

/// Evaluates calls into the program while its other threads stay stopped. The value of a failed call is `None`. Empty
/// if gdb cannot keep these threads stopped.
async fn alone(gdb: &Gdb, calls: Vec<String>) -> Vec<Option<String>> {
    let asked = gdb.clone();
    gdb.finish(async move {
        let shown = asked.mi("-gdb-show scheduler-locking").await;
        let before = shown
            .ok()
            .and_then(|shown| Some(shown.text("value")?.to_owned()));
        let Some(before) = before else {
            return Vec::new();
        };
        if asked.mi("-gdb-set scheduler-locking on").await.is_err() {
            return Vec::new();
        }
        let mut values = Vec::new();
        for call in calls {
            values.push(evaluated(&asked, &call).await);
        }
        // gdb accepted this value before.
        let _ = asked
            .mi(format!("-gdb-set scheduler-locking {before}"))
            .await;
        values
    })
    .await
}

pub(super) async fn evaluated(gdb: &Gdb, expression: &str) -> Option<String> {
    let said = unchecked(gdb, IN_C, expression).await.ok()?;
    Some(bare(&said).to_owned())
}

/// The C string to which an expression points; `None` if it cannot be read.
async fn text(gdb: &Gdb, expression: &str) -> Option<String> {
    quoted(&evaluated(gdb, expression).await?)
}

/// The first result of `says` for the names of the thread's functions, innermost first; `None` if it has none for any
/// name.
async fn called<T>(gdb: &Gdb, says: impl Fn(&str) -> Option<T>) -> Option<T> {
    let line = format!("-stack-list-frames 0 {FRAMES_MAX}");
    let results: Results = gdb.mi(line).await.ok()?;
    let mut frames = results.tuples("stack");
    frames.find_map(|frame| says(last_name(frame.text("func")?)))
}

/// The function of a library that the user's code has called and in which the error was found, such as `memcpy`. `None`
/// for an error in the use of MPI, whose text names the function.
pub(super) fn inside(found: &Finding, inside: Option<String>) -> Option<String> {
    let inside = inside.filter(|_| !found.is_of_check());
    inside.and_then(called_by_user)
}

/// The function, if the user has called it: `memcpy`. `None` for a check that the compiler has inserted before an
/// access.
fn called_by_user(inside: String) -> Option<String> {
    let name = last_name(&inside).trim_start_matches('_');
    let tools = ["asan_", "hwasan_", "tsan_", "ubsan_"];
    let Some(rest) = tools.iter().find_map(|tool| name.strip_prefix(tool)) else {
        return Some(inside);
    };
    let compiled = [
        "report_",
        "handle_",
        "exp_",
        "unaligned_",
        "load",
        "store",
        "read",
        "write",
    ];
    let is_compiled = compiled.iter().any(|word| rest.starts_with(word));
    (!is_compiled).then(|| rest.to_owned())
}

/// A function's name without namespaces: gcc's runtimes have debug information, in which `__asan_load4` has one.
fn last_name(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// The string in gdb's notation `0x55d0 "text"`; `None` for other notations.
fn quoted(value: &str) -> Option<String> {
    let (_, rest) = value.split_once('"')?;
    let (text, _) = rest.rsplit_once('"')?;
    Some(text.replace("\\\"", "\"").replace("\\\\", "\\"))
}

/// The tool and the kind of error from `SUMMARY: AddressSanitizer: heap-buffer-overflow /src/a.c:4:8 in sum`.
fn summary(text: &str) -> (&str, &str) {
    let text = text.strip_prefix("SUMMARY: ").unwrap_or(text).trim();
    let Some((tool, said)) = text.split_once(": ") else {
        return ("sanitizer", if text.is_empty() { "an error" } else { text });
    };
    // The place is also in the user's frame, and more precise there.
    let is_place = |word: &str| {
        let path = word.starts_with('/') || word.starts_with("(/") || word.contains("+0x");
        let line = word.rsplit(':').next().is_some_and(is_number) && word.contains(':');
        path || line || word == "??"
    };
    let end = said
        .match_indices(' ')
        .map(|(at, _)| at)
        .find(|at| said[at + 1..].split(' ').next().is_some_and(is_place));
    let kind = &said[..end.unwrap_or(said.len())];
    (tool, kind.trim_end_matches('.'))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The access for which `__asan_report_load4`, `__tsan_unaligned_write8` and the like are called; `None` for other
/// functions.
fn access_of(function: &str) -> Option<Access> {
    let tools = ["__asan_", "__tsan_", "__hwasan_"];
    let mut rest = tools.iter().find_map(|tool| function.strip_prefix(tool))?;
    for word in ["report_", "exp_", "unaligned_"] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let words = [
        ("load", false),
        ("read", false),
        ("store", true),
        ("write", true),
    ];
    let (rest, is_write) = words
        .iter()
        .find_map(|(word, is_write)| Some((rest.strip_prefix(word)?, *is_write)))?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    Some(Access {
        is_write,
        size_bytes: rest[..digits].parse().unwrap_or(0),
    })
}

/// The text with each number outside quotes replaced by `N`: ranks with the same error have different values.
fn without_values(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    let (mut in_quotes, mut in_word) = (false, false);
    while let Some(next) = rest.chars().next() {
        if next.is_ascii_digit() && !in_quotes && !in_word {
            let more = |c: char| !(c.is_ascii_alphanumeric() || c == '.');
            let mut end = rest.find(more).unwrap_or(rest.len());
            // A number such as `1e+30`.
            if rest[..end].ends_with('e') && rest[end..].starts_with(['+', '-']) {
                let exponent = rest[end + 1..].find(more);
                end = exponent.map_or(rest.len(), |length| end + 1 + length);
            }
            shown.push('N');
            rest = &rest[end..];
            continue;
        }
        in_quotes ^= next == '\'';
        in_word = next.is_alphanumeric() || next == '_';
        shown.push(next);
        rest = &rest[next.len_utf8()..];
    }
    shown
}

fn bounded(mut text: String) -> String {
    if text.len() > KIND_BYTES_MAX {
        let mut end = KIND_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sanitizer_summaries_are_parsed() {
        let check = |text, tool, kind| assert_eq!(summary(text), (tool, kind), "{text}");
        let asan = ADDRESS;
        check(
            "SUMMARY: AddressSanitizer: heap-buffer-overflow /tmp/a b.c:4 in sum",
            asan,
            "heap-buffer-overflow",
        );
        check(
            "SUMMARY: AddressSanitizer: double-free (/lib/libasan.so.8+0xb54ee) in free",
            asan,
            "double-free",
        );
        check(
            "SUMMARY: AddressSanitizer: 40 byte(s) leaked in 1 allocation(s).",
            asan,
            "40 byte(s) leaked in 1 allocation(s)",
        );
        check(
            "SUMMARY: ThreadSanitizer: data race race.c:4:68 in work",
            "ThreadSanitizer",
            "data race",
        );
        check(
            "SUMMARY: ThreadSanitizer: lock-order-inversion (potential deadlock) /x.c:1 in f",
            "ThreadSanitizer",
            "lock-order-inversion (potential deadlock)",
        );
        check("SUMMARY: AddressSanitizer: SEGV ??:0 in f", asan, "SEGV");
        check("", "sanitizer", "an error");
        check("odd", "sanitizer", "odd");
    }

    #[test]
    fn kind_and_size_of_access_follow_from_sanitizer_function() {
        let check = |name, expect: Option<(bool, u64)>| {
            let access = access_of(name).map(|access| (access.is_write, access.size_bytes));
            assert_eq!(access, expect, "{name}");
        };
        check("__asan_report_load4", Some((false, 4)));
        check("__asan_report_exp_store16", Some((true, 16)));
        check("__asan_report_store_n", Some((true, 0)));
        check("__asan_load8_noabort", Some((false, 8)));
        check("__tsan_unaligned_write2", Some((true, 2)));
        check("__tsan_read4_pc", Some((false, 4)));
        check("__tsan_func_entry", None);
        check("__asan_memcpy", None);
        check("load4", None);
    }

    #[test]
    fn called_function_is_derived_from_sanitizer_function() {
        let check = |inside: &str, expect| {
            assert_eq!(called_by_user(inside.to_owned()).as_deref(), expect);
        };
        check("memcpy", Some("memcpy"));
        check("asan_memcpy", Some("memcpy"));
        check("asan::__asan_report_load4", None);
        check("tsan_unaligned_write4", None);
        check("ubsan_handle_add_overflow", None);
        check("MPI_Send", Some("MPI_Send"));
    }

    #[test]
    fn sanitizer_message_keeps_types_and_drops_numbers() {
        let check = |text, expect| assert_eq!(without_values(text), expect);
        check(
            "signed integer overflow: 2147483645 + 7 cannot be represented in type 'int'",
            "signed integer overflow: N + N cannot be represented in type 'int'",
        );
        check(
            "index 20 out of bounds for type 'int [10]'",
            "index N out of bounds for type 'int [10]'",
        );
        check(
            "load of misaligned address 0x7ffe01 for type 'int32_t', which requires 4 byte alignment",
            "load of misaligned address N for type 'int32_t', which requires N byte alignment",
        );
        check("1e+30 is outside, utf8 -1.5e-3", "N is outside, utf8 -N");
        check("7", "N");
    }

    #[test]
    fn strings_printed_by_gdb_are_unquoted() {
        assert_eq!(
            quoted(r#"0x7f00 "a \"b\" c""#).as_deref(),
            Some("a \"b\" c")
        );
        assert_eq!(quoted("0x0"), None);
    }
}
