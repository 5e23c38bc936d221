//! Durations as text.

/// A duration as Slurm writes it: `3:07`, `1:02:03`, `2-01:02:03`.
#[must_use]
pub fn span(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (hours, minutes, seconds) = (rest / 3600, rest / 60 % 60, rest % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_slurm_format() {
        for (seconds, text) in [
            (7, "0:07"),
            (187, "3:07"),
            (3_723, "1:02:03"),
            (176_523, "2-01:02:03"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }
}
