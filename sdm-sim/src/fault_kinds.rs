//! The kinds of faults that a simulated world can have.

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// A connection breaks, and both ends notice.
    Reset,
    /// Bytes are changed in transit.
    Tamper,
    /// A connection gets slow.
    SlowLink,
    /// A process dies, but its host stays up.
    Crash,
    /// A process and its parent crash at the same moment.
    CrashPair,
    /// A process crashes, and then its parent while the parent adopts the children of the process.
    CrashAdopter,
    /// About a third of all processes crash, servers only.
    CrashMany,
    /// A process that is no member of the session connects.
    Stranger,
    /// The user of the tree accepts no output for some time.
    PauseDelivery,
    /// A process is stopped for a time too short to count as silent.
    Stop,
    /// A process is stopped for a time long enough to count as silent.
    StopLong,
    /// A process is stopped and resumed repeatedly.
    Slow,
    /// Bytes in one direction of a connection are delayed.
    BlockOneWay,
    /// Bytes in both directions of a connection are delayed.
    BlockBothWays,
    /// A host is gone without any notice.
    CrashHost,
    /// Some servers are cut off from the others.
    Island,
}

impl Fault {
    pub(crate) const COUNT: usize = 16;
    pub(crate) const ALL: [Fault; Self::COUNT] = [
        Self::Reset,
        Self::Tamper,
        Self::SlowLink,
        Self::Crash,
        Self::CrashPair,
        Self::CrashAdopter,
        Self::CrashMany,
        Self::Stranger,
        Self::PauseDelivery,
        Self::Stop,
        Self::StopLong,
        Self::Slow,
        Self::BlockOneWay,
        Self::BlockBothWays,
        Self::CrashHost,
        Self::Island,
    ];

    /// True if every affected member notices the fault at once. Then no living member may be given up.
    pub(crate) fn is_quick(self) -> bool {
        !matches!(
            self,
            Self::Stop
                | Self::StopLong
                | Self::Slow
                | Self::BlockOneWay
                | Self::BlockBothWays
                | Self::CrashHost
                | Self::Island
        )
    }
}
