//! Decides by kind and owner which files an attaching gdb may open: those of root, of the caller, and of the owners of
//! the inspected programs and libraries.

pub(crate) mod sys;

pub use sys::{fopen, fopen64, open, open64, openat};

/// The kind of file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file or a directory.
    Plain,
    /// A character device, such as a terminal or `/dev/null`.
    Device,
    /// A FIFO, a socket, a disk, or a link that is not followed.
    Other,
}

impl Kind {
    /// The kind of a file with this `st_mode`.
    #[must_use]
    pub fn of(mode: u32) -> Self {
        match mode & 0o170_000 {
            0o100_000 | 0o040_000 => Self::Plain,
            0o020_000 => Self::Device,
            _ => Self::Other,
        }
    }
}

/// True if gdb may read a file of this kind that belongs to `owner`. A regular file or a directory must belong to root,
/// to the caller or to one of `owners`. These are the owners of the inspected programs and libraries, with commas
/// between. A device must belong to root or to the caller.
#[must_use]
pub fn is_readable(kind: Kind, owner: u32, caller: u32, owners: &[u8]) -> bool {
    let is_own = owner == 0 || owner == caller;
    let mut named = owners.split(|byte| *byte == b',');
    let mut is_named = || {
        named.any(|text| {
            let text = core::str::from_utf8(text).unwrap_or_default();
            text.parse() == Ok(owner)
        })
    };
    match kind {
        Kind::Plain => is_own || is_named(),
        Kind::Device => is_own,
        Kind::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_users_are_not_read() {
        let file = Kind::of(0o100_644);
        for (kind, owner, readable) in [
            (file, 0, true),
            (file, 7, true),
            (file, 8, true),
            (file, 99, true),
            (file, 9, false),
            (Kind::of(0o040_755), 9, false),
            (Kind::of(0o020_666), 0, true),
            (Kind::of(0o020_666), 8, false),
            (Kind::of(0o010_644), 7, false),
            (Kind::of(0o120_777), 0, false),
            (Kind::of(0o140_777), 0, false),
        ] {
            assert_eq!(
                is_readable(kind, owner, 7, b"8,99"),
                readable,
                "{kind:?} of {owner}"
            );
        }
        assert!(!is_readable(file, 8, 7, b""));
        assert!(!is_readable(file, 8, 7, b"88,-8,x"));
    }
}
