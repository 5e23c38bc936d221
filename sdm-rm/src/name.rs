//! Check of the names of clusters and of their types.

/// The longest name of a cluster, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// True for a text that can be a file's name and a word of a command line.
pub(crate) fn is_word(text: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let fits = (1..=NAME_BYTES_MAX).contains(&text.len());
    fits && text.chars().all(good) && !text.starts_with(['.', '-'])
}
