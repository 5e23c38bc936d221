//! Trees of real libraries, built by the compiler. The loader of this machine gives the expected result.

use std::fs;
use std::process::Command;

use super::*;
use crate::mpi::{Linked, Mpi};

/// A separate folder, which drop removes.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let id = std::process::id();
        let path = std::env::temp_dir().join(format!("sdm-libraries-{name}-{id}"));
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    /// Compiles `text` to the file of this name; a name with `.so` becomes a library.
    fn build(&self, name: &str, text: &str, options: &[&str]) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let source = self.0.join("source.c");
        fs::write(&source, text).unwrap();
        let mut command = Command::new("cc");
        if let Some(library) = path.file_name().filter(|_| name.contains(".so")) {
            let name = format!("-Wl,-soname,{}", library.to_str().unwrap());
            command.args(["-shared", "-fPIC", &name]);
        }
        command.arg("-o").arg(&path).arg(&source);
        let here = format!("{}/", self.0.display());
        command.args(options.iter().map(|it| it.replace("HERE/", &here)));
        assert!(command.status().unwrap().success(), "{command:?}");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn search(variables: &[(&str, String)]) -> LibrarySearch {
    LibrarySearch::here(&|name| {
        let mut found = variables.iter().filter(|(known, _)| *known == name);
        found.next().map(|(_, value)| value.into())
    })
}

/// The libraries that the loader itself finds, and those that it does not find, sorted.
fn by_loader(program: &Path, variables: &[(&str, String)]) -> Vec<String> {
    let mut command = Command::new(program);
    command.env_clear().envs(variables.iter().cloned());
    command.env("LD_TRACE_LOADED_OBJECTS", "1");
    let said = command.output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let path = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let path = match words[..] {
            [name, "=>", "not", "found"] => return Some(format!("no {name}")),
            [_, "=>", path, ..] | [path, ..] => path,
            [] => return None,
        };
        let path = Path::new(path).canonicalize().ok()?;
        Some(path.display().to_string())
    };
    let mut found: Vec<String> = said.lines().filter_map(path).collect();
    found.sort();
    found.dedup();
    found
}

fn ours(tree: &Tree) -> Vec<String> {
    let real = |one: &Loaded| one.path.canonicalize().unwrap().display().to_string();
    let missing = tree.missing.iter().map(|name| format!("no {name}"));
    let mut found: Vec<String> = tree.all[1..].iter().map(real).chain(missing).collect();
    found.sort();
    found.dedup();
    found
}

const MPI: &str = "int MPI_Init; int PMPI_Init; int ompi_mpi_comm_world;";
const MPICH: &str = "int MPI_Init; int PMPI_Init;";

/// Each way by which the loader finds a library, alone and against the others.
#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn libraries_are_found_as_by_the_loader() {
    let folder = Folder::new("ways");
    let deep = "int deep; ";
    for place in ["a", "b", "c"] {
        folder.build(&format!("{place}/libdeep.so.1"), deep, &[]);
    }
    let link = "HERE/a/libdeep.so.1";
    let middle = |name: &str, options: &[&str]| {
        folder.build(
            name,
            "extern int deep; int *m = &deep;",
            &[&[link], options].concat(),
        );
        format!("HERE/{name}")
    };
    let (old, new) = ("-Wl,--disable-new-dtags", "-Wl,--enable-new-dtags");
    let main = "extern int *m; int main(void) { return !m; }";
    let mut programs = Vec::new();
    let plain = middle("a/libplain.so.1", &[]);
    let runs = middle("a/libruns.so.1", &["-Wl,-rpath,$ORIGIN/../b", new]);
    let olds = middle("b/libolds.so.1", &["-Wl,-rpath,${ORIGIN}/../c", old]);
    let unresolved = "-Wl,--unresolved-symbols=ignore-all";
    for (name, library, options) in [
        // RPATH also applies to the needs of libraries, RUNPATH does not.
        (
            "p1",
            &plain,
            [&*format!("-Wl,-rpath,{}/a", folder.0.display()), old],
        ),
        ("p2", &plain, ["-Wl,-rpath,$ORIGIN/a", new]),
        // If a library has RUNPATH, the RPATH of the objects that load it is ignored.
        ("p3", &runs, ["-Wl,-rpath,$ORIGIN/a", old]),
        ("p4", &olds, ["-Wl,-rpath,$ORIGIN/b:$ORIGIN/a", old]),
        ("p5", &olds, ["-Wl,-rpath,$ORIGIN/b", new]),
        ("p6", &plain, ["-Wl,-rpath,/no/such", new]),
    ] {
        let options = [
            &[library.as_str(), unresolved, "-Wl,--no-as-needed"],
            &options[..],
        ]
        .concat();
        programs.push(folder.build(name, main, &options));
    }
    // A file of another machine is passed over.
    fs::create_dir_all(folder.0.join("d")).unwrap();
    fs::write(
        folder.0.join("d/libdeep.so.1"),
        [b"\x7fELF\x01\x01\x01", &[0; 60][..]].concat(),
    )
    .unwrap();
    let in_folder = |names: &str| {
        let names = names
            .split(':')
            .map(|name| folder.0.join(name).display().to_string());
        names.collect::<Vec<_>>().join(":")
    };
    for variables in [
        vec![],
        vec![("LD_LIBRARY_PATH", in_folder("c"))],
        vec![("LD_LIBRARY_PATH", in_folder("d:b:a"))],
        vec![("LD_PRELOAD", in_folder("c/libdeep.so.1"))],
    ] {
        for program in &programs {
            let tree = search(&variables).tree(program);
            let expect = by_loader(program, &variables);
            let expect: Vec<_> = expect
                .into_iter()
                .filter(|it| !it.contains("ld-linux"))
                .collect();
            let found = ours(&tree);
            let found: Vec<_> = found
                .into_iter()
                .filter(|it| !it.contains("ld-linux"))
                .collect();
            assert_eq!(found, expect, "{} {variables:?}", program.display());
        }
    }
    // A link to a program is the program, by whose folder its libraries are found.
    std::os::unix::fs::symlink(&programs[1], folder.0.join("c/link")).unwrap();
    let tree = search(&[]).tree(&folder.0.join("c/link"));
    assert_eq!(tree.all[1].path, folder.0.join("a/libplain.so.1"));
}

#[test]
fn mpi_is_found_through_other_libraries() {
    let folder = Folder::new("behind");
    let path = format!("-Wl,-rpath,{}/lib", folder.0.display());
    let all = [
        "-nostdlib",
        "-Wl,--no-as-needed",
        "-Wl,--unresolved-symbols=ignore-all",
        &path,
    ];
    let library = |name: &str, text: &str, needs: &[&str]| {
        folder.build(&format!("lib/{name}"), text, &[&all, needs].concat());
    };
    library("libmpi.so.40", MPI, &[]);
    library(
        "libmpi_mpifh.so.40",
        "int mpi_init_;",
        &["HERE/lib/libmpi.so.40"],
    );
    library(
        "libpetsc.so.3",
        "int PetscInitialize;",
        &["HERE/lib/libmpi_mpifh.so.40"],
    );
    library("libmpi.so.12", MPICH, &[]);
    library("libhdf5.so.1", "int H5open;", &["HERE/lib/libmpi.so.12"]);
    // A library between a program and MPI.
    library("libprofile.so.1", "int MPI_Init;", &[]);
    // No folder of this machine has a part in it.
    let nothing = LibrarySearch::default();
    let linked = |name: &str, needs: &[&str]| {
        let needs: Vec<String> = needs.iter().map(|it| format!("HERE/lib/{it}")).collect();
        let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
        let main = "int main(void) { return 0; }";
        let program = folder.build(name, main, &[&all, &needs[..]].concat());
        Linked::of_tree(&nothing.tree(&program))
    };
    let here = folder.0.join("lib").display().to_string();
    let check = |name: &str, needs: &[&str], mpi, by: &str| {
        let found = linked(name, needs);
        assert_eq!(
            (found.mpi, found.by.replace(&here, "L")),
            (mpi, by.to_owned()),
            "{name}"
        );
    };
    let (open, mpich) = (Some(Mpi::OpenMpi), Some(Mpi::Mpich));
    check("c", &["libmpi.so.40"], open, "L/libmpi.so.40");
    let by = "L/libmpi.so.40, needed by libmpi_mpifh.so.40";
    check("fortran", &["libmpi_mpifh.so.40"], open, by);
    let by = "L/libmpi.so.40, needed by libmpi_mpifh.so.40, which is needed by libpetsc.so.3";
    check("solver", &["libpetsc.so.3"], open, by);
    let by = "L/libmpi.so.12, needed by libhdf5.so.1";
    check("writer", &["libhdf5.so.1"], mpich, by);
    check(
        "profiled",
        &["libprofile.so.1", "libmpi.so.40"],
        open,
        "L/libmpi.so.40",
    );
    check(
        "both",
        &["libhdf5.so.1", "libmpi.so.40"],
        open,
        "L/libmpi.so.40",
    );
    check("none", &["libprofile.so.1"], None, "");
    fs::remove_file(folder.0.join("lib/libmpi.so.40")).unwrap();
    let program = folder.0.join("fortran");
    let found = Linked::of_tree(&nothing.tree(&program));
    let by = "judged by the name of the library libmpi.so.40, which was not found";
    assert_eq!((found.mpi, &*found.by), (open, by));
}

/// A program linked with `--as-needed` names the library of its language's binding alone.
#[test]
fn mpi_library_is_found_through_its_fortran_or_cxx_binding() {
    let nothing = LibrarySearch::default();
    for (mpi, library, text, bindings) in [
        (
            Mpi::OpenMpi,
            "libmpi.so.40",
            MPI,
            &[
                "libmpi_usempif08.so.40",
                "libmpi_usempi_ignore_tkr.so.40",
                "libmpi_mpifh.so.40",
                "libmpi_cxx.so.40",
            ][..],
        ),
        (
            Mpi::Mpich,
            "libmpich.so.12",
            MPICH,
            &["libmpichfort.so.12", "libmpichcxx.so.12"],
        ),
        (
            Mpi::Mpich,
            "libmpi.so.12",
            MPICH,
            &["libmpifort.so.12", "libmpicxx.so.12"],
        ),
    ] {
        let folder = Folder::new(library);
        let path = format!("-Wl,-rpath,{}", folder.0.display());
        let all = ["-nostdlib", "-Wl,--unresolved-symbols=ignore-all", &path];
        let only = [&all[..], &["-Wl,--as-needed"]].concat();
        let needs = [&all[..], &["-Wl,--no-as-needed"]].concat();
        let mpi_itself = format!("HERE/{library}");
        folder.build(library, text, &all);
        for binding in bindings {
            let file = format!("HERE/{binding}");
            folder.build(
                binding,
                "int bound;",
                &[&needs[..], &[&mpi_itself]].concat(),
            );
            let main = "extern int bound; int main(void) { return bound; }";
            let options = [&only[..], &[&file, &mpi_itself]].concat();
            let program = folder.build("program", main, &options);
            let check = |by: String| {
                let tree = nothing.tree(&program);
                assert_eq!(tree.all[0].object.needed, [*binding]);
                let found = Linked::of_tree(&tree);
                assert_eq!((found.mpi, found.by), (Some(mpi), by), "{binding}");
            };
            let here = folder.0.display();
            check(format!("{here}/{library}, needed by {binding}"));
            let missing = |name: &str| {
                format!("judged by the name of the library {name}, which was not found")
            };
            fs::rename(folder.0.join(library), folder.0.join("elsewhere")).unwrap();
            check(missing(library));
            fs::rename(folder.0.join("elsewhere"), folder.0.join(library)).unwrap();
            fs::remove_file(folder.0.join(binding)).unwrap();
            check(missing(binding));
        }
    }
}

#[test]
fn mpi_is_found_in_a_static_program() {
    let folder = Folder::new("static");
    let text = format!("{MPI} int main(void) {{ return 0; }}");
    let program = folder.build("static", &text, &["-static"]);
    let found = Linked::of_tree(&search(&[]).tree(&program));
    assert_eq!((found.mpi, &*found.by), (Some(Mpi::OpenMpi), "statically"));
    for other in ["/etc/passwd", "/no/such/program", "/dev/zero", "/tmp"] {
        let found = Linked::of_tree(&search(&[]).tree(Path::new(other)));
        assert_eq!(found, Linked::default(), "{other}");
    }
    assert_eq!(
        Linked::of_tree(&search(&[]).tree(Path::new("/bin/sh"))).mpi,
        None
    );
}

/// Libraries that need each other, and more libraries than any real program has.
#[test]
fn library_search_ends_for_cyclic_dependencies() {
    let folder = Folder::new("circle");
    let path = format!("-Wl,-rpath,{}", folder.0.display());
    let all = [
        "-Wl,--no-as-needed",
        "-Wl,--unresolved-symbols=ignore-all",
        &path,
    ];
    folder.build("libx.so", "int x;", &all);
    folder.build("liby.so", "int y;", &[&all[..], &["HERE/libx.so"]].concat());
    folder.build("libx.so", "int x;", &[&all[..], &["HERE/liby.so"]].concat());
    let main = "int main(void) { return 0; }";
    let program = folder.build("p", main, &[&all[..], &["HERE/libx.so"]].concat());
    let tree = search(&[]).tree(&program);
    let names: Vec<&str> = tree.all[1..].iter().map(|one| &*one.name).collect();
    assert_eq!(
        names,
        ["libx.so", "libc.so.6", "liby.so", "ld-linux-x86-64.so.2"][..names.len()]
    );
}

#[test]
fn damaged_loader_cache_is_refused() {
    let whole = fs::read(CACHE).unwrap_or_default();
    if let Some(known) = cache::parse(&whole) {
        assert!(known.contains_key("libc.so.6"));
        for end in (0..whole.len().min(4096)).chain([whole.len() - 1]) {
            let _ = cache::parse(&whole[..end]);
        }
        let mut lies = whole.clone();
        lies[20..24].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(cache::parse(&lies), None);
    }
    let mut old = b"ld.so-1.7.0\0".to_vec();
    old.extend(1_u32.to_ne_bytes());
    old.extend([0; 12 + 4]);
    let mut new = b"glibc-ld.so.cache1.1".to_vec();
    new.extend(1_u32.to_ne_bytes());
    new.extend([0; 24]);
    new.extend(0_i32.to_ne_bytes());
    new.extend(72_u32.to_ne_bytes());
    new.extend(77_u32.to_ne_bytes());
    new.extend([0; 12]);
    new.extend(b"a.so\0/l/a.so\0");
    let expect = BTreeMap::from([("a.so".to_owned(), vec![PathBuf::from("/l/a.so")])]);
    assert_eq!(cache::parse(&new), Some(expect.clone()));
    old.extend(new);
    assert_eq!(cache::parse(&old), Some(expect));
    assert_eq!(cache::parse(b"ld.so-1.7.0\0\xff\xff\xff\xff"), None);
}
