//! The shared libraries of a program, found as the loader would find them. Nothing is executed: only regular files are
//! read.
//!
//! The search follows the loader's order. A name with a slash is a path. Other names are searched in `DT_RPATH` of
//! the object that needs the library and of the objects that loaded it, then in `LD_LIBRARY_PATH`. Then follow
//! `DT_RUNPATH` of the needing object alone, the loader's cache, and the usual folders. A file for another machine
//! is skipped. Libraries of `LD_PRELOAD` come after the program.

mod cache;
mod object;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(crate) use object::Object;

/// Maximum number of libraries of one program.
const LIBRARIES_MAX: usize = 2048;
/// The loader's own index of libraries.
const CACHE: &str = "/etc/ld.so.cache";
/// The folders that the loader searches last.
const USUAL_FOLDERS: [&str; 5] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"];

/// Feeds arbitrary bytes to the readers of programs and of the loader's index: no panic.
pub(crate) fn fuzz(bytes: &[u8]) {
    object::fuzz_object(bytes);
    let _ = cache::parse(bytes);
}

/// A program or a library of a [`Tree`].
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The name by which the library is needed; for the program, its path.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) object: Object,
    /// Index in the tree of the object that needs it; `None` for the program itself.
    by: Option<usize>,
}

/// A program with its libraries, in the order in which the loader looks for symbols.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) all: Vec<Loaded>,
    /// Names of libraries that were not found.
    pub(crate) missing: Vec<String>,
}

impl Tree {
    /// Names of the libraries that lead from the program to the object at an index. Each of them needs the next one.
    pub(crate) fn chain(&self, at: usize) -> Vec<&str> {
        let mut next = self.all.get(at);
        let mut names = Vec::new();
        while let Some((one, by)) = next.and_then(|one| Some((one, one.by?))) {
            names.push(&*one.name);
            next = self.all.get(by);
        }
        names.reverse();
        names
    }
}

/// Search paths for libraries.
#[derive(Debug, Default)]
pub(crate) struct LibrarySearch {
    /// Folders in `LD_LIBRARY_PATH`.
    path: Vec<PathBuf>,
    /// Libraries in `LD_PRELOAD`.
    preload: Vec<String>,
    cache: BTreeMap<String, Vec<PathBuf>>,
    usual: Vec<PathBuf>,
}

impl LibrarySearch {
    /// The search of this machine's loader for a program with this environment.
    pub(crate) fn here(lookup: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let list = |name| lookup(name).unwrap_or_default();
        let preload = list("LD_PRELOAD").to_string_lossy().into_owned();
        let preload = preload.split([':', ' ']).filter(|name| !name.is_empty());
        let path = list("LD_LIBRARY_PATH");
        Self {
            path: folders(path.as_bytes()),
            preload: preload.map(str::to_owned).collect(),
            cache: cache::read(Path::new(CACHE)),
            usual: usual_folders(),
        }
    }

    /// The libraries of a program; an empty tree if the file is not a program.
    pub(crate) fn tree(&self, program: &Path) -> Tree {
        let mut tree = Tree::default();
        let Some(object) = Object::read(program) else {
            return tree;
        };
        // A program's own folder is the one where it really is.
        let path = program
            .canonicalize()
            .unwrap_or_else(|_| program.to_owned());
        let name = program.to_string_lossy().into_owned();
        let by = None;
        let preloaded = match object.is_dynamic {
            true => &self.preload[..],
            false => &[],
        };
        let mut open: VecDeque<(String, usize)> =
            preloaded.iter().map(|name| (name.clone(), 0)).collect();
        open.extend(object.needed.iter().map(|name| (name.clone(), 0)));
        tree.all.push(Loaded {
            name,
            path,
            object,
            by,
        });
        while let Some((name, by)) = open.pop_front() {
            let is_it = |one: &Loaded| one.name == name || one.object.name.as_ref() == Some(&name);
            if tree.all[1..].iter().any(is_it) || tree.missing.contains(&name) {
                continue;
            }
            if tree.all.len() + tree.missing.len() > LIBRARIES_MAX {
                break;
            }
            let Some((path, object)) = self.find(&tree, &name, by) else {
                tree.missing.push(name);
                continue;
            };
            // One file under two names is loaded once.
            if tree.all.iter().any(|one| one.path == path) {
                continue;
            }
            let at = tree.all.len();
            open.extend(object.needed.iter().map(|name| (name.clone(), at)));
            let by = Some(by);
            tree.all.push(Loaded {
                name,
                path,
                object,
                by,
            });
        }
        tree
    }

    /// The file that the loader takes for `name`, which the object at index `by` needs; `None` if there is none.
    fn find(&self, tree: &Tree, name: &str, by: usize) -> Option<(PathBuf, Object)> {
        let of = &tree.all[by];
        let program = &tree.all[0].object;
        let fits = |path: PathBuf| {
            let object = Object::read(&path)?;
            (object.machine == program.machine).then_some((path, object))
        };
        if name.contains('/') {
            return expanded(name, &of.path).into_iter().find_map(fits);
        }
        let runpath = of.object.runpath.iter();
        let runpath = runpath.flat_map(|folder| expanded(folder, &of.path));
        let cached = self.cache.get(name).into_iter().flatten();
        let usual = self
            .usual
            .iter()
            .filter(|_| !of.object.has_no_usual_folders);
        let cached = cached.filter(|path| {
            let is_usual = |folder: &PathBuf| path.parent() == Some(folder);
            !of.object.has_no_usual_folders || !self.usual.iter().any(is_usual)
        });
        let folders = rpaths(tree, by)
            .into_iter()
            .chain(self.path.iter().cloned())
            .chain(runpath)
            .map(|folder| folder.join(name));
        let last = usual.map(|folder| folder.join(name));
        folders.chain(cached.cloned()).chain(last).find_map(fits)
    }
}

/// Folders of `DT_RPATH` of an object and of the objects that loaded it; empty if the object has a `DT_RUNPATH` itself.
fn rpaths(tree: &Tree, by: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if !tree.all[by].object.runpath.is_empty() {
        return found;
    }
    let mut next = Some(by);
    while let Some(one) = next.map(|at| &tree.all[at]) {
        if one.object.runpath.is_empty() {
            let folders = one.object.rpath.iter();
            found.extend(folders.flat_map(|folder| expanded(folder, &one.path)));
        }
        next = one.by;
    }
    found
}

/// The folders of a list separated by colons or semicolons; an empty item is the working directory.
fn folders(list: &[u8]) -> Vec<PathBuf> {
    if list.is_empty() {
        return Vec::new();
    }
    let folders = list.split(|byte| b":;".contains(byte));
    let folder = |name: &[u8]| match name {
        [] => PathBuf::from("."),
        name => PathBuf::from(std::ffi::OsStr::from_bytes(name)),
    };
    folders.map(folder).collect()
}

/// A path with the loader's variables replaced: `$ORIGIN` by the folder of `object`, `$PLATFORM` by the architecture,
/// and `$LIB` by each folder name that systems have for this machine's libraries.
fn expanded(text: &str, object: &Path) -> Vec<PathBuf> {
    let put = |text: String, word: &str, value: &str| {
        let text = text.replace(&format!("${{{word}}}"), value);
        text.replace(&format!("${word}"), value)
    };
    let origin = object.parent().unwrap_or(Path::new("."));
    let text = put(text.to_owned(), "ORIGIN", &origin.to_string_lossy());
    let text = put(text, "PLATFORM", std::env::consts::ARCH);
    let lib = |folder: &str| PathBuf::from(put(text.clone(), "LIB", folder));
    let names = ["lib64", &format!("lib/{}", triplet()), "lib"];
    let mut all: Vec<PathBuf> = names.map(lib).to_vec();
    all.dedup();
    all
}

/// Name of this machine's library folders in Debian and its derivatives.
fn triplet() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

fn usual_folders() -> Vec<PathBuf> {
    let of_machine = ["/lib", "/usr/lib"].map(|folder| Path::new(folder).join(triplet()));
    let others = USUAL_FOLDERS.map(PathBuf::from);
    of_machine.into_iter().chain(others).collect()
}
