//! Errors in the use of MPI, as reported by a program that runs under `sdm-check`.

use sdm_check::Error;
use sdm_debug::reply::{Frame, Stop, StopReason};

use super::memory::from_hex;
use super::registers::FIRST_ARGUMENT;
use crate::gdb::Gdb;
use crate::text::base_name;

/// Size of the library's text buffer, in bytes.
const TEXT_BYTES: u32 = 512;

/// The MPI usage error that the checking library has passed to its error function, at which the program is stopped.
/// `None` if it cannot be read.
pub(super) async fn read(gdb: &Gdb) -> Option<String> {
    let line = format!("-data-read-memory-bytes {FIRST_ARGUMENT} {TEXT_BYTES}");
    let results = gdb.mi(line).await.ok()?;
    let block = results.tuples("memory").next()?;
    let bytes = from_hex(block.text("contents")?)?;
    let said = bytes.split(|byte| *byte == 0).next()?;
    let said = String::from_utf8_lossy(said);
    let error = Error::read(&said)?;
    let mut places = Vec::new();
    for address in error.addresses() {
        places.push((address, line_before(gdb, address).await));
    }
    let place = |address| {
        let mut known = places.iter();
        known.find(|(of, _)| *of == address)?.1.clone()
    };
    Some(error.with_places(place))
}

/// The source line of the call that returns to this address.
async fn line_before(gdb: &Gdb, after: u64) -> Option<String> {
    let from = after.checked_sub(1)?;
    let line = format!("-data-disassemble -s {from} -e {after} -- 5");
    let results = gdb.mi(line).await.ok()?;
    let place = results.tuples("asm_insns").next()?;
    let (file, line) = (place.text("file")?, place.text("line")?);
    Some(format!("{}:{line}", base_name(file)))
}

/// True for an error that the user has suppressed.
pub(super) fn is_suppressed(gdb: &Gdb, stop: &Stop) -> bool {
    let StopReason::Finding(finding) = &stop.reason else {
        return false;
    };
    let state = gdb.get();
    let (Some(error), Some(rules)) = (Error::read(&finding.kind), &state.breakpoints.check) else {
        return false;
    };
    let frame = stop.frame.as_ref();
    let function = frame.map(|frame| frame.function.as_str());
    let file = |frame: &Frame| match frame.path.as_str() {
        "" => frame.file.clone(),
        path => path.to_owned(),
    };
    let place = frame.map(|frame| (file(frame), frame.line));
    let place = place.as_ref().map(|(file, line)| (file.as_str(), *line));
    finding.is_of_check() && rules.hides(error.number, function, place)
}
