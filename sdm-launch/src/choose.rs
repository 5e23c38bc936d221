//! Which launcher suits a program, where a person names none.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, ObjectSymbol, ReadCache};
use sdm_system::files;

/// The largest program that is looked into, in bytes.
const PROGRAM_BYTES_MAX: u64 = 512 << 20;

/// What Open MPI calls its library, in versions 4 and 5; MPICH's has another number.
const OPEN_MPI_LIBRARY: &str = "libmpi.so.40";

/// A launcher that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its name, for [`crate::find`].
    pub launcher: &'static str,
    /// What it is to be told before the user's own options.
    pub options: Vec<&'static str>,
    /// Why, for a person.
    pub why: String,
}

impl Choice {
    /// Whether it is made for a program that calls MPI.
    #[must_use]
    pub fn is_for_mpi(&self) -> bool {
        self.launcher != "local" && self.options != ["--mpi=none"]
    }
}

/// Whose MPI a program calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mpi {
    Open,
    /// MPICH or one of its kin: they share their symbols.
    Mpich,
    None,
}

/// Chooses by what the program is linked with, and by whether this is a job of Slurm.
#[must_use]
pub fn choose(program: &OsStr) -> Choice {
    let path = find_program(program);
    let mpi = path.as_deref().map_or(Mpi::None, mpi_of);
    let job = std::env::var("SLURM_JOB_ID").ok();
    chosen(mpi, &program.to_string_lossy(), job.as_deref())
}

fn chosen(mpi: Mpi, program: &str, slurm_job: Option<&str>) -> Choice {
    let linked = match mpi {
        Mpi::Open => "linked with Open MPI",
        Mpi::Mpich => "linked with MPICH or its kin",
        Mpi::None => "not linked with MPI",
    };
    let why = format!("{program} is {linked}");
    let choice = |launcher, options: &[&'static str], why| Choice {
        launcher,
        options: options.to_vec(),
        why,
    };
    let in_job = |job: &str| format!("{why}, and this is Slurm's job {job}");
    match (mpi, slurm_job) {
        (Mpi::Open, Some(job)) => choice("srun", &["--mpi=pmix"], in_job(job)),
        (Mpi::Mpich, Some(job)) => choice("srun", &["--mpi=pmi2"], in_job(job)),
        (Mpi::None, Some(job)) => choice("srun", &["--mpi=none"], in_job(job)),
        (Mpi::Open, None) => choice("mpirun", &[], why),
        (Mpi::Mpich, None) => choice("mpiexec", &[], why),
        (Mpi::None, None) => choice("local", &[], why),
    }
}

/// The file that a program's name means: a path, or what is on `PATH`.
#[must_use]
pub fn find_program(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Some(path.to_owned());
    }
    files::search(program)
}

/// Whether a program is linked with an MPI that finds its job by PMIx.
#[must_use]
pub fn finds_pmix(program: &OsStr) -> bool {
    find_program(program).is_some_and(|path| mpi_of(&path) == Mpi::Open)
}

/// Whether a program is linked with an MPI whose ranks find one another under `mpiexec` only.
#[must_use]
pub fn wants_mpiexec(program: &OsStr) -> bool {
    find_program(program).is_some_and(|path| mpi_of(&path) == Mpi::Mpich)
}

/// The build-id that a program's linker has put into it, in hexadecimal digits.
#[must_use]
pub fn build_id(program: &Path) -> Option<String> {
    let cache = ReadCache::new(files::open(program).ok()?);
    let object = object::File::parse(&cache).ok()?;
    let id = object.build_id().ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Told by what the program wants of its libraries: Open MPI's handles are objects of names of its own. Who has no use for a handle
/// needs the library all the same.
fn mpi_of(program: &Path) -> Mpi {
    let mut bytes = Vec::new();
    let read =
        files::open(program).and_then(|file| file.take(PROGRAM_BYTES_MAX).read_to_end(&mut bytes));
    // What cannot be read or is no program uses no MPI that we could tell.
    let Some(object) = read.ok().and_then(|_| object::File::parse(&*bytes).ok()) else {
        return Mpi::None;
    };
    let symbols = object.dynamic_symbols();
    let wanted: Vec<&str> = symbols.filter_map(|symbol| symbol.name().ok()).collect();
    let wants = |prefix: &str| wanted.iter().any(|name| name.starts_with(prefix));
    if wants("ompi_mpi_") || wants("ompi_fortran_") || needs(&object, OPEN_MPI_LIBRARY) {
        return Mpi::Open;
    }
    if wanted
        .iter()
        .any(|name| ["MPI_Init", "MPI_Init_thread", "mpi_init_"].contains(name))
    {
        return Mpi::Mpich;
    }
    Mpi::None
}

/// True where a program's strings for the loader have this one.
fn needs(object: &object::File<'_>, library: &str) -> bool {
    let section = object.section_by_name(".dynstr");
    let strings = section.and_then(|it| it.data().ok()).unwrap_or_default();
    strings
        .split(|byte| *byte == 0)
        .any(|it| it == library.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_suits_whom() {
        let check = |mpi, job, launcher, options: &[&str]| {
            let choice = chosen(mpi, "./halo", job);
            assert_eq!((choice.launcher, &*choice.options), (launcher, options));
            assert!(choice.why.starts_with("./halo is "), "{choice:?}");
        };
        check(Mpi::Open, None, "mpirun", &[]);
        check(Mpi::Mpich, None, "mpiexec", &[]);
        check(Mpi::None, None, "local", &[]);
        check(Mpi::Open, Some("7"), "srun", &["--mpi=pmix"]);
        check(Mpi::Mpich, Some("7"), "srun", &["--mpi=pmi2"]);
        check(Mpi::None, Some("7"), "srun", &["--mpi=none"]);
    }

    #[test]
    fn what_is_no_mpi_program() {
        assert_eq!(mpi_of(Path::new("/bin/sh")), Mpi::None);
        assert_eq!(mpi_of(Path::new("/etc/passwd")), Mpi::None);
        assert_eq!(mpi_of(Path::new("/no/such/program")), Mpi::None);
        let shell = find_program(OsStr::new("sh")).unwrap();
        assert_eq!(build_id(Path::new("/etc/passwd")), None);
        if let Some(id) = build_id(&shell) {
            assert!(
                id.len() >= 16 && id.chars().all(|c| c.is_ascii_hexdigit()),
                "{id}"
            );
        }
    }
}
