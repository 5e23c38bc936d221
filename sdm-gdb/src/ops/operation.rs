//! Finds the function that started the nonblocking collective operation of a request, in the user's source file.

use sdm_debug::calls::started_collectives;
use sdm_debug::probe::{ArgumentRole, CallArgument};
use sdm_mpi::fortran_name;

use super::ranks::Place;

/// Maximum number of different functions that start operations with the same request.
const FUNCTIONS_MAX: usize = 4;

/// The functions in the source that can have started the operation of a request, as arguments of the call that waits
/// for it. The library's request does not record the function. Empty if the source has no such function, or more than
/// `FUNCTIONS_MAX`.
pub(super) fn operations(place: &Place<'_>, request: Option<&str>) -> Vec<CallArgument> {
    let Some(request) = request else {
        return Vec::new();
    };
    let text = place.user.file_text(place.gdb);
    let found = text.map(|text| started_collectives(&text, request));
    let found = found.filter(|found| found.len() <= FUNCTIONS_MAX);
    let named = found.into_iter().flatten().map(|name| CallArgument {
        expression: fortran_name(&name).unwrap_or(name),
        number: None,
        ..CallArgument::hidden(ArgumentRole::Operation, 0)
    });
    named.collect()
}
