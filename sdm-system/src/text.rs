//! Text for messages.

/// What somebody has typed or named, without what would steer a terminal or begin another line: `\x1b` stands for an escape.
#[must_use]
pub fn visible(text: &str) -> String {
    let shown = |c: char| match c.is_control() {
        true => format!("\\x{:02x}", u32::from(c)),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}
