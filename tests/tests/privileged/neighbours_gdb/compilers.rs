//! Pretty-printers that come with a compiler's C++ library: gdb executes them only if their files can be trusted.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use sdm_tests::neighbour::{Marker, Neighbour, Who, said};

use super::flat;
use super::planted::{compile, gdbs};

/// A compiler's tree in a module's folder: the library, its script, and the modules that the script imports.
fn compiler_elsewhere(users: &Neighbour, who: Who, marker: &Marker) -> Option<PathBuf> {
    const FOLDERS: [&str; 2] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    let folder = FOLDERS.iter().map(Path::new).find(|it| it.is_dir());
    let library = folder.and_then(|it| it.join("libstdc++.so.6").canonicalize().ok());
    let python = Path::new("/usr/share/gcc/python/libstdcxx");
    let Some(library) = library.filter(|_| python.is_dir()) else {
        println!("SKIP: no libstdc++ with printers in its usual place");
        return None;
    };
    let name = library
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    let copy = users.plant_copy(who, format!("gcc/lib64/{name}"), 0o755, &library);
    symlink(name, copy.with_file_name("libstdc++.so.6")).expect("a link");
    let auto = format!("/usr/share/gdb/auto-load{}-gdb.py", library.display());
    let script = fs::read_to_string(auto).expect("the system's script");
    let moved = |line: &str| match line.split_once(" = ") {
        Some(("pythondir", _)) => "pythondir = '/opt/gcc/share/gcc-12/python'".to_owned(),
        Some(("libdir", _)) => "libdir = '/opt/gcc/lib64'".to_owned(),
        _ => line.to_owned(),
    };
    let script: Vec<String> = script.lines().map(moved).collect();
    let script = script.join("\n") + "\n" + &marker.python();
    users.plant(who, format!("gcc/lib64/{name}-gdb.py"), 0o644, script);
    for file in [
        "__init__.py",
        "v6/__init__.py",
        "v6/printers.py",
        "v6/xmethods.py",
    ] {
        let to = format!("gcc/share/gcc-12/python/libstdcxx/{file}");
        users.plant_copy(who, to, 0o644, python.join(file));
    }
    copy.parent().map(Path::to_owned)
}

#[test]
fn printers_of_another_compiler_are_used_if_trusted() {
    const SOURCE: &str = "#include <vector>\n#include <cstdio>\n\
                          int main() {\n  std::vector<int> many{1, 2, 3};\n  std::puts(\"ready\");\n  return 0;\n}\n";
    let Some(users) = Neighbour::new() else {
        return;
    };
    for owner in [Who::User, Who::Neighbour] {
        let marker = users.marker(&format!("{owner:?}-libstdcxx"));
        let Some(folder) = compiler_elsewhere(&users, owner, &marker) else {
            return;
        };
        let source = users.plant(Who::User, format!("{owner:?}/many.cc"), 0o644, SOURCE);
        let place = source.parent().expect("a folder");
        let rpath = format!("-Wl,-rpath,{}", folder.display());
        compile(
            "c++",
            &["-g", "-O0", "-o", "many", "many.cc", &rpath],
            place,
        );
        let program = place.join("many");
        let run = |gdb: &Path, named: &[&str]| {
            let mut sdm = users.sdm(Who::User, ["run", "-n", "1", "--launcher", "local"]);
            sdm.arg("--gdb").arg(gdb).args(named);
            for line in ["break many.cc:5", "continue", "print many"] {
                sdm.args(["-c", line]);
            }
            said(&sdm.arg("--").arg(&program).output().expect("sdm runs"))
        };
        let whole = "std::vector of length 3";
        for gdb in gdbs() {
            let text = run(&gdb, &[]);
            if owner == Who::User {
                assert!(text.contains(whole), "{text}");
            } else {
                let flat = flat(&text);
                assert!(flat.contains("belongs to user 65533"), "{text}");
                marker.assert_absent("the neighbour's compiler");
                let text = run(&gdb, &["--printers", folder.to_str().unwrap()]);
                assert!(text.contains(whole), "{text}");
            }
            marker.assert_left("the printers of this compiler");
            fs::remove_file(marker.path()).expect("the mark is taken away");
        }
    }
}

/// The system's script looks for its modules from where the program has found the library.
#[test]
fn link_to_libstdcxx_loads_no_foreign_printer_modules() {
    let Some(users) = Neighbour::new() else {
        return;
    };
    let library = Path::new("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
    if !library.exists() {
        println!("SKIP: no {}", library.display());
        return;
    }
    let marker = users.marker("astray");
    let source = "#include <iostream>\nint main() { std::cout << \"ready\\n\"; }\n";
    let source = users.plant(Who::Neighbour, "a/b/c/astray.cc", 0o644, source);
    let folder = source.parent().expect("a folder");
    symlink(library, folder.join("libstdc++.so.6")).expect("a link");
    // All parent folders that the script considers.
    for above in ["share", "a/share", "usr/share"] {
        let module = format!("{above}/gcc/python/libstdcxx/v6/__init__.py");
        users.plant(Who::Neighbour, &module, 0o644, marker.python());
        let package = format!("{above}/gcc/python/libstdcxx/__init__.py");
        users.plant(Who::Neighbour, package, 0o644, "");
    }
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    compile("c++", &["-g", "-o", "astray", "astray.cc", &rpath], folder);
    for gdb in gdbs() {
        for who in [Who::Root, Who::User] {
            let mut sdm = users.sdm(who, ["run", "-n", "1", "--launcher", "local", "--batch"]);
            sdm.args(["--no-report", "--gdb"]).arg(&gdb).arg("--");
            let done = sdm.arg(folder.join("astray")).output().expect("sdm runs");
            assert!(said(&done).contains("ready"), "{}", said(&done));
            marker.assert_absent("a module beside a link to the system's library");
        }
    }
}
