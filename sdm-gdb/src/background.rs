//! Background tasks: they run to their end even if the operation that started them is cancelled.
//!
//! An operation can be dropped at any `await`, but a command already sent to gdb still takes effect there, and the
//! driver's state must reflect that. So each change of gdb that also changes the driver's state runs in a background
//! task. The driver owns this task; the operation only waits for its result. A result that no operation waits for is
//! dropped. A result that stands for an object in gdb is a guard (see [`guards`](super::guards)), whose drop deletes
//! the object.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use super::gdb::Gdb;

/// The background tasks of one gdb.
#[derive(Default)]
pub(super) struct BackgroundTasks {
    under_way: RefCell<Vec<BackgroundTask>>,
    /// Number of the latest background task.
    last: Cell<u64>,
    /// Number of the background task that is being polled; `None` while none is.
    current: Cell<Option<u64>>,
}

/// A background task: a future, and its number.
struct BackgroundTask {
    number: u64,
    /// Alive as long as an operation waits for the result.
    waiter: Weak<()>,
    future: Pin<Box<dyn Future<Output = ()>>>,
}

impl BackgroundTasks {
    /// Number of the background task that is being polled; `None` while none is. The commands sent meanwhile belong to
    /// it.
    pub(super) fn current(&self) -> Option<u64> {
        self.current.get()
    }

    /// True while a background task runs whose result no operation waits for.
    pub(super) fn are_left(&self) -> bool {
        let works = self.under_way.borrow();
        works.iter().any(|work| work.waiter.strong_count() == 0)
    }

    /// Polls one background task; true if it has finished.
    fn poll(&self, work: &mut BackgroundTask) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let before = self.current.replace(Some(work.number));
        let poll = work.future.as_mut().poll(&mut context);
        self.current.set(before);
        poll.is_ready()
    }
}

impl Gdb {
    /// Starts a background task at once, and returns the future of its result.
    pub(super) fn finish<T: 'static>(
        &self,
        future: impl Future<Output = T> + 'static,
    ) -> Finishing<T> {
        let works = self.works();
        let number = works.last.get() + 1;
        works.last.set(number);
        let (slot, waiter) = (Rc::new(RefCell::new(None)), Rc::new(()));
        let result = Rc::downgrade(&slot);
        let mut work = BackgroundTask {
            number,
            waiter: Rc::downgrade(&waiter),
            future: Box::pin(deliver(future, result)),
        };
        if !works.poll(&mut work) {
            works.under_way.borrow_mut().push(work);
        }
        Finishing {
            gdb: self.clone(),
            number,
            slot,
            _waiter: waiter,
            breaks_off: true,
        }
    }

    /// Like [`Self::finish`], but gdb is not interrupted in the task's commands, even if no operation waits for the
    /// result.
    pub(super) fn finish_unbroken<T: 'static>(
        &self,
        future: impl Future<Output = T> + 'static,
    ) -> Finishing<T> {
        let mut finishing = self.finish(future);
        finishing.breaks_off = false;
        finishing
    }

    /// Polls all unfinished background tasks.
    pub(super) fn poll_works(&self) {
        let works = self.works();
        // A work can begin another one, both when it is polled and when it is dropped.
        let mut taken = std::mem::take(&mut *works.under_way.borrow_mut());
        let before = taken.len();
        taken.retain_mut(|work| !works.poll(work));
        let have_ended = taken.len() < before;
        let begun = std::mem::replace(&mut *works.under_way.borrow_mut(), taken);
        works.under_way.borrow_mut().extend(begun);
        if have_ended {
            self.touch();
        }
    }

    /// Drops all background tasks: gdb is gone, so that the answers that they wait for never come.
    pub(super) fn drop_works(&self) {
        let dropped = std::mem::take(&mut *self.works().under_way.borrow_mut());
        drop(dropped);
    }
}

async fn deliver<T>(future: impl Future<Output = T>, slot: Weak<RefCell<Option<T>>>) {
    let result = future.await;
    // If nobody waits for the result any more, it is dropped here.
    if let Some(slot) = slot.upgrade() {
        *slot.borrow_mut() = Some(result);
    }
}

/// Future of a background task's result. Dropping it early does not stop the task. Only the MI command that gdb is
/// executing for the task is abandoned, unless that could harm a program.
pub(super) struct Finishing<T> {
    gdb: Gdb,
    number: u64,
    slot: Rc<RefCell<Option<T>>>,
    _waiter: Rc<()>,
    breaks_off: bool,
}

impl<T> Future for Finishing<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        let result = self.slot.borrow_mut().take();
        match result {
            Some(result) => {
                self.breaks_off = false;
                Poll::Ready(result)
            }
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for Finishing<T> {
    fn drop(&mut self) {
        if self.breaks_off {
            let number = Some(self.number);
            self.gdb.break_off(|_, pending| pending.work == number);
        }
    }
}
