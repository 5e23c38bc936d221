//! The search for the C compiler of an MPI (`mpicc`), and its use.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sdm_mpi::symbols::Mpi;
use sdm_system::run_bounded::{self, Bounds};
use sdm_system::{files, programs};
use sdm_text::printable_name;

use crate::library_error::LibraryError;

/// Names of the C compilers of MPIs, in the order in which they are tried. Systems with several MPIs use names such as
/// `mpicc.openmpi`.
const NAMES: [&str; 5] = ["mpicc", "mpicc.openmpi", "mpicc.mpich", "mpiicx", "mpiicc"];
/// Number of parent directories of the MPI library in whose `bin` a compiler is searched for.
const ABOVE_MAX: usize = 5;
/// Limits of a compiler run, which compiles several hundred functions, perhaps on a busy machine.
const BOUNDS: Bounds = Bounds {
    wait: Duration::from_secs(180),
    lines_max: 10_000,
};
/// Prefix of names that the preprocessed header contains if it defines a macro of Open MPI or MPICH. No real header has
/// such names.
const ASKED: &str = "sdm_check_asks";

/// A compiler, and its `mpi.h`.
pub(crate) struct Compiler {
    program: PathBuf,
    /// The preprocessed `mpi.h`.
    pub(crate) header: String,
}

impl Compiler {
    /// Finds the compiler of an MPI: first near the MPI's library if that is known, then on `PATH`.
    pub(crate) fn find(
        family: Mpi,
        library: Option<&Path>,
        folder: &Path,
    ) -> Result<Self, LibraryError> {
        let mut why = Vec::new();
        for program in candidates(library) {
            match Self::at(program, folder) {
                Ok((found, is)) if is == family => return Ok(found),
                Ok((other, is)) => {
                    let compiler = printable_name(&other.program);
                    let is = is.name();
                    why.push(format!("{compiler} compiles for {is}"));
                }
                Err(error) => why.push(error.to_string()),
            }
        }
        Err(LibraryError::NoCompiler {
            family,
            why: match why.is_empty() {
                true => "mpicc was found neither beside the MPI's launcher nor on PATH".to_owned(),
                false => why.join("; "),
            },
        })
    }

    /// The path of the compiler.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    fn at(program: PathBuf, folder: &Path) -> Result<(Self, Mpi), LibraryError> {
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
            (true, _) => Mpi::OpenMpi,
            (_, true) => Mpi::Mpich,
            _ => {
                return Err(found.failed(
                    "the mpi.h of this compiler belongs neither to Open MPI nor to MPICH"
                        .to_owned(),
                ));
            }
        };
        Ok((Self { header, ..found }, family))
    }

    /// Compiles a source file to a shared library.
    pub(crate) fn compile(&self, source: &Path, library: &Path) -> Result<(), LibraryError> {
        // Each function stays in the stack, under its name.
        let options = [
            "-shared",
            "-fPIC",
            // A higher level doubles the time to compile, and made no call of MPI measurably quicker.
            "-O1",
            "-w",
            "-fno-optimize-sibling-calls",
            // Some programs load MPI with symbols for themselves only, so this library is linked with MPI.
            "-Wl,--no-as-needed",
        ];
        self.run(&options, source, library)
    }

    fn run(&self, options: &[&str], source: &Path, result: &Path) -> Result<(), LibraryError> {
        let mut command = programs::helper_at(&self.program);
        command.args(options).arg("-o").arg(result).arg(source);
        if options.contains(&"-shared") {
            command.args(["-ldl", "-lpthread"]);
        }
        // The messages of the compiler are searched for English words.
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

/// Maximum size of the preprocessed header, in bytes.
const HEADER_BYTES_MAX: u64 = 16 << 20;

pub(crate) fn write(path: &Path, text: &str) -> Result<(), LibraryError> {
    files::replace(path, text.as_bytes()).map_err(|source| LibraryError::Cache {
        folder: path.to_owned(),
        source,
    })
}

/// Possible compilers for a library: those near the library, then those on `PATH`. Both groups are in the order of
/// [`NAMES`].
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
