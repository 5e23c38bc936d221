//! Parses the arguments of `sdm pmix` that name a job and a rank.

use sdm_foreign::names::RANK_ALL;
use sdm_foreign::tool_protocol::JobPart;

use super::error::ToolError;

/// Parses `NAMESPACE` or `NAMESPACE:RANK`. Without a rank, the result names all ranks.
pub(super) fn among(text: &str) -> Result<JobPart, ToolError> {
    let (namespace, rank) = match text.rsplit_once(':') {
        None => (text, RANK_ALL),
        Some((namespace, "all")) => (namespace, RANK_ALL),
        Some((namespace, rank)) => match rank.parse() {
            Ok(rank) => (namespace, rank),
            Err(_) => return Err(ToolError::NoJob(text.to_owned())),
        },
    };
    match namespace.is_empty() || namespace.len() > 255 {
        true => Err(ToolError::NoJob(text.to_owned())),
        false => Ok(JobPart {
            namespace: namespace.to_owned(),
            rank,
        }),
    }
}
