//! The threads of a process, for a session of one process: the client's threads are those of the process.

use sdm_debug::reply::ThreadView;

use crate::source::place;

/// Maximum number of threads that a client is shown.
const THREADS_MAX: usize = 256;

/// The threads of the only process, while it is stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OsThreads {
    /// The threads by gdb's number, which is the client's too.
    known: Vec<ThreadView>,
    /// Threads that the client knows.
    told: Vec<u32>,
}

impl OsThreads {
    /// Sets the threads of the stopped process; returns those that are gone, and those that are new to the client.
    pub(crate) fn stand(&mut self, mut threads: Vec<ThreadView>) -> (Vec<i64>, Vec<i64>) {
        threads.truncate(THREADS_MAX);
        let now: Vec<u32> = threads.iter().map(|thread| thread.number).collect();
        let before = match self.told.is_empty() {
            // The first thread exists from the start.
            true => vec![1],
            false => std::mem::take(&mut self.told),
        };
        let lacking = |these: &[u32], those: &[u32]| -> Vec<i64> {
            let missing = these.iter().filter(|number| !those.contains(number));
            missing.map(|number| i64::from(*number)).collect()
        };
        let changes = (lacking(&before, &now), lacking(&now, &before));
        self.told = now;
        self.known = threads;
        changes
    }

    /// Forgets the locations of the threads, as the process runs.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// True if there is more than one thread.
    pub(crate) fn are_several(&self) -> bool {
        self.known.len() > 1
    }

    /// True if a client's number is that of a known thread.
    pub(crate) fn knows(&self, id: i64) -> bool {
        self.number(id).is_some()
    }

    /// gdb's number of the thread with this id; `None` if the client does not know it.
    pub(crate) fn number(&self, id: i64) -> Option<u32> {
        let number = u32::try_from(id).ok()?;
        self.told.contains(&number).then_some(number)
    }

    /// gdb's number of the thread that has stopped; `None` if it is not known.
    pub(crate) fn current(&self) -> Option<u32> {
        let current = self.known.iter().find(|thread| thread.current);
        current.map(|thread| thread.number)
    }

    /// The name of each thread, by its number.
    pub(crate) fn names(&self) -> impl Iterator<Item = (i64, String)> {
        self.known.iter().map(|thread| {
            let ThreadView {
                number,
                name,
                frame,
                ..
            } = thread;
            let what = frame.as_ref().map_or_else(|| "running".to_owned(), place);
            let name = match name.as_str() {
                "" => String::new(),
                name => format!(" {name}"),
            };
            (i64::from(*number), format!("thread {number}{name}: {what}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(number: u32) -> ThreadView {
        ThreadView {
            number,
            name: String::new(),
            frame: None,
            current: number == 2,
        }
    }

    #[test]
    fn each_thread_start_and_exit_is_sent_once() {
        let mut threads = OsThreads::default();
        assert_eq!(threads.stand(vec![thread(1), thread(2)]), (vec![], vec![2]));
        assert_eq!(threads.current(), Some(2));
        threads.forget();
        assert!(threads.knows(2));
        assert_eq!(
            threads.stand(vec![thread(1), thread(3)]),
            (vec![2], vec![3])
        );
        assert!(!threads.knows(2));
    }
}
