//! Model of a slow network: delays the bytes of one direction of a connection by a given latency and bandwidth.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Maximum number of bytes that may be under way in one direction.
const LINE_BYTES_MAX: usize = 4 << 20;
/// Maximum queueing delay on a line, which models a full network buffer.
const WAITING_MAX: Duration = Duration::from_millis(100);
/// Size of a packet, in bytes, if the bandwidth is limited.
const PACKET_BYTES: usize = 1500;

/// Latency and bandwidth to which connections are slowed down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Delay added to each byte, each way.
    pub latency: Duration,
    /// Bandwidth in each direction, in bytes per second; `None` for no limit.
    pub bandwidth: Option<NonZeroU64>,
    /// True to delay connections between hosts only. Connections within a host are then not delayed: those over Unix
    /// sockets, and those to a host at which this member listens.
    pub between_hosts: bool,
}

impl Shape {
    /// Transmission time of a number of bytes.
    fn time_of(&self, bytes: usize) -> Duration {
        self.bandwidth.map_or(Duration::ZERO, |bandwidth| {
            let nanos = bytes as u128 * 1_000_000_000 / u128::from(bandwidth.get());
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        })
    }

    /// Number of bytes transmitted in a given time.
    fn bytes_in(&self, time: Duration) -> usize {
        self.bandwidth.map_or(usize::MAX, |bandwidth| {
            let bytes = time.as_nanos() * u128::from(bandwidth.get()) / 1_000_000_000;
            usize::try_from(bytes).unwrap_or(usize::MAX)
        })
    }
}

/// In the form `latency_us=500,bandwidth=1000000,between_hosts`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "latency_us={}", self.latency.as_micros())?;
        if let Some(bandwidth) = self.bandwidth {
            write!(f, ",bandwidth={bandwidth}")?;
        }
        if self.between_hosts {
            f.write_str(",between_hosts")?;
        }
        Ok(())
    }
}

/// A text that does not describe a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: expected a network delay such as latency_us=N,bandwidth=N,between_hosts")]
pub struct ShapeError {
    /// The text that did not parse.
    pub text: String,
}

impl FromStr for Shape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        let wrong = || ShapeError {
            text: text.to_owned(),
        };
        let mut shape = Self::default();
        for part in text.split(',') {
            match part.split_once('=') {
                Some(("latency_us", value)) => {
                    let micros = value.parse().map_err(|_| wrong())?;
                    shape.latency = Duration::from_micros(micros);
                }
                Some(("bandwidth", value)) => {
                    shape.bandwidth = Some(value.parse().map_err(|_| wrong())?);
                }
                None if part == "between_hosts" => shape.between_hosts = true,
                _ => return Err(wrong()),
            }
        }
        Ok(shape)
    }
}

/// End of a stream: `None` for a regular end, otherwise the error.
pub(super) type End = Option<std::io::ErrorKind>;

/// Bytes in flight on a line, or its end.
#[derive(Debug)]
pub(super) enum Packet {
    /// A part of the stream.
    Bytes(Vec<u8>),
    /// The end of the stream.
    End(End),
}

/// One direction of a connection.
#[derive(Debug)]
pub(super) struct Line {
    shape: Shape,
    /// Packets in flight, each with its arrival time.
    packets: VecDeque<(Instant, Packet)>,
    bytes: usize,
    /// Time from which the line accepts further bytes.
    free_at: Instant,
}

impl Line {
    pub(super) fn new(now: Instant, shape: Shape) -> Self {
        Self {
            shape,
            packets: VecDeque::new(),
            bytes: 0,
            free_at: now,
        }
    }

    /// Number of bytes that the line accepts now.
    pub(super) fn room(&self, now: Instant) -> usize {
        let waiting = self.free_at.saturating_duration_since(now);
        let left = WAITING_MAX.saturating_sub(waiting);
        if left.is_zero() || self.bytes >= LINE_BYTES_MAX {
            return 0;
        }
        let room = self.shape.bytes_in(left).max(PACKET_BYTES);
        room.min(LINE_BYTES_MAX - self.bytes)
    }

    /// Time at which half of the queue of a full line is sent; `None` if only the receiver can make room, by taking
    /// data.
    pub(super) fn room_at(&self) -> Option<Instant> {
        let half = self.free_at.checked_sub(WAITING_MAX / 2);
        (self.bytes < LINE_BYTES_MAX).then_some(half.unwrap_or(self.free_at))
    }

    /// Sends bytes over the line.
    pub(super) fn push(&mut self, now: Instant, bytes: &[u8]) {
        let size = match self.shape.bandwidth {
            Some(_) => PACKET_BYTES,
            None => bytes.len().max(1),
        };
        for part in bytes.chunks(size) {
            self.free_at = self.free_at.max(now) + self.shape.time_of(part.len());
            self.bytes += part.len();
            let due = self.free_at + self.shape.latency;
            self.packets.push_back((due, Packet::Bytes(part.to_vec())));
        }
    }

    /// Sends the end of the stream over the line.
    pub(super) fn push_end(&mut self, now: Instant, end: End) {
        let due = self.free_at.max(now) + self.shape.latency;
        self.packets.push_back((due, Packet::End(end)));
    }

    /// Arrival time of the first packet in flight; `None` if there is none.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.packets.front().map(|(due, _)| *due)
    }

    /// The first packet if it has arrived by `now`; otherwise `None`.
    pub(super) fn due(&self, now: Instant) -> Option<&Packet> {
        let (due, packet) = self.packets.front()?;
        (*due <= now).then_some(packet)
    }

    /// Removes the first `count` bytes of the first packet.
    pub(super) fn advance(&mut self, count: usize) {
        if let Some((_, Packet::Bytes(bytes))) = self.packets.front_mut() {
            self.bytes -= count;
            bytes.drain(..count);
            if bytes.is_empty() {
                self.packets.pop_front();
            }
        }
    }

    /// True if neither bytes nor the end of the stream are in transit.
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Drops all packets in flight.
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Shape {
        text.parse().expect(text)
    }

    #[test]
    fn latency_and_bandwidth_setting_is_parsed_back() {
        for text in [
            "latency_us=0",
            "latency_us=500",
            "latency_us=500,bandwidth=1000000",
            "latency_us=0,bandwidth=1,between_hosts",
        ] {
            assert_eq!(shape(text).to_string(), text);
        }
        for text in ["", "latency_us=", "bandwidth=0", "bandwidth=-1", "fast"] {
            let error = text.parse::<Shape>().unwrap_err().to_string();
            assert!(error.contains("such as latency_us="), "{text}: {error}");
        }
    }

    #[test]
    fn bytes_arrive_in_order_after_the_latency() {
        let began = Instant::now();
        let mut line = Line::new(began, shape("latency_us=2000,bandwidth=1000000"));
        line.push(began, &[1; 1000]);
        line.push(began, &[2; 3500]);
        line.push_end(began, None);
        let mut came = Vec::new();
        while let Some(due) = line.due_at() {
            assert!(line.due(due - Duration::from_nanos(1)).is_none());
            let count = match line.due(due).expect("due") {
                Packet::Bytes(bytes) => bytes.len(),
                Packet::End(_) => break,
            };
            line.advance(count);
            came.push(((due - began).as_micros(), count));
        }
        let expect = [(3000, 1000), (4500, 1500), (6000, 1500), (6500, 500)];
        assert_eq!(came, expect);
        assert_eq!(line.due_at(), Some(began + Duration::from_micros(6500)));
    }

    #[test]
    fn shaped_line_is_full_at_its_delay_or_byte_limit() {
        let began = Instant::now();
        let mut line = Line::new(began, shape("latency_us=0,bandwidth=1000000"));
        assert_eq!(line.room(began), 100_000);
        line.push(began, &[0; 100_000]);
        assert_eq!(line.room(began), 0);
        let half = began + Duration::from_millis(50);
        assert_eq!((line.room_at(), line.room(half)), (Some(half), 50_000));
        let mut line = Line::new(began, shape("latency_us=1000"));
        line.push(began, &vec![0; LINE_BYTES_MAX]);
        assert_eq!((line.room(began), line.room_at()), (0, None));
        line.advance(LINE_BYTES_MAX);
        assert!(line.is_empty() && line.room(began) > 0);
    }
}
