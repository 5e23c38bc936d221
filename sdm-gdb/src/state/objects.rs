//! The variable objects that were made in gdb.

/// A variable object in gdb.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    /// A Fortran value, whose arrays gdb may list wrong; `None` in other languages.
    pub(crate) fortran: Option<FortranObject>,
}

/// A variable object of a Fortran value.
#[derive(Clone, Debug, Default)]
pub(crate) struct FortranObject {
    pub(crate) expression: String,
    /// MI's options for its thread and frame; `None` once the program has run since.
    pub(crate) place: Option<String>,
    pub(crate) layout: Layout,
}

/// The way to list the elements of a Fortran value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Layout {
    /// As gdb lists them.
    #[default]
    Plain,
    /// From a contiguous copy, whose indices begin at 1; these are the lower bounds of the array itself.
    Copied { lows: Vec<i64> },
    /// Each element by an object of its own, for an array of structures: its bounds.
    Single { lows: Vec<i64>, highs: Vec<i64> },
    /// Not at all, as gdb reads them wrong.
    Refused,
}
