//! System calls of the keeper and its client: the size of a terminal, and a copy of a descriptor.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use nix::libc;
use portable_pty::MasterPty;

use crate::wire::Size;

/// Size of the terminal `fd`; 24 by 80 if unknown.
pub(crate) fn terminal_size(fd: &impl AsRawFd) -> Size {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: TIOCGWINSZ writes one `winsize`, to `size`.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    if result != 0 || size.ws_col == 0 || size.ws_row == 0 {
        return Size {
            rows: 24,
            columns: 80,
        };
    }
    Size {
        rows: size.ws_row,
        columns: size.ws_col,
    }
}

/// Duplicates the descriptor of a pseudo-terminal.
pub(crate) fn duplicate(master: &dyn MasterPty) -> io::Result<OwnedFd> {
    let fd = master
        .as_raw_fd()
        .ok_or_else(|| io::Error::other("the pseudo-terminal has no descriptor"))?;
    // SAFETY: `master` keeps it open across the call.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
}
