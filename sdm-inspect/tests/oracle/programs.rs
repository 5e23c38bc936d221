//! The programs whose stacks are compared. Most wait in `pause`; the others are described at their constants.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sdm_system::proc;

/// System call numbers of `pause`: of 64-bit and of 32-bit programs on x86.
const PAUSE: [i64; 2] = [34, 29];

/// A source language: its fixture and its compiler.
#[derive(Clone, Copy)]
pub(crate) struct Language {
    source: &'static str,
    compiler: &'static str,
    options: &'static [&'static str],
    threads: usize,
}

pub(crate) const C: Language = Language {
    source: "plain.c",
    compiler: "gcc",
    options: &["-pthread"],
    threads: 2,
};
pub(crate) const BUSY: Language = Language {
    source: "busy.c",
    ..C
};
/// A program whose second thread can never be stopped.
pub(crate) const HELD: Language = Language {
    source: "held.c",
    ..C
};
pub(crate) const THREADS: Language = Language {
    source: "threads.c",
    ..C
};
pub(crate) const AGAIN: Language = Language {
    source: "again.c",
    ..C
};
pub(crate) const ANEW: Language = Language {
    source: "anew.c",
    ..C
};
pub(crate) const CONTEXTS: Language = Language {
    source: "contexts.c",
    threads: 1,
    ..C
};
pub(crate) const CLONED: Language = Language {
    source: "cloned.c",
    ..C
};
/// A program with a stack of two megabytes.
pub(crate) const DEEP: Language = Language {
    source: "deep.c",
    threads: 1,
    ..C
};
pub(crate) const KERNEL: Language = Language {
    source: "kernel.c",
    threads: 1,
    ..C
};
pub(crate) const NULL_CALL: Language = Language {
    source: "null_call.c",
    threads: 1,
    ..C
};
/// A program that runs in the PLT stub by which it calls a library.
pub(crate) const STUB: Language = Language {
    source: "stub.c",
    options: &["-fno-pie", "-no-pie", "-Wl,-z,lazy", "-Wl,-z,norelro"],
    threads: 1,
    ..C
};
/// A program that calls an address without code.
pub(crate) const WILD_CALL: Language = Language {
    source: "wild_call.c",
    threads: 1,
    ..C
};
pub(crate) const OVERFLOW: Language = Language {
    source: "overflow.c",
    threads: 1,
    ..C
};
/// A program that creates a thread when it reads a byte.
pub(crate) const NEWBORN: Language = Language {
    source: "newborn.c",
    ..C
};
pub(crate) const GENERATED: Language = Language {
    source: "generated.c",
    threads: 1,
    ..C
};
/// A program whose main thread has ended.
pub(crate) const HEADLESS: Language = Language {
    source: "headless.c",
    ..C
};
/// A library that is preloaded into a looker.
pub(crate) const EXEC_WHILE_SEIZED: Language = Language {
    source: "exec_while_seized.c",
    options: &["-shared", "-fPIC"],
    ..C
};
/// A 32-bit program; no 32-bit C library is needed.
pub(crate) const NARROW: Language = Language {
    source: "narrow.s",
    compiler: "gcc",
    options: &["-Wa,--32", "-Wl,-m,elf_i386", "-nostdlib", "-static"],
    threads: 1,
};
pub(crate) const CXX: Language = Language {
    source: "shapes.cc",
    compiler: "g++",
    options: &[],
    threads: 1,
};
pub(crate) const CLANG: Language = Language {
    compiler: "clang++",
    ..CXX
};
pub(crate) const FORTRAN: Language = Language {
    source: "heat.f90",
    compiler: "gfortran",
    ..CXX
};
pub(crate) const RUST: Language = Language {
    source: "cells.rs",
    compiler: "rustc",
    ..CXX
};

/// The compiler options that are tested, by name.
pub(crate) const VARIANTS: &[&str] = &[
    "O0",
    "O2",
    "O3",
    "lto",
    "frame-pointer",
    "dwarf-4",
    "split",
    "gz",
    "zstd",
    "static",
    "static-pie",
    "no-pie",
    "no-unwind",
    "types",
    "stripped",
    "debuglink",
    "debug-folder",
    "packed",
    "package",
];

fn options(variant: &str) -> &'static [&'static str] {
    match variant {
        "O0" => &["-g", "-O0"],
        "O2" => &["-g", "-O2"],
        "O3" => &["-g", "-O3"],
        "lto" => &["-g", "-O2", "-flto"],
        "frame-pointer" => &["-g", "-O2", "-fno-omit-frame-pointer"],
        "dwarf-4" => &["-gdwarf-4", "-O1"],
        "split" => &["-g", "-gsplit-dwarf", "-O1"],
        // Debian's dwp crashes at DWARF 5.
        "package" => &["-gdwarf-4", "-gsplit-dwarf", "-O1"],
        "gz" => &["-g", "-gz=zlib", "-O1"],
        "static" => &["-g", "-O1", "-static"],
        "static-pie" => &["-g", "-O1", "-static-pie"],
        "no-pie" => &["-g", "-O1", "-no-pie"],
        "no-unwind" => &[
            "-g",
            "-O0",
            "-fno-asynchronous-unwind-tables",
            "-fno-exceptions",
        ],
        "types" => &["-g", "-O1", "-fdebug-types-section"],
        "stripped" => &["-O1"],
        _ => &["-g", "-O1"],
    }
}

/// A compiled program in a directory of its own; drop deletes the directory.
pub(crate) struct Program {
    language: Language,
    variant: String,
    options: Vec<&'static str>,
    folder: PathBuf,
}

impl Program {
    pub(crate) fn new(language: Language, variant: &str) -> Self {
        let mut options = options(variant).to_vec();
        if language.compiler == "rustc" {
            options = if variant == "O2" {
                vec!["-g", "-O"]
            } else {
                vec!["-g"]
            };
        }
        options.extend(language.options);
        Self::of(language, variant, options)
    }

    /// The C program, compiled with musl.
    pub(crate) fn musl(options: &[&'static str]) -> Self {
        let language = Language {
            compiler: "musl-gcc",
            ..C
        };
        let mut all = vec!["-g", "-O1"];
        all.extend(
            options
                .iter()
                .map(|it| if *it == "static" { "-static" } else { it }),
        );
        Self::of(language, &options.join(" "), all)
    }

    fn of(language: Language, variant: &str, options: Vec<&'static str>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sdm-oracle-{}-{next}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        Self {
            language,
            variant: variant.to_owned(),
            options,
            folder,
        }
    }

    pub(crate) fn name(&self) -> String {
        let Language {
            source, compiler, ..
        } = self.language;
        format!("{source} {compiler} {}", self.variant)
            .trim()
            .to_owned()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn compiler(&self) -> &str {
        self.language.compiler
    }

    /// Compiles the program; `None` if this machine cannot.
    pub(crate) fn make(&self) -> Option<PathBuf> {
        let program = self.folder.join("program");
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let compiled = Command::new(self.language.compiler)
            .args(&self.options)
            .arg("-o")
            .arg(&program)
            .arg(fixtures.join(self.language.source))
            .current_dir(&self.folder)
            .output();
        let compiled = compiled.ok()?;
        let said = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{}: {said}", self.name());
        match self.variant.as_str() {
            "stripped" => self.tool("strip", &["program"]),
            "debuglink" => self.separate("program.debug"),
            "debug-folder" => {
                std::fs::create_dir(self.folder.join(".debug")).unwrap();
                self.separate(".debug/program.debug");
            }
            "packed" => {
                self.tool("objcopy", &["--strip-debug", "program", "symbols"]);
                self.tool("xz", &["symbols"]);
                self.tool("strip", &["program"]);
                let section = "--add-section=.gnu_debugdata=symbols.xz";
                self.tool("objcopy", &[section, "program"]);
            }
            // A package is found by the name of its program.
            "package" => {
                self.tool("dwp", &["-e", "program", "-o", "program.dwp"]);
                for piece in self.pieces() {
                    std::fs::remove_file(piece).unwrap();
                }
            }
            "zstd" => self.tool("objcopy", &["--compress-debug-sections=zstd", "program"]),
            _ => {}
        }
        Some(program)
    }

    /// The files with split debug information that the compiler has written.
    fn pieces(&self) -> Vec<PathBuf> {
        let all = std::fs::read_dir(&self.folder).unwrap().flatten();
        let mut all: Vec<PathBuf> = all.map(|it| it.path()).collect();
        all.retain(|path| path.extension().is_some_and(|it| it == "dwo"));
        all
    }

    /// Moves the debug information to another file.
    fn separate(&self, debug: &str) {
        self.tool("objcopy", &["--only-keep-debug", "program", debug]);
        self.tool("strip", &["program"]);
        let link = format!("--add-gnu-debuglink={debug}");
        self.tool("objcopy", &[&link, "program"]);
    }

    fn tool(&self, name: &str, words: &[&str]) {
        let mut command = Command::new(name);
        let status = command.args(words).current_dir(&self.folder).status();
        assert!(status.unwrap().success(), "{name}");
    }

    /// Starts the program, and waits until all its threads wait or have ended; `None` if it cannot be compiled.
    pub(crate) fn run(&self) -> Option<Running> {
        let mut command = Command::new(self.make()?);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let running = Running(child);
        let process = proc::of(running.pid());
        let waits = || {
            let threads: Vec<i32> = process.thread_ids().unwrap().collect();
            let pauses = |id: &i32| {
                let thread = process.thread(*id);
                let call = thread.system_call();
                call.is_some_and(|(number, _)| PAUSE.contains(&number))
                    || thread.state().is_some_and(proc::State::has_ended)
            };
            threads.len() == self.language.threads && threads.iter().all(pauses)
        };
        let until = Instant::now() + crate::PATIENCE;
        while !waits() {
            assert!(Instant::now() < until, "{} waits", self.name());
            std::thread::sleep(Duration::from_millis(2));
        }
        Some(running)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A running program. Drop kills it.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
