//! Credit of the bulk lane: the number of bytes that each end of a link may still send, and has still to grant.
//!
//! A sender may begin a frame while its credit is above zero, so one frame may overdraw it. A frame that is
//! larger than the remaining credit is therefore never blocked for good. A receiver holds at most its window
//! and one frame.

use crate::limits::BULK_START_BYTES;

/// Credit of both ends of a link. All counts are bytes of bulk frames, headers included.
#[derive(Debug)]
pub(super) struct Credit {
    /// Credit of this end; below 0 after an overdraft.
    to_send: i64,
    /// Credit of the other end.
    peer_left: i64,
    /// Received bytes that the owner has not released.
    unreleased: i64,
    /// Maximum number of bytes in flight or unreleased here: `peer_left` + `unreleased` once all is granted.
    window: i64,
    /// Credit granted to the other end, and not sent yet.
    due: i64,
}

impl Credit {
    /// Credit of a new link. Both ends start from [`BULK_START_BYTES`]; the rest of `window` is granted as soon as
    /// possible.
    pub(super) fn new(window: u32) -> Self {
        let mut credit = Self {
            to_send: BULK_START_BYTES.into(),
            peer_left: BULK_START_BYTES.into(),
            unreleased: 0,
            window: window.into(),
            due: 0,
        };
        credit.grant();
        credit
    }

    pub(super) fn set_window(&mut self, bytes: u32) {
        self.window = bytes.into();
        self.grant();
    }

    pub(super) fn may_send(&self) -> bool {
        self.to_send > 0
    }

    pub(super) fn sent(&mut self, bytes: usize) {
        self.to_send -= i64::try_from(bytes).expect("a frame is at most 16 MiB");
    }

    pub(super) fn granted(&mut self, bytes: u32) {
        self.to_send = self.to_send.saturating_add(bytes.into());
    }

    /// Counts a received bulk frame; false if the other end had no credit for it.
    pub(super) fn received(&mut self, bytes: u32) -> bool {
        let had_credit = self.peer_left > 0;
        self.peer_left -= i64::from(bytes);
        self.unreleased += i64::from(bytes);
        had_credit
    }

    pub(super) fn release(&mut self, bytes: u32) {
        self.unreleased = (self.unreleased - i64::from(bytes)).max(0);
        self.grant();
    }

    /// Grants in lumps of a quarter window, so that credit costs few frames.
    fn grant(&mut self) {
        let room = self.window - self.peer_left - self.unreleased;
        if room >= (self.window / 4).max(1) {
            self.peer_left += room;
            self.due += room;
        }
    }

    /// Removes and returns the credit to be granted to the other end now; `None` if it is 0.
    pub(super) fn take_due(&mut self) -> Option<u32> {
        let bytes = u32::try_from(self.due).unwrap_or(u32::MAX);
        self.due -= i64::from(bytes);
        (bytes > 0).then_some(bytes)
    }
}
