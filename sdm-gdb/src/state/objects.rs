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
    /// The elements as gdb lists them.
    #[default]
    Plain,
    /// The elements of a contiguous copy, whose indices begin at 1. The field has the lower bounds of the array itself.
    Copied { lows: Vec<i64> },
    /// A variable object for each element of an array of structures. The fields are the array's bounds.
    Single { lows: Vec<i64>, highs: Vec<i64> },
    /// No elements, because gdb reads them wrong.
    Refused,
}
