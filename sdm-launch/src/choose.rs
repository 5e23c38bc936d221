//! Choice of a launcher for a program if the user names none, and detection of a launcher that does not fit the
//! program's MPI.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use object::{Object, ReadCache};
use sdm_hosts::mpi::{Linked, Mpi};
use sdm_system::files;
use sdm_text::printable_name;

use crate::{Launcher, named_programs};

/// Option by which `srun` provides a PMIx server. The next constant is for MPICH, which needs a PMI-2 server.
const SRUN_PMIX: &str = "--mpi=pmix";
const SRUN_PMI2: &str = "--mpi=pmi2";

/// Beginning of [`Linked::by`] if the program that uses MPI is not the started one, but is named in its arguments.
const IN_ARGUMENTS: &str = "in its arguments ";

/// The launcher chosen for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Name of the launcher, for [`crate::find`].
    pub launcher: &'static str,
    /// Options of the launcher, in front of the user's own.
    pub options: Vec<&'static str>,
    /// Reason of the choice, for the user.
    pub why: String,
}

impl Choice {
    /// True if the launcher was chosen for a program that calls MPI.
    #[must_use]
    pub fn is_for_mpi(&self) -> bool {
        self.launcher != "local" && self.options != ["--mpi=none"]
    }
}

/// The MPI with which a program is linked; `words` is the program's command line. If the program uses no MPI, that of a
/// program named in its arguments. `lookup` returns the value of an environment variable.
#[must_use]
pub fn linked(words: &[OsString], lookup: &dyn Fn(&str) -> Option<OsString>) -> Linked {
    let Some((program, arguments)) = words.split_first() else {
        return Linked::default();
    };
    let path = find_program(program);
    let own = path.map_or_else(Linked::default, |path| Linked::of(&path, lookup));
    if own.mpi.is_some() {
        return own;
    }
    match named_programs::find(arguments, lookup) {
        Some((named, linked)) => Linked {
            by: format!("{IN_ARGUMENTS}{}: {}", printable_name(&named), linked.by),
            ..linked
        },
        None => own,
    }
}

/// Chooses a launcher by the libraries with which a program is linked, and by whether this process runs in a Slurm job.
#[must_use]
pub fn choose(program: &OsStr, linked: &Linked) -> Choice {
    let job = std::env::var("SLURM_JOB_ID").ok();
    chosen(linked, &program.to_string_lossy(), job.as_deref())
}

fn chosen(linked: &Linked, program: &str, slurm_job: Option<&str>) -> Choice {
    let mpi = linked.mpi;
    let with = match mpi {
        Some(mpi) if linked.by.starts_with(IN_ARGUMENTS) => {
            format!("called with an argument that is a program linked with {mpi}")
        }
        Some(mpi) => format!("linked with {mpi}"),
        None => "not linked with MPI".to_owned(),
    };
    let by = match linked.by.as_str() {
        "" => String::new(),
        by => format!(" ({by})"),
    };
    let why = format!("{program} is {with}{by}");
    let choice = |launcher, options: &[&'static str], why| Choice {
        launcher,
        options: options.to_vec(),
        why,
    };
    let in_job = |job: &str| format!("{why}, and sdm runs inside Slurm job {job}");
    match (mpi, slurm_job) {
        (Some(Mpi::OpenMpi), Some(job)) => choice("srun", &[SRUN_PMIX], in_job(job)),
        (Some(Mpi::Mpich), Some(job)) => choice("srun", &[SRUN_PMI2], in_job(job)),
        (None, Some(job)) => choice("srun", &["--mpi=none"], in_job(job)),
        (Some(Mpi::OpenMpi), None) => choice("mpirun", &[], why),
        (Some(Mpi::Mpich), None) => choice("mpiexec", &[], why),
        (None, None) => choice("local", &[], why),
    }
}

/// Reason for which the ranks of a program cannot connect to each other under a launcher with these options; `None` if
/// they can, or if that is unknown.
#[must_use]
pub fn misfit(linked: &Linked, launcher: &dyn Launcher, options: &[OsString]) -> Option<String> {
    let mpi = linked.mpi?;
    let name = launcher.name();
    let own = match launcher.mpi() {
        Some(own) => own,
        // The site's default for `--mpi` is unknown.
        None if name == "srun" => match srun_mpi(options)?.as_str() {
            plugin if plugin.starts_with("pmix") => Mpi::OpenMpi,
            "pmi2" | "cray_shasta" => Mpi::Mpich,
            _ => return None,
        },
        None if ["local", "ssh", "loopback"].contains(&name) => Mpi::OpenMpi,
        None => return None,
    };
    let has_server = own == Mpi::OpenMpi && linked.has_pmix && name != "mpirun";
    if own == mpi || has_server {
        return None;
    }
    let (fits, by) = match mpi {
        Mpi::OpenMpi => ("mpirun", "a PMIx server"),
        Mpi::Mpich => ("mpiexec", "Hydra or PMI-2"),
    };
    let launcher = launcher.describe();
    Some(format!(
        "linked with {mpi}, whose ranks find each other by {by}: under {launcher} each process would be rank 0 of 1; use --launcher {fits}"
    ))
}

/// The value of the last `--mpi` among srun's options; `None` if there is none.
fn srun_mpi(options: &[OsString]) -> Option<String> {
    let words: Vec<_> = options.iter().map(|word| word.to_string_lossy()).collect();
    let value = |at: usize| match words[at].strip_prefix("--mpi=") {
        Some(value) => Some(value.to_owned()),
        None => (words[at] == "--mpi").then(|| words.get(at + 1).map(|word| word.to_string()))?,
    };
    (0..words.len()).rev().find_map(value)
}

/// The file of a program: its path as given, or the file of this name on `PATH`. `None` if `PATH` has none.
#[must_use]
pub fn find_program(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Some(path.to_owned());
    }
    files::search(program)
}

/// The build id that the linker has put into a program, in hexadecimal digits; `None` if it has none.
#[must_use]
pub fn build_id(program: &Path) -> Option<String> {
    let cache = ReadCache::new(files::open(program).ok()?);
    let object = object::File::parse(&cache).ok()?;
    let id = object.build_id().ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::{Hydra, Local, OpenMpi, Srun};

    fn with(mpi: Option<Mpi>) -> Linked {
        let by = String::new();
        Linked {
            mpi,
            by,
            has_pmix: false,
            library: None,
        }
    }

    #[test]
    fn launcher_follows_from_linked_mpi_and_slurm_job() {
        let check = |mpi, job, launcher, options: &[&str]| {
            let choice = chosen(&with(mpi), "./halo", job);
            assert_eq!((choice.launcher, &*choice.options), (launcher, options));
            assert!(choice.why.starts_with("./halo is "), "{choice:?}");
        };
        check(Some(Mpi::OpenMpi), None, "mpirun", &[]);
        check(Some(Mpi::Mpich), None, "mpiexec", &[]);
        check(None, None, "local", &[]);
        check(Some(Mpi::OpenMpi), Some("7"), "srun", &["--mpi=pmix"]);
        check(Some(Mpi::Mpich), Some("7"), "srun", &["--mpi=pmi2"]);
        check(None, Some("7"), "srun", &["--mpi=none"]);
        let by = "/l/libmpi.so.40, needed by libpetsc.so".to_owned();
        let linked = Linked {
            mpi: Some(Mpi::OpenMpi),
            by,
            has_pmix: false,
            library: None,
        };
        let why = "./halo is linked with Open MPI (/l/libmpi.so.40, needed by libpetsc.so)";
        assert_eq!(chosen(&linked, "./halo", None).why, why);
    }

    #[test]
    fn launcher_of_another_mpi_is_reported() {
        let (open, hydra) = (
            OpenMpi::new("/b/mpirun", "Open MPI 4.1.4"),
            Hydra::new("/b/mpiexec", "Hydra 4.0.2"),
        );
        let srun = Srun::new("/b/srun", "slurm 22.05");
        let check = |mpi, launcher: &dyn Launcher, options: &[&str], fits: bool| {
            let options: Vec<OsString> = options.iter().map(Into::into).collect();
            let found = misfit(&with(mpi), launcher, &options);
            assert_eq!(found.is_none(), fits, "{mpi:?} {options:?}: {found:?}");
            found.unwrap_or_default()
        };
        let (of_open, of_mpich) = (Some(Mpi::OpenMpi), Some(Mpi::Mpich));
        check(of_open, &open, &[], true);
        check(of_mpich, &hydra, &[], true);
        check(None, &hydra, &[], true);
        let text = check(of_open, &hydra, &[], false);
        assert_eq!(
            text,
            "linked with Open MPI, whose ranks find each other by a PMIx server: under /b/mpiexec (Hydra 4.0.2) each process would be rank 0 of 1; use --launcher mpirun"
        );
        assert!(check(of_mpich, &open, &[], false).ends_with("use --launcher mpiexec"));
        check(of_mpich, &Local, &[], false);
        check(of_open, &Local, &[], true);
        check(of_open, &srun, &[], true);
        check(of_open, &srun, &["--mpi=pmi2"], false);
        check(of_open, &srun, &["--mpi", "pmix_v4"], true);
        check(of_mpich, &srun, &["--mpi=pmix"], false);
        check(of_mpich, &srun, &["--mpi=pmix", "--mpi=pmi2"], true);
        let has_pmix = Linked {
            has_pmix: true,
            ..with(of_mpich)
        };
        assert_eq!(misfit(&has_pmix, &srun, &["--mpi=pmix".into()]), None);
    }

    #[test]
    fn build_id_is_read_from_a_program() {
        let shell = find_program(OsStr::new("sh")).unwrap();
        assert_eq!(build_id(Path::new("/etc/passwd")), None);
        let notes = Command::new("readelf").arg("-n").arg(&shell).output();
        let notes = String::from_utf8(notes.expect("readelf").stdout).unwrap();
        let expected = notes
            .lines()
            .find_map(|it| it.trim().strip_prefix("Build ID: "));
        assert_eq!(build_id(&shell).as_deref(), expected);
    }
}
