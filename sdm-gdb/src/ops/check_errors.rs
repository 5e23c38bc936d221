//! Errors in the use of MPI, as reported by a program that runs under `sdm-check`.

use sdm_check::{Error, Suppressions};
use sdm_debug::reply::{Stop, StopReason};

use super::memory::from_hex;
use super::registers::FIRST_ARGUMENT;
use crate::gdb::Gdb;
use crate::text::base_name;

/// Size of the library's text buffer, in bytes.
const TEXT_BYTES: u32 = 512;

/// The MPI usage error that the checking library has passed to its error function, at which the program is stopped.
/// `None` if it cannot be read.
pub(super) async fn read(gdb: &Gdb) -> Option<String> {
    let error = passed(gdb).await?;
    let mut places = Vec::new();
    for address in error.addresses() {
        let place = place_before(gdb, address).await;
        let place = place.map(|it| format!("{}:{}", base_name(&it.file), it.line));
        places.push((address, place));
    }
    let place = |address| {
        let mut known = places.iter();
        known.find(|(of, _)| *of == address)?.1.clone()
    };
    Some(error.with_places(place))
}

/// The error as the library has passed it, with addresses in place of source lines; `None` if it cannot be read.
async fn passed(gdb: &Gdb) -> Option<Error> {
    let line = format!("-data-read-memory-bytes {FIRST_ARGUMENT} {TEXT_BYTES}");
    let results = gdb.mi(line).await.ok()?;
    let block = results.tuples("memory").next()?;
    let bytes = from_hex(block.text("contents")?)?;
    let said = bytes.split(|byte| *byte == 0).next()?;
    Error::read(&String::from_utf8_lossy(said))
}

/// A source line and its function.
struct CallPlace {
    function: String,
    file: String,
    line: u32,
}

/// The source line and the function of the call that returns to this address; `None` without debug information.
async fn place_before(gdb: &Gdb, after: u64) -> Option<CallPlace> {
    let from = after.checked_sub(1)?;
    let line = format!("-data-disassemble -s {from} -e {after} -- 5");
    let results = gdb.mi(line).await.ok()?;
    let place = results.tuples("asm_insns").next()?;
    let instruction = place.tuples("line_asm_insn").next();
    let function = instruction.and_then(|it| it.text("func-name").map(str::to_owned));
    let function = function.unwrap_or_default();
    Some(CallPlace {
        // Of C++ it has its parameters, which the name in a frame has not.
        function: function.split('(').next().unwrap_or_default().to_owned(),
        file: place.text("fullname").or(place.text("file"))?.to_owned(),
        line: place.text("line")?.parse().ok()?,
    })
}

/// True for an MPI usage error that the user has suppressed. A rule can name the place of the call that reports the
/// error, or a place in the error's text, such as the call that created a leaked object.
pub(super) async fn is_suppressed(gdb: &Gdb, stop: &Stop) -> bool {
    let StopReason::Finding(finding) = &stop.reason else {
        return false;
    };
    let Some(rules) = gdb.get().breakpoints.check.clone() else {
        return false;
    };
    if !finding.is_of_check() || rules == Suppressions::default() {
        return false;
    }
    let Some(error) = passed(gdb).await else {
        return false;
    };
    let hides = |it: &CallPlace| {
        let function = (!it.function.is_empty()).then_some(it.function.as_str());
        let place = (!it.file.is_empty()).then_some((it.file.as_str(), it.line));
        rules.hides(error.number, function, place)
    };
    let own = stop.frame.as_ref().map(|frame| CallPlace {
        function: frame.function.clone(),
        file: match frame.path.as_str() {
            "" => frame.file.clone(),
            path => path.to_owned(),
        },
        line: frame.line,
    });
    if own.as_ref().is_some_and(hides) || rules.hides(error.number, None, None) {
        return true;
    }
    for address in error.addresses() {
        if place_before(gdb, address).await.as_ref().is_some_and(hides) {
            return true;
        }
    }
    false
}
