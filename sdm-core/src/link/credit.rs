//! Credit of the bulk lane: how many bytes each end of a link may still send, and has still to grant.
//!
//! A sender may begin a frame while its credit is above zero, so that one frame may overdraw it: a
//! frame larger than what is left never gets stuck, and a receiver holds at most its window and
//! one frame.

use crate::limits::BULK_START_BYTES;

/// All counts are bytes of bulk frames, headers included.
#[derive(Debug)]
pub(super) struct Credit {
    /// What this end may still send; below 0 after an overdraft.
    to_send: i64,
    /// What the other end may still send.
    peer_left: i64,
    /// What came and was not released.
    unreleased: i64,
    /// What may be here at once: `peer_left` + `unreleased` once all is granted.
    window: i64,
    /// Granted, not yet told.
    due: i64,
}

impl Credit {
    /// Both ends of a new link start from [`BULK_START_BYTES`]; `window` is told as soon as may be.
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

    /// A bulk frame came; false where the other end had no credit for it.
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

    /// What to tell the other end.
    pub(super) fn take_due(&mut self) -> Option<u32> {
        let bytes = u32::try_from(self.due).unwrap_or(u32::MAX);
        self.due -= i64::from(bytes);
        (bytes > 0).then_some(bytes)
    }
}
