//! Converts gdb's stack frames to those of the fold rules and of the front-end.

use std::path::Path;

use sdm_debug::calls::{
    Form, loop_of_c, loop_of_fortran, polling_function, polling_function_of_callee, statement,
};
use sdm_debug::fold::RawFrame;
use sdm_debug::reply::{Frame, StackFrame, Variable};
use sdm_inspect::python::{PythonFrame, PythonState};

use super::{absent, variables};
use crate::gdb::Gdb;
use crate::text::base_name;
use crate::text::variable;
use sdm_mi::Results;

/// Maximum number of frames of a whole stack. One more frame is requested, which shows that a stack is deeper.
pub(crate) const FRAMES_MAX: u32 = 1024;
/// File name extensions of Fortran sources, in lower case.
const FORTRAN: [&str; 10] = [
    "f", "f03", "f08", "f18", "f77", "f90", "f95", "for", "fpp", "ftn",
];

/// File name extensions of sources in languages like C.
const C: [&str; 11] = [
    "c", "c++", "cc", "cpp", "cu", "cxx", "h", "hh", "hip", "hpp", "hxx",
];

/// One frame from gdb, or a Python frame at the level of its interpreter frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct GdbFrame {
    pub(crate) level: u32,
    address: u64,
    function: Option<String>,
    file: String,
    path: String,
    line: u32,
    /// The shared object without directories; empty for the program itself.
    module: String,
    /// The function named by the caller's call instruction, for a frame without a name that users know. `None` for
    /// other frames, or if that function is unknown.
    called: Option<String>,
    /// The module, and the name of its file with the offset in it (`libc.so.6+0x1234`), for a frame without a function
    /// name. `None` if they are unknown.
    place: Option<(String, String)>,
    arguments: Vec<Variable>,
    /// The state of a Python frame, whose level is that of the interpreter's frame that runs it; `None` for others.
    pub(crate) python: Option<PythonState>,
}

impl GdbFrame {
    /// Reads gdb's `{level=,addr=,func=,...}`. [`GdbFrame::set_arguments`] adds the arguments.
    pub(crate) fn read(gdb: &Gdb, results: &Results) -> Self {
        let path = results.text("fullname").unwrap_or_default();
        let file = results.text("file").map(base_name).unwrap_or_default();
        let mut frame = Self {
            level: results.number("level").unwrap_or(0),
            address: results.address("addr").unwrap_or(0),
            function: function_of(results),
            file: file.to_owned(),
            path: path.to_owned(),
            line: results.number("line").unwrap_or(0),
            module: results
                .text("from")
                .map(base_name)
                .unwrap_or_default()
                .to_owned(),
            called: None,
            place: None,
            arguments: Vec::new(),
            python: None,
        };
        if !frame.file.is_empty() {
            frame.function = frame.function.map(without_parameters);
        }
        if frame.function.is_none() {
            frame.place = frame.find_place(gdb);
        }
        frame
    }

    /// The program counter in this frame.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// A Python frame, at the level of its interpreter frame; `module` is empty for the user's code.
    pub(crate) fn python(level: u32, frame: &PythonFrame, module: &str) -> Self {
        Self {
            level,
            function: Some(frame.called()),
            file: base_name(&frame.path).to_owned(),
            path: frame.path.clone(),
            line: frame.line,
            module: module.to_owned(),
            python: Some(frame.state),
            ..Self::default()
        }
    }

    /// A frame as gdb reports it, for tests.
    #[cfg(test)]
    pub(crate) fn native(level: u32, function: &str, module: &str) -> Self {
        Self {
            level,
            function: Some(function.to_owned()),
            module: module.to_owned(),
            ..Self::default()
        }
    }

    /// True if the frame exists in gdb, unlike a frame of Python.
    pub(crate) fn is_native(&self) -> bool {
        self.python.is_none()
    }

    /// The function's name; `None` if unknown.
    pub(crate) fn function(&self) -> Option<&str> {
        self.function.as_deref()
    }

    /// The same frame with another name of its function.
    pub(super) fn named(self, function: &str) -> Self {
        Self {
            function: Some(function.to_owned()),
            ..self
        }
    }

    /// Sets the name from the caller's call instruction.
    pub(super) fn set_called(&mut self, function: String) {
        self.called = Some(function);
    }

    fn find_place(&self, gdb: &Gdb) -> Option<(String, String)> {
        let (pid, program) = {
            let state = gdb.get();
            (state.pid()?, state.program_name.clone())
        };
        let (path, offset) = gdb.host().place(pid, self.address)?;
        let name = base_name(&path);
        let is_program = self.module.is_empty() && name == program;
        let module = if is_program { "" } else { name };
        Some((module.to_owned(), format!("{name}+{offset:#x}")))
    }

    /// The module, also for a frame whose module only `/proc/PID/maps` shows.
    pub(crate) fn module(&self) -> &str {
        match &self.place {
            Some((name, _)) if self.module.is_empty() => name,
            _ => &self.module,
        }
    }

    /// True if the frame's function, its module or its place in a module is known; false if only its address is.
    pub(crate) fn is_known(&self) -> bool {
        self.function.is_some() || self.place.is_some() || !self.module.is_empty()
    }

    /// True for Fortran source, by the file's name.
    pub(crate) fn is_fortran(&self) -> bool {
        is_fortran(&self.file)
    }

    /// The frame in the form of the fold rules.
    pub(crate) fn raw(&self) -> RawFrame {
        RawFrame {
            function: self.called.clone().or_else(|| self.function.clone()),
            file: Some(self.file.clone()).filter(|file| !file.is_empty()),
            line: self.line,
            module: self.module().to_owned(),
            place: match &self.place {
                Some((_, text)) => text.clone(),
                None => format!("{:#x}", self.address),
            },
        }
    }

    /// The frame in the form of a folded stack.
    pub(crate) fn stack_frame(&self) -> StackFrame {
        StackFrame::from(&self.raw())
    }

    /// The frame in the form of the front-end; `with_args` includes the arguments that gdb gave.
    pub(crate) fn frame(&self, with_args: bool) -> Frame {
        let function = self.function.clone().unwrap_or_else(|| match &self.place {
            Some((_, text)) => text.clone(),
            None if self.module.is_empty() => "??".to_owned(),
            None => format!("{}+?", self.module),
        });
        let args = if with_args {
            self.arguments.clone()
        } else {
            Vec::new()
        };
        Frame {
            level: self.level,
            function,
            file: self.file.clone(),
            path: self.path.clone(),
            line: self.line,
            module: self.module().to_owned(),
            args,
        }
    }

    /// The frame for comparison between tasks: without its arguments, and without level, as the depth inside a runtime
    /// differs.
    pub(crate) fn place(&self) -> Frame {
        Frame {
            level: 0,
            ..self.frame(false)
        }
    }

    /// The text of the frame's source line; `None` if unknown.
    pub(crate) fn source(&self, gdb: &Gdb) -> Option<String> {
        if self.path.is_empty() || self.line == 0 {
            return None;
        }
        gdb.host().source_line(&self.path, self.line)
    }

    /// The Fortran statement that contains the frame's line, as one line of text. `None` in other languages, or if the
    /// line is unknown.
    pub(super) fn statement(&self, gdb: &Gdb) -> Option<String> {
        if !self.is_fortran() || self.path.is_empty() || self.line == 0 {
            return None;
        }
        let host = gdb.host();
        let line = |number| host.source_line(&self.path, number);
        Some(statement(line, self.line, Form::of(&self.file)))
    }

    /// Up to `count` source lines from the current one on, as far as the file is known.
    pub(super) fn source_lines(&self, gdb: &Gdb, count: u32) -> Vec<String> {
        if self.path.is_empty() || self.line == 0 {
            return Vec::new();
        }
        let numbers = self.line..self.line.saturating_add(count);
        numbers
            .map_while(|line| gdb.host().source_line(&self.path, line))
            .collect()
    }

    /// The lines of the innermost loop around the current line, with the number of the first. `None` without a
    /// loop within 40 lines of it.
    fn loop_around(&self, gdb: &Gdb) -> Option<(u32, Vec<String>)> {
        const LINES: u32 = 40;
        let first = self.line.checked_sub(1)?.saturating_sub(LINES) + 1;
        let lines = first..=self.line.saturating_add(LINES);
        let line = |number| gdb.host().source_line(&self.path, number);
        let lines: Vec<String> = lines.map_while(line).collect();
        let at = usize::try_from(self.line - first).ok()?;
        let around = match self.is_fortran() {
            true => loop_of_fortran(&lines, at),
            false => loop_of_c(&lines, at),
        };
        let (from, to) = around?;
        Some((first + u32::try_from(from).ok()?, lines[from..=to].to_vec()))
    }

    /// The polling function that the innermost loop around the current line calls, the line of that call, and the source
    /// from there on. `None` without such a loop.
    pub(super) fn polled_in_loop(&self, gdb: &Gdb) -> Option<(String, u32, String)> {
        let (first, lines) = self.loop_around(gdb)?;
        let mut polls = lines.iter().map(|line| polling_function(line));
        let call = polls.position(|polls| polls.is_some())?;
        let text = lines[call..].join("\n");
        let line = first + u32::try_from(call).ok()?;
        Some((polling_function(&text)?, line, text))
    }

    /// The polling function that another function of the source file calls, which the innermost loop around the current
    /// line calls. `None` without such a loop.
    pub(super) fn polled_by_callee(&self, gdb: &Gdb) -> Option<String> {
        let (_, lines) = self.loop_around(gdb)?;
        let text = self.file_text(gdb)?;
        polling_function_of_callee(&text, &lines.join("\n"))
    }

    /// The text of the frame's source file. `None` if it is unknown or too long.
    pub(super) fn file_text(&self, gdb: &Gdb) -> Option<String> {
        const LINES_MAX: u32 = 20_000;
        let line = |number| gdb.host().source_line(&self.path, number);
        let lines: Vec<String> = (1..=LINES_MAX).map_while(line).collect();
        let is_whole = !lines.is_empty() && line(LINES_MAX + 1).is_none();
        is_whole.then(|| lines.join("\n"))
    }

    /// Takes the arguments from another answer of gdb.
    pub(crate) fn set_arguments(&mut self, results: &Results) {
        self.arguments = results.tuples("args").map(argument).collect();
    }

    /// Adds arguments that only gdb's command line lists. In Fortran the command line's values also replace those of
    /// MI: MI takes the lengths of strings and arrays from the selected frame.
    pub(super) fn complete_arguments(&mut self, printed: &str) {
        let known = std::mem::take(&mut self.arguments);
        let prefer_printed = self.is_fortran();
        self.arguments = variables::completed(known, printed, prefer_printed);
        for argument in &mut self.arguments {
            let text = variables::shown(&argument.value.text);
            let text = if prefer_printed {
                absent::shown(text)
            } else {
                text
            };
            argument.value.text = text.to_owned();
        }
    }

    /// True if the frame's line is known.
    pub(super) fn has_source(&self) -> bool {
        self.line > 0
    }

    /// Sets a placeholder for missing arguments.
    pub(super) fn set_missing(&mut self, instead: Variable) {
        self.arguments = vec![instead];
    }
}

/// A function's name without parameters: gdb's parser does not find the end of some C++ names, and leaves the
/// parameters.
fn without_parameters(name: String) -> String {
    let mut bare = name.as_str();
    for qualifier in [" &&", " &", " volatile", " const"] {
        bare = bare.strip_suffix(qualifier).unwrap_or(bare);
    }
    let mut depth = 0_usize;
    let opens = bare.bytes().rposition(|byte| {
        match byte {
            b')' => depth += 1,
            b'(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    match opens.and_then(|at| bare.get(..at)) {
        Some(head)
            if bare.ends_with(')')
                && !head.ends_with("operator")
                && head.ends_with(|last: char| last.is_alphanumeric() || "_>)".contains(last)) =>
        {
            head.to_owned()
        }
        _ => name,
    }
}

/// True for the name of a Fortran file.
pub(super) fn is_fortran(file: &str) -> bool {
    has_extension(file, &FORTRAN)
}

/// True for the name of a file in a language like C.
pub(super) fn is_c(file: &str) -> bool {
    has_extension(file, &C)
}

fn has_extension(file: &str, known: &[&str]) -> bool {
    let extension = Path::new(file).extension();
    let extension = extension.map(|text| text.to_string_lossy().to_ascii_lowercase());
    extension.is_some_and(|text| known.contains(&text.as_str()))
}

/// Reads an argument; its value is shortened to what `bt` shows.
fn argument(results: &Results) -> Variable {
    let mut variable = variable(results);
    variable.value.text = variables::shown(&variable.value.text).to_owned();
    variable
}

fn function_of(results: &Results) -> Option<String> {
    let name = results.text("func")?;
    (name != "??" && !name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_names_end_before_their_parameters() {
        let check = |name: &str, expect: &str| {
            assert_eq!(without_parameters(name.to_owned()), expect, "{name}");
        };
        check("main", "main");
        check(
            "mesh::Cell<double, 2>::visit(std::function<double (double)> const&)",
            "mesh::Cell<double, 2>::visit",
        );
        check(
            "std::function<double (double)>::operator()(double) const",
            "std::function<double (double)>::operator()",
        );
        check(
            "a::f(int) const::{lambda()#1}::operator()() const",
            "a::f(int) const::{lambda()#1}::operator()",
        );
        check("operator()", "operator()");
        check(
            "std::_Function_handler<double(double), f(int) const::<lambda(double)> >::_M_invoke(const std::_Any_data &, double &&)",
            "std::_Function_handler<double(double), f(int) const::<lambda(double)> >::_M_invoke",
        );
        check(
            "core::ops::function::FnOnce::call_once<fn(), ()>",
            "core::ops::function::FnOnce::call_once<fn(), ()>",
        );
        check("(anonymous namespace)", "(anonymous namespace)");
        check("main.(*grid).relax", "main.(*grid).relax");
        check("f)", "f)");
        check("", "");
    }
}
