//! Stacks and threads, and the selection of a thread and a frame.

use sdm_debug::command::{BacktraceSpec, FrameSelect};
use sdm_debug::fold::{FoldRules, RawFrame, RawThread, STOPPED, fold_task, innermost_user_frame};
use sdm_debug::reply::{Backtrace, Frame, FrameView, ThreadView};
use sdm_debug::{Failure, FailureCode, Reply};

use super::frames::{FRAMES_MAX, GdbFrame};
use super::tail_calls::Calls;
pub(crate) use super::threads::ReadThread;
use super::threads::kernel_id;
use super::{pointers, python, registers, stack_end, variables};
use crate::gdb::Gdb;
use crate::text::console_line;
use sdm_mi::Results;

/// Maximum number of threads of one task whose stacks are read.
const THREADS_MAX: usize = 1024;

pub(crate) async fn backtrace(gdb: &Gdb, spec: &BacktraceSpec) -> Result<Reply, Failure> {
    let mut frames = list_frames(gdb, None).await?;
    let mut stopped = stack_end::stop_reason(gdb, "", &frames).await?;
    let mut is_cut = false;
    if !spec.full {
        (frames, is_cut) = python::replace_frames(gdb, frames).await;
        if is_cut {
            stopped = Some(stack_end::too_deep());
        }
    }
    let total = frames.len();
    let (first, last) = if spec.full {
        (0, total)
    } else {
        shown(gdb, &frames)
    };
    let limit = match spec.limit {
        0 => total,
        limit => usize::try_from(limit).unwrap_or(total),
    };
    let end = last.min(first.saturating_add(limit));
    if spec.args && first < end {
        list_arguments(gdb, &mut frames[first..end]).await?;
    }
    let shown = frames[first..end]
        .iter()
        .map(|frame| frame.frame(spec.args));
    let more = end < last || total > FRAMES_MAX as usize && !is_cut;
    let stopped = stopped.filter(|_| !more).map(|reason| Frame {
        level: u32::try_from(total).unwrap_or(u32::MAX),
        function: reason,
        ..Frame::default()
    });
    let folded = if end < last {
        first
    } else {
        first + (total - last)
    };
    Ok(Reply::Backtrace(Backtrace {
        frames: shown.chain(stopped).collect(),
        more,
        folded: u32::try_from(folded).unwrap_or(u32::MAX),
    }))
}

fn shown(gdb: &Gdb, frames: &[GdbFrame]) -> (usize, usize) {
    let config = gdb.get().config.clone();
    let raw: Vec<RawFrame> = frames.iter().map(GdbFrame::raw).collect();
    shown_frames(&raw, &config.fold)
}

/// Range of the frames from the innermost user frame to the outermost one; all frames if no frame is the user's.
pub(super) fn shown_frames(raw: &[RawFrame], rules: &FoldRules) -> (usize, usize) {
    let Some(first) = innermost_user_frame(raw, rules) else {
        return (0, raw.len());
    };
    let is_user =
        |frame: &RawFrame| innermost_user_frame(std::slice::from_ref(frame), rules).is_some();
    let last = raw.iter().rposition(is_user).unwrap_or(first.index);
    (first.index, last.max(first.index) + 1)
}

pub(crate) async fn list_frames(gdb: &Gdb, thread: Option<u32>) -> Result<Vec<GdbFrame>, Failure> {
    let thread = thread.map_or_else(String::new, |id| format!("--thread {id} "));
    let frames = listed(gdb, &thread).await?;
    // gdb sometimes ends at Fortran's main program, and sometimes at the `main` that has called it. Without a
    // correction one place would look like two.
    let is_cut = frames.len() > FRAMES_MAX as usize;
    if is_cut || !frames.last().is_some_and(GdbFrame::is_fortran) {
        return Ok(frames);
    }
    match gdb.mi("-gdb-set backtrace past-main on").await {
        Ok(_) => listed(gdb, &thread).await,
        Err(_) => Ok(frames),
    }
}

async fn listed(gdb: &Gdb, thread: &str) -> Result<Vec<GdbFrame>, Failure> {
    let results = gdb
        .mi(format!("-stack-list-frames {thread}0 {FRAMES_MAX}"))
        .await?;
    let frames = results
        .tuples("stack")
        .map(|frame| GdbFrame::read(gdb, frame));
    Ok(frames.collect())
}

async fn list_arguments(gdb: &Gdb, frames: &mut [GdbFrame]) -> Result<(), Failure> {
    let level = |frame: Option<&GdbFrame>| frame.map(|frame| frame.level);
    let (Some(first), Some(last)) = (level(frames.first()), level(frames.last())) else {
        return Ok(());
    };
    let line = format!("-stack-list-arguments 1 {first} {last}");
    let results = match variables::list(gdb, variables::SCALARS, &line).await {
        Err(failure) if variables::is_missing(&failure) => {
            let native = frames.iter_mut().filter(|frame| frame.is_native());
            native.for_each(|frame| frame.set_missing(variables::missing(&failure)));
            return Ok(());
        }
        results => results?,
    };
    for arguments in results.tuples("stack-args") {
        let level: Option<u32> = arguments.number("level");
        let mut native = frames.iter_mut().filter(|frame| frame.is_native());
        if let Some(frame) = native.find(|frame| Some(frame.level) == level) {
            frame.set_arguments(arguments);
        }
    }
    if !frames.iter().any(GdbFrame::has_source) {
        return Ok(());
    }
    // MI lists neither constants nor arguments that the compiler has optimised out.
    let line = format!(
        "with print frame-arguments presence -- frame apply level {first}-{last} -s info args"
    );
    let printed = match variables::printed(gdb, variables::SCALARS, &line).await {
        Err(failure) if variables::is_missing(&failure) => {
            let doubtful = frames.iter_mut().filter(|frame| frame.is_fortran());
            doubtful.for_each(|frame| frame.set_missing(variables::missing(&failure)));
            return Ok(());
        }
        printed => printed?,
    };
    for of_level in printed.split("\n#") {
        let (head, arguments) = of_level.split_once('\n').unwrap_or((of_level, ""));
        let level = head.trim_start_matches('#').split(' ').next();
        let level: Option<u32> = level.and_then(|level| level.parse().ok());
        let mut native = frames.iter_mut().filter(|frame| frame.is_native());
        if let Some(frame) = native.find(|frame| Some(frame.level) == level) {
            frame.complete_arguments(arguments);
        }
    }
    Ok(())
}

pub(crate) async fn stacks(gdb: &Gdb, full: bool) -> Result<Reply, Failure> {
    let (mut threads, beyond) = read_native_threads(gdb).await?;
    if !full {
        python::replace_frames_of_all(gdb, &mut threads).await;
    }
    let threads: Vec<RawThread> = threads.into_iter().map(|thread| thread.raw).collect();
    let config = gdb.get().config.clone();
    let mut stacks = fold_task(&threads, &config.fold, full);
    stacks.helpers += beyond;
    Ok(Reply::Stacks(stacks))
}

/// The threads of the task with Python functions in their frames, and the number of threads beyond the limit.
pub(crate) async fn read_threads(gdb: &Gdb) -> Result<(Vec<ReadThread>, u32), Failure> {
    let (mut threads, beyond) = read_native_threads(gdb).await?;
    if let Some(failure) = threads.iter_mut().find_map(|thread| thread.missing.take()) {
        return Err(failure);
    }
    python::replace_frames_of_all(gdb, &mut threads).await;
    Ok((threads, beyond))
}

/// The threads as gdb gives them; for a thread beyond the budget the reason is in place of its frames.
async fn read_native_threads(gdb: &Gdb) -> Result<(Vec<ReadThread>, u32), Failure> {
    let info = gdb.mi("-thread-info").await?;
    let mut found: Vec<(u32, &Results)> = info
        .tuples("threads")
        .filter_map(|thread| Some((thread.number("id")?, thread)))
        .collect();
    found.sort_unstable_by_key(|(id, _)| *id);
    let beyond = found.len().saturating_sub(THREADS_MAX);
    found.truncate(THREADS_MAX);
    let mut threads = Vec::new();
    let mut calls = Calls::default();
    for (id, thread) in found {
        let (frames, stopped, missing) = match read_thread(gdb, id, &mut calls).await {
            Ok((frames, stopped)) => (frames, stopped, None),
            Err(failure) if variables::is_missing(&failure) => {
                let reason = format!("{STOPPED}{}", failure.text);
                (Vec::new(), Some(reason), Some(failure))
            }
            Err(failure) => return Err(failure),
        };
        let number = number_of(gdb, id);
        threads.push(ReadThread {
            id,
            number,
            kernel_id: thread.text("target-id").and_then(kernel_id),
            raw: RawThread {
                // gdb numbers threads in order of appearance. The first one runs `main`.
                main: number == 1,
                name: thread.text("name").unwrap_or_default().to_owned(),
                frames: frames.iter().map(GdbFrame::raw).collect(),
                stopped,
            },
            frames,
            has_interpreter: false,
            missing,
        });
    }
    Ok((threads, u32::try_from(beyond).unwrap_or(u32::MAX)))
}

/// The frames of a thread, and the reason if unwinding ended early.
async fn read_thread(
    gdb: &Gdb,
    id: u32,
    calls: &mut Calls,
) -> Result<(Vec<GdbFrame>, Option<String>), Failure> {
    let mut frames = list_frames(gdb, Some(id)).await?;
    calls.name(gdb, id, &mut frames).await?;
    let stopped = stack_end::stop_reason(gdb, &format!("--thread {id} "), &frames).await?;
    // Without a name the address cannot be compared between tasks.
    if frames.len() > 1 && frames.last().is_some_and(|frame| !frame.is_known()) {
        frames.pop();
    }
    Ok((frames, stopped))
}

pub(crate) async fn threads(gdb: &Gdb) -> Result<Reply, Failure> {
    let info = gdb.mi("-thread-info").await?;
    let current: Option<u32> = info.number("current-thread-id");
    let mut threads: Vec<ThreadView> = info
        .tuples("threads")
        .filter_map(|thread| {
            let id = thread.number("id")?;
            let frame = thread
                .tuple("frame")
                .map(|frame| GdbFrame::read(gdb, frame));
            Some(ThreadView {
                number: number_of(gdb, id),
                name: thread.text("name").unwrap_or_default().to_owned(),
                frame: frame.map(|frame| frame.place()),
                current: current == Some(id) || is_selected(gdb, id),
            })
        })
        .collect();
    threads.sort_by_key(|thread| thread.number);
    Ok(Reply::Threads(threads))
}

/// The task's number of a gdb thread.
fn number_of(gdb: &Gdb, id: u32) -> u32 {
    let state = gdb.get();
    let scope = state.origin.scope();
    scope.and_then(|scope| scope.number_of(id)).unwrap_or(id)
}

/// The command that selects the task's thread of this number.
pub(crate) fn thread_select(gdb: &Gdb, number: u32) -> String {
    let state = gdb.get();
    let scope = state.origin.scope();
    let id = scope.and_then(|scope| scope.id_of(number));
    format!("-thread-select {}", id.unwrap_or(number))
}

fn is_selected(gdb: &Gdb, id: u32) -> bool {
    let state = gdb.get();
    state
        .origin
        .scope()
        .is_some_and(|scope| scope.is_selected(id))
}

/// True if the task has a thread of this number.
pub(crate) async fn has_thread(gdb: &Gdb, number: u32) -> Result<bool, Failure> {
    let info = gdb.mi("-thread-info").await?;
    let mut ids = info.tuples("threads").filter_map(|t| t.number("id"));
    Ok(ids.any(|id| number_of(gdb, id) == number))
}

pub(crate) async fn select_thread(gdb: &Gdb, number: u32) -> Result<Reply, Failure> {
    if !has_thread(gdb, number).await? {
        let text = format!("no thread {number}");
        return Err(Failure::new(FailureCode::NoSuchThing, text));
    }
    let results = gdb.mi(thread_select(gdb, number)).await?;
    view(gdb, results.tuple("frame")).await
}

pub(crate) async fn select_frame(gdb: &Gdb, select: FrameSelect) -> Result<Reply, Failure> {
    let wanted = match select {
        FrameSelect::Current => return selected(gdb).await,
        FrameSelect::Level(level) => Some(level),
        FrameSelect::Move(by) => moved(gdb, by).await?,
    };
    let Some(wanted) = wanted else {
        return Err(Failure::new(
            FailureCode::NoSuchThing,
            "the innermost frame is already selected",
        ));
    };
    // gdb silently accepts a level that does not exist, so it is checked first.
    let there = gdb
        .mi(format!("-stack-list-frames {wanted} {wanted}"))
        .await;
    let frame = there.as_ref().ok();
    let Some(frame) = frame.and_then(|there| there.tuples("stack").next()) else {
        let text = match select {
            FrameSelect::Level(level) => format!("no frame {level}"),
            _ => "the outermost frame is already selected".to_owned(),
        };
        return Err(Failure::new(FailureCode::NoSuchThing, text));
    };
    gdb.mi(format!("-stack-select-frame {wanted}")).await?;
    view(gdb, Some(frame)).await
}

/// The level that is `by` frames away from the selected frame, or else the last one in that direction, as in gdb.
/// `None` below the innermost frame.
async fn moved(gdb: &Gdb, by: i32) -> Result<Option<u32>, Failure> {
    let current = gdb.mi("-stack-info-frame").await?;
    let level = current.tuple("frame").and_then(|it| it.number("level"));
    let level = level.unwrap_or(0_u32);
    let Some(wanted) = level.checked_add_signed(by) else {
        return Ok((level > 0).then_some(0));
    };
    if by <= 1 {
        return Ok(Some(wanted));
    }
    let depth = gdb.mi(format!("-stack-info-depth {}", wanted + 1)).await;
    let last = depth.ok().and_then(|it| it.number::<u32>("depth"));
    let last = last.and_then(|it| it.checked_sub(1));
    Ok(last.filter(|last| *last > level).or(Some(wanted)))
}

/// Answers with the selected frame.
async fn selected(gdb: &Gdb) -> Result<Reply, Failure> {
    let current = gdb.mi("-stack-info-frame").await?;
    view(gdb, current.tuple("frame")).await
}

/// Returns from the selected frame without running the rest of it.
pub(crate) async fn return_now(gdb: &Gdb, value: Option<&str>) -> Result<Reply, Failure> {
    let value = pointers::operand(gdb, value.unwrap_or_default()).await?;
    let line = format!("return {value}");
    let line = console_line(line.trim_end());
    let asked = gdb.clone();
    gdb.finish_unbroken(async move {
        registers::leave(&asked, line).await?;
        asked.edit().shown_level = 0;
        Ok::<(), Failure>(())
    })
    .await?;
    selected(gdb).await
}

/// Answers with the selected frame, given gdb's record of it, and its arguments. Fails if no frame is selected.
async fn view(gdb: &Gdb, frame: Option<&Results>) -> Result<Reply, Failure> {
    let Some(frame) = frame else {
        return Err(Failure::new(
            FailureCode::NoSuchThing,
            "no frame is selected",
        ));
    };
    let mut frames = [GdbFrame::read(gdb, frame)];
    list_arguments(gdb, &mut frames).await?;
    let [frame] = frames;
    let source = frame.source(gdb);
    let frame: Frame = frame.frame(true);
    Ok(Reply::Frame(FrameView { frame, source }))
}
