//! Replaces frames of the Python interpreter by the Python functions that they run.

use std::collections::BTreeMap;

use sdm_debug::probe::LockWait;
use sdm_inspect::python::{PythonFrame, PythonThread, Runtime, is_evaluation};

use super::frames::GdbFrame;
use super::stack_end::too_deep;
use super::threads::{ReadThread, kernel_id};
use crate::gdb::Gdb;
use crate::text::base_name;
use sdm_mi::Results;

/// Prefixes of the names of the interpreter's functions that are not evaluation functions.
const OWN: [&str; 4] = ["Py", "_Py", "_init", "cfunction_"];
/// File of PyTorch's wrappers that log collective operations.
const TORCH_WRAPPERS: &str = "/torch/distributed/c10d_logger.py";
/// Display name of the interpreter's lock.
const LOCK: &str = "Python's lock (the GIL)";

/// Replaces the interpreter's frames in all threads of a task by Python functions.
pub(super) async fn replace_frames_of_all(gdb: &Gdb, threads: &mut [ReadThread]) {
    if !threads.iter().any(|thread| is_inside(&thread.frames)) {
        return;
    }
    let python = read(gdb).await;
    for thread in threads {
        let Some(own) = thread.kernel_id.and_then(|id| python.get(&id)) else {
            continue;
        };
        thread.has_interpreter = own.has_lock;
        let frames = std::mem::take(&mut thread.frames);
        thread.frames = weave(frames, own, &gdb.get().program_name);
        if own.is_cut {
            thread.raw.stopped = Some(too_deep());
        }
        thread.raw.frames = thread.frames.iter().map(GdbFrame::raw).collect();
    }
}

/// The wait for Python's lock, which another thread holds; `None` if the thread does not wait for it. `user` indexes
/// the innermost frame of the user. The frames have Python functions in place of the interpreter's. The interpreter
/// waits on a condition for nothing else.
pub(super) fn lock(thread: &ReadThread, threads: &[ReadThread], user: usize) -> Option<LockWait> {
    let holder = threads.iter().find(|it| it.has_interpreter)?;
    let is_wait = |frame: &GdbFrame| {
        let name = frame.function().unwrap_or_default();
        name.contains("pthread_cond_")
    };
    let waits = thread.frames.iter().skip_while(|frame| !is_wait(frame));
    let wait = waits.take_while(|frame| is_wait(frame)).last()?;
    let caller = thread.frames.iter().find(|it| it.level > wait.level)?;
    // The interpreter's own functions between the wait and the caller do not count.
    let is_own = !caller.is_native() || caller.level > wait.level + 1;
    (is_own && holder.id != thread.id).then(|| LockWait {
        mutex: LOCK.to_owned(),
        place: thread.frames[user].stack_frame(),
        holder: Some(holder.number),
        orphaned: false,
    })
}

/// Replaces the interpreter's frames in `frames`, those of the selected thread. The second value is true if not all
/// Python functions were read.
pub(super) async fn replace_frames(gdb: &Gdb, frames: Vec<GdbFrame>) -> (Vec<GdbFrame>, bool) {
    if !is_inside(&frames) {
        return (frames, false);
    }
    let Some(id) = current_kernel_id(gdb).await else {
        return (frames, false);
    };
    match read(gdb).await.get(&id) {
        Some(own) => (weave(frames, own, &gdb.get().program_name), own.is_cut),
        None => (frames, false),
    }
}

/// True if a frame that looks like the user's may be the interpreter's.
pub(super) fn may_be_inside(gdb: &Gdb, frame: &GdbFrame) -> bool {
    let is_own = |name: &str| OWN.iter().any(|own| name.starts_with(own));
    is_interpreter(&gdb.get().program_name) || frame.function().is_some_and(is_own)
}

fn is_inside(frames: &[GdbFrame]) -> bool {
    frames.iter().any(evaluates)
}

fn evaluates(frame: &GdbFrame) -> bool {
    frame.function().is_some_and(is_evaluation)
}

/// True for the name of a Python interpreter: `python3`, `python3.11` and the like.
fn is_interpreter(program: &str) -> bool {
    program.starts_with("python")
}

/// The kernel thread id of the selected thread; `None` if it is not known.
async fn current_kernel_id(gdb: &Gdb) -> Option<i32> {
    let info = gdb.mi("-thread-info").await.ok()?;
    let current = |thread: &&Results| {
        let id: Option<u32> = thread.number("id");
        let selected = gdb
            .get()
            .origin
            .scope()
            .map(|scope| id.is_some_and(|id| scope.is_selected(id)));
        selected.unwrap_or_else(|| id.is_some() && id == info.number("current-thread-id"))
    };
    kernel_id(info.tuples("threads").find(current)?.text("target-id")?)
}

/// The Python functions of all threads of the process; empty if they cannot be read.
async fn read(gdb: &Gdb) -> BTreeMap<i32, PythonThread> {
    let pid = gdb.get().pid();
    match pid.zip(runtime(gdb).await) {
        Some((pid, runtime)) => gdb.host().python_threads(pid, runtime),
        None => BTreeMap::new(),
    }
}

/// The addresses that lead to the interpreter's structures. `None` without an interpreter.
pub(super) async fn runtime(gdb: &Gdb) -> Option<Runtime> {
    let [runtime, version] = ["_PyRuntime", "Py_Version"]
        .map(|symbol| gdb.send(format!("-data-evaluate-expression \"(void*)&{symbol}\"")));
    let (runtime, version) = (runtime.await, version.await);
    let address = |answer: Result<Results, _>| answer.ok().and_then(|it: Results| address(&it));
    Some(Runtime {
        address: address(runtime)?,
        version: address(version),
    })
}

/// The address in `value="0x55d0 <_PyRuntime>"`; `None` without an address.
pub(super) fn address(results: &Results) -> Option<u64> {
    let value = results.text("value")?;
    let number = value.split(' ').find_map(|word| word.strip_prefix("0x"))?;
    u64::from_str_radix(number, 16).ok()
}

/// A thread's frames, innermost first, with Python functions in place of the interpreter's frames.
fn weave(frames: Vec<GdbFrame>, python: &PythonThread, program: &str) -> Vec<GdbFrame> {
    let module = frames.iter().find(|frame| evaluates(frame));
    let Some(module) = module.map(|frame| frame.module().to_owned()) else {
        return frames;
    };
    // If the program embeds the interpreter, its other functions are the user's.
    let is_embedded = module.is_empty() && !is_interpreter(program);
    let is_own = |frame: &GdbFrame| {
        let name = frame.function().unwrap_or_default();
        // `python3` is a link to `python3.11`. The interpreter's frames without a name have the latter as their
        // module.
        let is_there =
            frame.module() == module || module.is_empty() && is_interpreter(frame.module());
        is_there && (!is_embedded || OWN.iter().any(|own| name.starts_with(own)) && name != "main")
    };
    // Of the groups that are known the outermost one belongs to the outermost call: a call that has just begun has no
    // Python frame yet. Of a stack that is cut the calls around these are unknown.
    let calls = frames.iter().filter(|frame| evaluates(frame)).count();
    let begun = calls.saturating_sub(python.groups.len());
    let begun = if python.is_cut { 0 } else { begun };
    let mut groups = python.groups.iter();
    let mut seen = 0;
    let mut woven = Vec::new();
    for frame in frames {
        if evaluates(&frame) {
            seen += 1;
            if seen <= begun {
                continue;
            }
            let group = groups.next().into_iter().flatten();
            let group = group.filter(|one| !one.path.ends_with(TORCH_WRAPPERS));
            woven.extend(group.map(|one| GdbFrame::python(frame.level, one, module_of(one))));
            if python.is_cut && groups.len() == 0 {
                break;
            }
        } else if !is_own(&frame) {
            let wait = frame.function().and_then(sdm_mpi::torch_wait);
            woven.push(match wait {
                Some(name) => frame.named(name),
                None => frame,
            });
        }
    }
    woven
}

/// The module of a function for the fold rules: empty for the user's code, `python3` for the standard library, the
/// package's name for an installed package.
fn module_of(frame: &PythonFrame) -> &str {
    let path = frame.path.as_str();
    if path.starts_with("<frozen ") {
        return "python3";
    }
    let library = ["/lib/python3", "/lib64/python3"]
        .iter()
        .find_map(|folder| path.split_once(folder));
    let Some((_, rest)) = library else {
        return "";
    };
    let within = rest.split_once('/').map_or("", |(_, within)| within);
    let installed = ["site-packages/", "dist-packages/"]
        .iter()
        .find_map(|folder| within.strip_prefix(folder));
    match installed {
        Some(package) => {
            let first = package.split('/').next().unwrap_or(package);
            base_name(first.strip_suffix(".py").unwrap_or(first))
        }
        None => "python3",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdm_inspect::python::{EVALUATES, PythonState};

    fn python(function: &str, path: &str) -> PythonFrame {
        PythonFrame {
            function: function.to_owned(),
            path: path.to_owned(),
            line: 7,
            state: PythonState::default(),
        }
    }

    fn native(level: u32, function: &str, module: &str) -> GdbFrame {
        GdbFrame::native(level, function, module)
    }

    /// The levels and functions of the woven frames, as text.
    fn woven(frames: &[(&str, &str)], groups: &[&[&str]], program: &str) -> String {
        woven_of(frames, groups, program, false)
    }

    fn woven_of(
        frames: &[(&str, &str)],
        groups: &[&[&str]],
        program: &str,
        is_cut: bool,
    ) -> String {
        let frames = (0..)
            .zip(frames)
            .map(|(level, (name, module))| native(level, name, module));
        let group = |names: &&[&str]| names.iter().map(|name| python(name, "/x.py")).collect();
        let own = PythonThread {
            groups: groups.iter().map(group).collect(),
            is_cut,
            has_lock: false,
        };
        let woven = weave(frames.collect(), &own, program);
        let one = |frame: &GdbFrame| format!("{} {}", frame.level, frame.function().unwrap_or("?"));
        woven.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn python_frames_replace_their_interpreter_frames() {
        let library = "libpython3.11.so.1.0";
        let frames = [
            ("poll", "libc.so.6"),
            (EVALUATES, library),
            ("PyObject_Call", library),
            ("apply", "solver.so"),
            ("_PyEval_EvalFrameDefault.cold", library),
            ("Py_RunMain", library),
            ("main", ""),
        ];
        let groups: [&[&str]; 2] = [&["inner", "lambda"], &["step", "<module>"]];
        assert_eq!(
            woven(&frames, &groups, "app"),
            "0 poll, 1 inner, 1 lambda, 3 apply, 4 step, 4 <module>, 6 main"
        );
        // The innermost call has just begun.
        let begun = woven(&frames, &groups[1..], "app");
        assert_eq!(begun, "0 poll, 3 apply, 4 step, 4 <module>, 6 main");
    }

    #[test]
    fn python_stack_that_is_cut_ends_at_its_last_frame() {
        let frames = [
            ("poll", "libc.so.6"),
            (EVALUATES, ""),
            ("apply", "solver.so"),
            (EVALUATES, ""),
            ("main", ""),
        ];
        let cut = |groups| woven_of(&frames, groups, "solver", true);
        assert_eq!(cut(&[&["deep", "deep"]]), "0 poll, 1 deep, 1 deep");
        let outer = cut(&[&["inner"], &["deep"]]);
        assert_eq!(outer, "0 poll, 1 inner, 2 apply, 3 deep");
    }

    #[test]
    fn program_that_embeds_python_keeps_its_own_frames() {
        let frames = [(EVALUATES, ""), ("Py_RunMain", ""), ("main", "")];
        let groups: [&[&str]; 1] = [&["<module>"]];
        assert_eq!(woven(&frames, &groups, "python3.12"), "0 <module>");
        assert_eq!(woven(&frames, &groups, "solver"), "0 <module>, 2 main");
        let other = [("main", "")];
        assert_eq!(woven(&other, &groups, "solver"), "0 main");
    }

    #[test]
    fn python_function_is_assigned_to_its_module() {
        let check = |path, expect| assert_eq!(module_of(&python("f", path)), expect, "{path}");
        check("/home/me/solve.py", "");
        check("/home/me/python3/solve.py", "");
        check("<string>", "");
        check("<frozen importlib._bootstrap>", "python3");
        check("/usr/lib/python3.11/threading.py", "python3");
        check("/usr/lib/python3/dist-packages/mpi4py/run.py", "mpi4py");
        check("/opt/v/lib64/python3.12/site-packages/six.py", "six");
    }
}
