//! Search for the launcher that a name means on this machine.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sdm_system::run_bounded::{self, Bounds};
use sdm_system::{files, programs};

use crate::external::PREFIX;
use crate::openmpi::allow_root;
use crate::{External, Hydra, LaunchError, Launcher, Local, Loopback, Manual, OpenMpi, Srun, Ssh};

/// Time limit for a program to print its version.
const VERSION_WAIT: Duration = Duration::from_secs(20);
/// Maximum number of lines of a version text.
const VERSION_LINES_MAX: usize = 1000;

/// Names of Open MPI's launcher, and of Hydra's.
const MPIRUN: [&str; 2] = ["mpirun.openmpi", "mpirun"];
const MPIEXEC: [&str; 2] = ["mpiexec.hydra", "mpiexec"];

/// The implementation to which a program such as `mpirun` or `mpiexec` belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Open MPI's `mpirun`, whose name is also orterun or prterun.
    OpenMpi,
    /// Hydra: the `mpiexec` of MPICH, MVAPICH and Intel MPI.
    Hydra,
}

impl Kind {
    /// Recognises a launcher by the output of `--version`. Returns its implementation, and a short name with the
    /// version; `None` if the output is not known.
    #[must_use]
    pub fn from_version(text: &str) -> Option<(Self, String)> {
        let first = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        let last_word = first.split_whitespace().next_back()?;
        if first.contains("(Open MPI)") || first.contains("(OpenRTE)") {
            return Some((Self::OpenMpi, format!("Open MPI {last_word}")));
        }
        if first.contains("(PRRTE)") {
            return Some((Self::OpenMpi, format!("PRRTE {last_word}")));
        }
        if first.contains("HYDRA") {
            let version = text.lines().find_map(|line| {
                let rest = line.trim().strip_prefix("Version:")?;
                rest.split_whitespace().next()
            });
            let version = version.map(|version| format!(" {version}"));
            return Some((Self::Hydra, format!("Hydra{}", version.unwrap_or_default())));
        }
        if first.contains("Intel(R) MPI Library") {
            return Some((Self::Hydra, "Hydra of Intel MPI".to_owned()));
        }
        None
    }
}

/// Alternative names of launchers.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("srun", &["slurm"]),
    (
        "mpirun",
        &["openmpi", "ompi", "orterun", "prterun", "mpirun.openmpi"],
    ),
    ("mpiexec", &["mpich", "hydra", "mpiexec.hydra"]),
];

/// The common name of a launcher: `srun` for `slurm`, unless a site has a launcher of that name.
#[must_use]
pub fn common_name(name: &str) -> &str {
    common_name_in(name, &files::search_path())
}

fn common_name_in<'a>(name: &'a str, path: &OsStr) -> &'a str {
    let mut known = OTHER_NAMES.iter();
    match known.find(|(_, others)| others.contains(&name)) {
        Some((common, _)) if search(&format!("{PREFIX}{name}"), path).is_none() => common,
        _ => name,
    }
}

/// The launcher that `name` means here.
///
/// - `local`: [`Local`]. `loopback`: [`Loopback`].
/// - `mpirun`: Open MPI's, as `mpirun.openmpi` or `mpirun`. Without one, `mpirun` of any other kind.
/// - `mpiexec`: Hydra's, as `mpiexec.hydra` or `mpiexec`. Without one, `mpiexec` of any other kind.
/// - `srun`: Slurm's. `ssh`: [`Ssh`]. `manual`: [`Manual`].
/// - a path, or another name that begins with `mpirun` or `mpiexec`: a program of any kind.
/// - any other NAME: the `sdm-launch-NAME` on `PATH`.
///
/// Each program found is run with `--version`, for at most 20 seconds; `ssh` and `sdm-launch-NAME` are not run.
///
/// # Errors
/// The name is unknown, or nothing of the kind is on `PATH`; the error lists the programs found.
pub fn find(name: &str) -> Result<Box<dyn Launcher>, LaunchError> {
    find_in(name, &files::search_path())
}

/// The programs on `PATH` that can be the launcher of this name, by their names.
#[must_use]
pub fn programs_of(name: &str) -> Vec<String> {
    match name {
        "local" | "loopback" | "manual" => Vec::new(),
        "ssh" | "srun" => vec![name.to_owned()],
        "mpirun" => MPIRUN.map(str::to_owned).to_vec(),
        "mpiexec" => MPIEXEC.map(str::to_owned).to_vec(),
        _ => vec![format!("{PREFIX}{name}")],
    }
}

fn find_in(name: &str, path: &OsStr) -> Result<Box<dyn Launcher>, LaunchError> {
    let (candidates, wanted) = match name {
        "local" => return Ok(Box::new(Local)),
        "loopback" => return Ok(Box::new(Loopback)),
        "ssh" => return Ok(Box::new(Ssh)),
        "manual" => return Ok(Box::new(Manual)),
        "srun" => return srun(path),
        "mpirun" => (MPIRUN, Kind::OpenMpi),
        "mpiexec" => (MPIEXEC, Kind::Hydra),
        _ if name.contains('/') => {
            let program = PathBuf::from(name);
            let (kind, version) = identify(&program)?;
            return Ok(launcher(program, None, (kind, version)));
        }
        _ => {
            if let Some(program) = search(&format!("{PREFIX}{name}"), path) {
                return Ok(Box::new(External::new(name, program)));
            }
            // The name by which a system keeps several: `mpiexec.mpich`, `mpirun.openmpi`.
            let is_mpi = name.starts_with("mpirun") || name.starts_with("mpiexec");
            let program = search(name, path).filter(|_| is_mpi);
            let program = program.ok_or_else(|| LaunchError::Unknown { name: name.into() })?;
            let known = identify(&program)?;
            return Ok(launcher(program, Some(name), known));
        }
    };
    first_of(name, candidates, wanted, path)
}

/// The first program on `path` that belongs to the wanted implementation; without one, the last program of another. All
/// names are tried in one folder before the next folder, as the order of the folders is the user's choice.
fn first_of(
    name: &str,
    candidates: [&str; 2],
    wanted: Kind,
    path: &OsStr,
) -> Result<Box<dyn Launcher>, LaunchError> {
    let mut tried = Vec::new();
    let mut other = None;
    for folder in std::env::split_paths(path) {
        for candidate in candidates {
            let program = folder.join(candidate);
            if !files::is_program(&program) {
                continue;
            }
            match identify(&program) {
                Ok(known) if known.0 == wanted => {
                    return Ok(launcher(program, Some(candidate), known));
                }
                Ok(known) => other = Some((program, candidate, known)),
                Err(error) => tried.push(error.to_string()),
            }
        }
    }
    let is_missing = |candidate: &&str| search(candidate, path).is_none();
    let missing = candidates.into_iter().filter(is_missing);
    tried.extend(missing.map(absent));
    match other {
        Some((program, candidate, known)) => Ok(launcher(program, Some(candidate), known)),
        None => Err(LaunchError::NotFound {
            name: name.into(),
            tried: tried.join(", "),
        }),
    }
}

fn srun(path: &OsStr) -> Result<Box<dyn Launcher>, LaunchError> {
    let program = search("srun", path).ok_or_else(|| LaunchError::NotFound {
        name: "srun".to_owned(),
        tried: absent("srun"),
    })?;
    let version = version_text(&program).unwrap_or_default();
    let version = version.lines().next().unwrap_or("Slurm").trim().to_owned();
    Ok(Box::new(Srun::new(program, version)))
}

/// Error text for a program that was not found. If a file of the name exists, it gives the reason for which the file
/// was not taken.
fn absent(name: &str) -> String {
    let why = files::passed_over(name).map_or_else(String::new, |why| format!(" ({why})"));
    format!("no {name} on PATH{why}")
}

fn launcher(
    program: PathBuf,
    called: Option<&str>,
    (kind, version): (Kind, String),
) -> Box<dyn Launcher> {
    match kind {
        Kind::OpenMpi => {
            let launcher = OpenMpi::new(program, version);
            Box::new(match called {
                Some(name) => launcher.called(name),
                None => launcher,
            })
        }
        Kind::Hydra => Box::new(Hydra::new(program, version)),
    }
}

fn search(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .map(|directory| directory.join(name))
        .find(|program| files::is_program(program))
}

fn identify(program: &Path) -> Result<(Kind, String), LaunchError> {
    let failed = |what: String| LaunchError::Version {
        program: program.to_owned(),
        what,
    };
    let text = version_text(program).map_err(|error| failed(format!("--version: {error}")))?;
    Kind::from_version(&text).ok_or_else(|| {
        let first: String = text
            .lines()
            .next()
            .unwrap_or("nothing")
            .chars()
            .take(80)
            .collect();
        failed(format!(
            "the program is neither Open MPI's mpirun nor Hydra's mpiexec: its --version prints {first:?}"
        ))
    })
}

/// The standard output of `program --version`. A program that hangs is killed.
fn version_text(program: &Path) -> io::Result<String> {
    let mut command = programs::helper_at(program);
    command.arg("--version");
    allow_root(&mut command);
    let bounds = Bounds {
        wait: VERSION_WAIT,
        lines_max: VERSION_LINES_MAX,
    };
    Ok(run_bounded::run(&mut command, &[], bounds)?
        .lines
        .join("\n"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn launcher_version_texts_are_parsed() {
        let check = |text: &str, expect: Option<(Kind, &str)>| {
            let found = Kind::from_version(text);
            let found = found.as_ref().map(|(kind, name)| (*kind, name.as_str()));
            assert_eq!(found, expect, "{text:?}");
        };
        let open = |name| Some((Kind::OpenMpi, name));
        let hydra = |name| Some((Kind::Hydra, name));
        check(
            "mpirun (Open MPI) 4.1.4\n\nReport bugs to",
            open("Open MPI 4.1.4"),
        );
        check("mpirun.openmpi (OpenRTE) 4.1.4\n", open("Open MPI 4.1.4"));
        check("mpirun (Open MPI) 5.0.11\n", open("Open MPI 5.0.11"));
        check("prterun (PRRTE) 3.0.13\n", open("PRRTE 3.0.13"));
        check(
            "HYDRA build details:\n    Version:            4.0.2\n    Release Date: x\n",
            hydra("Hydra 4.0.2"),
        );
        check("HYDRA build details:\n", hydra("Hydra"));
        check(
            "Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307\n",
            hydra("Hydra of Intel MPI"),
        );
        check("", None);
        check("bash, version 5\n", None);
    }

    #[test]
    fn launcher_alias_maps_to_its_common_name() {
        let nowhere = OsStr::new("/nosuch");
        for (name, common) in [
            ("slurm", "srun"),
            ("openmpi", "mpirun"),
            ("mpich", "mpiexec"),
            ("srun", "srun"),
            ("pbs", "pbs"),
        ] {
            assert_eq!(common_name_in(name, nowhere), common);
        }
        // A site's own launcher of that name takes precedence.
        let site = Programs::new("site", &[("sdm-launch-slurm", "")]);
        assert_eq!(common_name_in("slurm", site.0.as_os_str()), "slurm");
    }

    /// A directory of programs that print a version text, each name with its text.
    struct Programs(PathBuf);

    impl Programs {
        fn new(name: &str, programs: &[(&str, &str)]) -> Self {
            let id = std::process::id();
            let directory = std::env::temp_dir().join(format!("sdm-detect-{name}-{id}"));
            std::fs::create_dir_all(&directory).unwrap();
            for (program, text) in programs {
                let path = directory.join(program);
                std::fs::write(&path, format!("#!/bin/sh\necho '{text}'\n")).unwrap();
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(&path, mode).unwrap();
            }
            Self(directory)
        }

        fn find(&self, name: &str) -> Result<String, String> {
            match find_in(name, self.0.as_os_str()) {
                Ok(launcher) => Ok(launcher.describe().replace(self.0.to_str().unwrap(), "")),
                Err(error) => Err(error.to_string()),
            }
        }
    }

    impl Drop for Programs {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Held while programs are written and run: a fork of another test meanwhile would keep them open
    /// for writing, and then they cannot be executed.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    const OPEN: &str = "mpirun (Open MPI) 4.1.4";
    const HYDRA: &str = "HYDRA build details:";

    #[test]
    fn mpirun_prefers_open_mpi_and_mpiexec_prefers_hydra() {
        let _one = ONE_AT_A_TIME.lock();
        let both = [
            ("mpirun", HYDRA),
            ("mpirun.openmpi", OPEN),
            ("mpiexec", OPEN),
            ("mpiexec.hydra", HYDRA),
        ];
        let programs = Programs::new("both", &both);
        assert_eq!(
            programs.find("mpirun").unwrap(),
            "/mpirun.openmpi (Open MPI 4.1.4)"
        );
        assert_eq!(programs.find("mpiexec").unwrap(), "/mpiexec.hydra (Hydra)");
        let programs = Programs::new("one", &[("mpirun", HYDRA), ("mpiexec", OPEN)]);
        assert_eq!(programs.find("mpirun").unwrap(), "/mpirun (Hydra)");
        assert_eq!(
            programs.find("mpiexec").unwrap(),
            "/mpiexec (Open MPI 4.1.4)"
        );
    }

    #[test]
    fn launcher_is_found_by_the_name_of_its_system() {
        let _one = ONE_AT_A_TIME.lock();
        let names = [("mpiexec.mpich", HYDRA), ("mpirun.openmpi", OPEN)];
        let programs = Programs::new("names", &names);
        for (name, found) in [
            ("mpiexec.mpich", "/mpiexec.mpich (Hydra)"),
            ("mpirun.openmpi", "/mpirun.openmpi (Open MPI 4.1.4)"),
        ] {
            assert_eq!(programs.find(name).as_deref(), Ok(found));
        }
        assert!(programs.find("mpiexec.other").is_err());
    }

    #[test]
    fn path_folders_are_searched_in_order() {
        let _one = ONE_AT_A_TIME.lock();
        let own = Programs::new("own", &[("mpirun", "mpirun (Open MPI) 5.0.11")]);
        let system = Programs::new("system", &[("mpirun.openmpi", OPEN)]);
        let path = std::env::join_paths([&own.0, &system.0]).unwrap();
        let found = find_in("mpirun", &path).unwrap().describe();
        assert!(found.ends_with("(Open MPI 5.0.11)"), "{found}");
    }

    #[test]
    fn missing_launcher_is_named() {
        let _one = ONE_AT_A_TIME.lock();
        let programs = Programs::new("none", &[("mpirun", "bash")]);
        let error = programs.find("mpirun").unwrap_err();
        assert!(error.contains("no mpirun.openmpi on PATH"), "{error}");
        assert!(error.contains("prints \"bash\""), "{error}");
        assert!(
            programs
                .find("/no/such/program")
                .unwrap_err()
                .contains("/no/such/program")
        );
        assert!(
            programs
                .find("warp")
                .unwrap_err()
                .contains("launcher warp: unknown")
        );
        assert_eq!(
            programs.find("local").unwrap(),
            "local: servers on this machine"
        );
    }
}
