//! A source location.

/// A function and where in its source it stands.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Line {
    /// The function; absent where it has no name.
    pub(crate) function: Option<String>,
    /// The file, as its compiler has been given it, where known.
    pub(crate) path: Option<String>,
    /// The line, from 1; 0 where unknown.
    pub(crate) line: u32,
    /// True where it was put into its caller's code.
    pub(crate) is_inlined: bool,
}
