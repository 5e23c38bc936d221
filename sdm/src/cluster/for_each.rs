//! Carries out a request for each of several jobs or clusters, and reports each failure.

use super::error::ClusterError;
use crate::sink::complain;

/// The exit code for a request that failed: there is no such job, or its manager has refused.
pub(super) const REFUSED: u8 = 1;

/// Carries out a request for each name. Failures are reported, and do not stop the others.
pub(super) fn each(
    names: &[String],
    what: impl Fn(&str) -> Result<(), ClusterError>,
) -> Result<u8, ClusterError> {
    let mut code = 0;
    for name in names {
        if let Err(error) = what(name) {
            complain(format_args!("sdm: {error}"));
            code = REFUSED;
        }
    }
    Ok(code)
}
