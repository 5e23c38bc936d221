//! The records of a session for its pages. Their size is bounded: outdated records are dropped, and a page that reads
//! slowly misses some.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

/// Maximum size of the records that are kept for pages that connect later or again, in bytes.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// Maximum size of one record, in bytes. A notice replaces a longer one.
pub(crate) const RECORD_BYTES_MAX: usize = 1 << 20;
/// Size of a write to a page, in bytes, from which no further record is added to the write.
const GIVEN_BYTES_MAX: usize = 256 << 10;

/// The width of the text for pages until a page tells the width of its console, in columns.
pub(crate) const COLUMNS: usize = 72;
/// The least and the greatest width of the text for pages, in columns.
const COLUMNS_BOUNDS: (usize, usize) = (40, 400);

/// A record with its number.
type Numbered = (u64, Arc<str>);

/// The records for pages, shared by several threads.
#[derive(Debug, Default)]
pub struct News {
    state: Mutex<State>,
    changed: Condvar,
    /// The width that a page has told last; 0 if none has.
    columns: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the last record, from 1.
    last: u64,
    kept: VecDeque<Numbered>,
    kept_bytes: usize,
    /// The number of the last record that is not kept any more; 0 if all are kept.
    forgotten: u64,
    /// The newest record, with its number, of each kind of which only the newest is kept.
    newest: BTreeMap<&'static str, Numbered>,
    /// Number of registered pages.
    pages: usize,
    /// True while a page that is not registered waits for records.
    is_awaited: bool,
    is_over: bool,
}

impl News {
    /// Creates an empty store of records.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record, as one line of JSON.
    pub(crate) fn add(&self, record: &str) {
        let record: Arc<str> = match record.len() <= RECORD_BYTES_MAX {
            true => record.into(),
            false => too_long(record.len()).into(),
        };
        let mut state = self.lock();
        state.last += 1;
        state.kept_bytes += record.len();
        let id = state.last;
        state.kept.push_back((id, record));
        while state.kept_bytes > KEPT_BYTES_MAX
            && let Some((id, old)) = state.kept.pop_front()
        {
            state.kept_bytes -= old.len();
            state.forgotten = id;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Adds a record that replaces the earlier records of its kind.
    pub(crate) fn replace(&self, kind: &'static str, record: &str) {
        let record: Arc<str> = match record.len() <= RECORD_BYTES_MAX {
            true => record.into(),
            false => too_long(record.len()).into(),
        };
        let mut state = self.lock();
        state.last += 1;
        let id = state.last;
        state.newest.insert(kind, (id, record));
        drop(state);
        self.changed.notify_all();
    }

    /// True while a page listens.
    #[must_use]
    pub fn has_page(&self) -> bool {
        let state = self.lock();
        state.pages > 0 || state.is_awaited
    }

    /// Notes whether a page waits for records that [`News::since`] does not have yet.
    pub fn set_awaited(&self, on: bool) {
        self.lock().is_awaited = on;
    }

    /// The records after number `after` as they are now, of limited size, with the number of the last one.
    #[must_use]
    pub fn since(&self, after: u64) -> (u64, Vec<Arc<str>>) {
        let found = self.lock().behind(after);
        let last = found.last().map_or(after, |(id, _)| *id);
        (last, found.into_iter().map(|(_, record)| record).collect())
    }

    /// Notes the width of a page's console, in columns. The text of later records has this width, within bounds.
    pub fn set_columns(&self, columns: usize) {
        let (least, most) = COLUMNS_BOUNDS;
        self.columns
            .store(columns.clamp(least, most), Ordering::Relaxed);
    }

    /// The width of the text for pages, in columns.
    pub(crate) fn columns(&self) -> usize {
        match self.columns.load(Ordering::Relaxed) {
            0 => COLUMNS,
            columns => columns,
        }
    }

    /// Registers a page that listens, until the returned value is dropped.
    pub(crate) fn listen(self: &Arc<Self>) -> Listener {
        self.lock().pages += 1;
        Listener(Arc::clone(self))
    }

    /// Waits at most `wait` for records after number `after`. Returns the number of the last one, and the records as
    /// text of server-sent events; the text is empty on time-out. None if the session has ended and no record remains.
    pub(crate) fn next(&self, after: u64, wait: Duration) -> Option<(u64, String)> {
        let deadline = Instant::now() + wait;
        let mut state = self.lock();
        loop {
            let found = state.behind(after);
            if let Some((last, _)) = found.last() {
                return Some((*last, events(&found)));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.is_over {
                return None;
            }
            if left.is_zero() {
                return Some((after, String::new()));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Marks the session as ended. Waits at most `wait` until all pages have received the remaining records.
    pub(crate) fn end(&self, wait: Duration) {
        let deadline = Instant::now() + wait;
        let mut state = self.lock();
        state.is_over = true;
        self.changed.notify_all();
        while state.pages > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The records after number `after`, in order and of limited size. If some of them are no longer kept, the first
    /// record tells that.
    fn behind(&self, after: u64) -> Vec<Numbered> {
        let from = self.kept.partition_point(|(id, _)| *id <= after);
        let mut kept = self.kept.range(from..).peekable();
        let mut newest: Vec<&Numbered> = self.newest.values().collect();
        newest.retain(|(id, _)| *id > after);
        newest.sort_by_key(|(id, _)| *id);
        let mut newest = newest.into_iter().peekable();
        let mut found = Vec::new();
        let mut bytes = 0;
        if after < self.forgotten {
            found.push((self.forgotten, left_out().into()));
        }
        while bytes < GIVEN_BYTES_MAX {
            let is_kept = match (kept.peek(), newest.peek()) {
                (Some((a, _)), Some((b, _))) => a < b,
                (kept, _) => kept.is_some(),
            };
            let next = if is_kept { kept.next() } else { newest.next() };
            let Some((id, record)) = next else { break };
            bytes += record.len();
            found.push((*id, Arc::clone(record)));
        }
        found
    }
}

/// The registration of a page that listens, which ends on drop.
pub(crate) struct Listener(Arc<News>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.lock().pages -= 1;
        self.0.changed.notify_all();
    }
}

/// Records as text of server-sent events.
fn events(records: &[Numbered]) -> String {
    let event = |(id, record): &Numbered| format!("id: {id}\ndata: {record}\n\n");
    records.iter().map(event).collect()
}

fn left_out() -> String {
    json!({ "v": sdm_view::json::VERSION, "kind": "left_out" }).to_string()
}

fn too_long(bytes: usize) -> String {
    let text = format!("a record of {bytes} bytes is too long for the page");
    json!({ "v": sdm_view::json::VERSION, "kind": "notice", "text": text }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::ZERO;

    #[test]
    fn page_gets_records_in_order_and_the_latest_state_once() {
        let news = Arc::new(News::new());
        news.replace("board", "b1");
        news.add("a");
        news.replace("board", "b2");
        news.add("c");
        let (last, text) = news.next(0, SOON).unwrap();
        assert_eq!(
            text,
            "id: 2\ndata: a\n\nid: 3\ndata: b2\n\nid: 4\ndata: c\n\n"
        );
        assert_eq!(news.next(last, SOON), Some((4, String::new())));
        assert_eq!(news.next(3, SOON).unwrap().1, "id: 4\ndata: c\n\n");
        assert!(!news.has_page());
        let page = news.listen();
        assert!(news.has_page());
        drop(page);
        let (last, records) = news.since(2);
        assert_eq!((last, records), (4, vec!["b2".into(), "c".into()]));
        assert_eq!(news.since(last), (last, Vec::new()));
        news.set_awaited(true);
        assert!(news.has_page());
        news.set_awaited(false);
        assert!(!news.has_page());
        news.end(SOON);
        assert_eq!(news.next(last, SOON), None);
    }

    #[test]
    fn slow_page_is_notified_of_omitted_records() {
        let news = News::new();
        news.add(&"x".repeat(RECORD_BYTES_MAX + 1));
        let long = "y".repeat(RECORD_BYTES_MAX);
        (0..4).for_each(|_| news.add(&long));
        let (last, text) = news.next(0, SOON).unwrap();
        assert!(
            text.starts_with("id: 1\ndata: {\"kind\":\"left_out\""),
            "{text:.80}"
        );
        assert_eq!(last, 2);
        news.add(&"x".repeat(RECORD_BYTES_MAX + 1));
        let (_, text) = news.next(5, SOON).unwrap();
        assert!(text.contains("is too long for the page"), "{text:.80}");
        assert!(news.lock().kept_bytes <= KEPT_BYTES_MAX);
    }
}
