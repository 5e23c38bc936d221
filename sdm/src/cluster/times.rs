//! Formatting of times.

use std::time::{SystemTime, UNIX_EPOCH};

use sdm_text::span;

/// The current time, in seconds of Unix time.
pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// The age of an answer, given in milliseconds: `0.3 s`, `3:07`.
pub(super) fn age(milliseconds: u64) -> String {
    match milliseconds {
        0..10_000 => format!("{}.{} s", milliseconds / 1000, milliseconds / 100 % 10),
        _ => span(milliseconds / 1000),
    }
}

/// A time, in UTC.
pub(super) fn moment(seconds: u64) -> String {
    let time = UNIX_EPOCH.checked_add(std::time::Duration::from_secs(seconds));
    let shown = time.map(|time| humantime::format_rfc3339_seconds(time).to_string());
    shown.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_moments_have_their_format() {
        assert_eq!((age(1_270), age(187_999)), ("1.2 s".into(), "3:07".into()));
        assert_eq!(moment(0), "1970-01-01T00:00:00Z");
    }
}
