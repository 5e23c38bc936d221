//! The compiler of an MPI.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sdm_system::run_bounded::{self, Bounds};
use sdm_system::{files, programs};
use sdm_text::printable_name;

use crate::library_error::{Family, LibraryError};

/// Names of compilers for C, in this order; systems with several MPIs have them under names of their own.
const NAMES: [&str; 5] = ["mpicc", "mpicc.openmpi", "mpicc.mpich", "mpiicx", "mpiicc"];
/// The number of folders above a library in which its MPI's programs are looked for.
const ABOVE_MAX: usize = 5;
/// The time that a compiler may take: several hundred functions on a busy machine.
const BOUNDS: Bounds = Bounds {
    wait: Duration::from_secs(180),
    lines_max: 10_000,
};
/// A name that no header has.
const ASKED: &str = "sdm_check_asks";

/// A compiler, and what its header has.
pub(crate) struct Compiler {
    program: PathBuf,
    /// The header, preprocessed.
    pub(crate) header: String,
}

impl Compiler {
    /// The compiler of an MPI: the one beside its library where that is known, or on `PATH`.
    pub(crate) fn find(
        family: Family,
        library: Option<&Path>,
        folder: &Path,
    ) -> Result<Self, LibraryError> {
        let mut why = Vec::new();
        for program in candidates(library) {
            match Self::at(program, folder) {
                Ok((found, is)) if is == family => return Ok(found),
                Ok((other, _)) => why.push(format!(
                    "{} belongs to another MPI",
                    printable_name(&other.program)
                )),
                Err(error) => why.push(error.to_string()),
            }
        }
        Err(LibraryError::NoCompiler {
            family,
            why: match why.is_empty() {
                true => "no mpicc in its folder or on PATH".to_owned(),
                false => why.join("; "),
            },
        })
    }

    /// The file by which another compiler is told from it.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    fn at(program: PathBuf, folder: &Path) -> Result<(Self, Family), LibraryError> {
        let source = folder.join("header.c");
        let text = format!(
            "#include <mpi.h>\n;\n#ifdef OPEN_MPI\nint {ASKED}_open_mpi;\n#endif\n#if defined MPICH || defined MPICH_VERSION || defined I_MPI_VERSION\nint {ASKED}_mpich;\n#endif\n"
        );
        write(&source, &text)?;
        let result = folder.join("header.i");
        let found = Self {
            program,
            header: String::new(),
        };
        found.run(&["-E", "-P"], &source, &result)?;
        let header = files::open(&result).and_then(|file| files::text_of(file, HEADER_BYTES_MAX));
        let header = header.map_err(|error| found.failed(error.to_string()))?;
        let has = |what: &str| header.contains(&format!("{ASKED}_{what}"));
        let family = match (has("open_mpi"), has("mpich")) {
            (true, _) => Family::OpenMpi,
            (_, true) => Family::Mpich,
            _ => {
                return Err(
                    found.failed("its mpi.h belongs neither to Open MPI nor to MPICH".to_owned())
                );
            }
        };
        Ok((Self { header, ..found }, family))
    }

    /// Makes a library of a source.
    pub(crate) fn compile(&self, source: &Path, library: &Path) -> Result<(), LibraryError> {
        // Each function stays in the stack, under its name.
        let options = [
            "-shared",
            "-fPIC",
            "-O2",
            "-w",
            "-fno-optimize-sibling-calls",
            // Some programs load MPI where only they find it: it is loaded with this.
            "-Wl,--no-as-needed",
        ];
        self.run(&options, source, library)
    }

    fn run(&self, options: &[&str], source: &Path, result: &Path) -> Result<(), LibraryError> {
        let mut command = programs::at(&self.program);
        command.args(options).arg("-o").arg(result).arg(source);
        if options.contains(&"-shared") {
            command.args(["-ldl", "-lpthread"]);
        }
        // It speaks as it is understood here.
        command.env("LC_ALL", "C");
        let said = run_bounded::run(&mut command, &[], BOUNDS)
            .map_err(|error| self.failed(error.to_string()))?;
        if said.status.success() {
            return Ok(());
        }
        let is_error = |line: &&String| line.contains("error") || line.contains("not found");
        let line = said
            .complaints
            .iter()
            .find(is_error)
            .or(said.complaints.last());
        let line = line.map_or_else(|| said.status.to_string(), Clone::clone);
        Err(self.failed(line))
    }

    fn failed(&self, what: String) -> LibraryError {
        LibraryError::Compiler {
            compiler: self.program.clone(),
            what,
        }
    }
}

/// The largest header that is read, preprocessed.
const HEADER_BYTES_MAX: u64 = 16 << 20;

pub(crate) fn write(path: &Path, text: &str) -> Result<(), LibraryError> {
    files::replace(path, text.as_bytes()).map_err(|source| LibraryError::Cache {
        folder: path.to_owned(),
        source,
    })
}

/// Compilers that may be those of a library: what is nearest to it first.
fn candidates(library: Option<&Path>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut folders: Vec<OsString> = Vec::new();
    let whole = library.and_then(|path| path.canonicalize().ok());
    for path in library.into_iter().chain(whole.as_deref()) {
        let above = path.ancestors().skip(1).take(ABOVE_MAX);
        folders.extend(above.map(|folder| folder.join("bin").into_os_string()));
    }
    let on_path = files::search_path();
    for name in NAMES {
        for folder in &folders {
            let program = Path::new(folder).join(name);
            if files::is_program(&program) && !has(&found, &program) {
                found.push(program);
            }
        }
    }
    for name in NAMES {
        let program = sdm_system::search_path::search_in(std::ffi::OsStr::new(name), &on_path);
        if let Some(program) = program.filter(|program| !has(&found, program)) {
            found.push(program);
        }
    }
    found
}

fn has(found: &[PathBuf], program: &Path) -> bool {
    let bytes = program.as_os_str().as_bytes();
    found
        .iter()
        .any(|known| known.as_os_str().as_bytes() == bytes)
}
