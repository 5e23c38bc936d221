//! What is done to several.

use super::error::ClusterError;
use crate::sink::complain;

/// It could not be done: there is no such job, or its manager has refused.
pub(super) const REFUSED: u8 = 1;

/// Does it to all that it can be done to; why another cannot is said for each.
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
