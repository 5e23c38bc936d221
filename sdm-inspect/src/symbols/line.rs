//! The type of a source location: function, file and line.

/// A function with a location in its source.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Line {
    /// The function; `None` if it has no name.
    pub(crate) function: Option<String>,
    /// The path of the source file as given to the compiler; `None` if unknown.
    pub(crate) path: Option<String>,
    /// The line, from 1; 0 if unknown.
    pub(crate) line: u32,
    /// True if the function was inlined into its caller.
    pub(crate) is_inlined: bool,
}
