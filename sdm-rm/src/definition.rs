//! Definitions of clusters: the file `clusters.toml`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use sdm_system::files;
use serde::{Deserialize, Serialize};

use crate::error::RmError;
use crate::name::is_word;

/// Default of [`Definition::patience`], in seconds.
const PATIENCE_S: u64 = 120;
/// The first base id.
const BASE_FIRST: u32 = 1;
/// Distance of the base ids of two clusters. An agent gives no id twice, so that a day of large jobs takes millions.
const BASE_STEP: usize = 1 << 24;
/// The highest base id.
const BASE_MAX: u32 = 3_900_000_000;

/// A cluster: the definition of a resource manager on this or another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The cluster's name: 1 to 64 letters, digits, `.`, `_` and `-`, of which `.` and `-` cannot be the first.
    pub name: String,
    /// "PTP runtime platform, rmID: unique identifier for this resource manager. Used for persistence".
    #[serde(rename = "id")]
    pub rm_id: String,
    /// Type of the resource manager: `slurm`, `openmpi`, `hydra`, `local`, ..., or the NAME of a program `sdm-rm-NAME`.
    #[serde(rename = "type")]
    pub rm_type: String,
    /// Host of the resource manager, as ssh takes it; `None` for this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Further options for ssh, one word each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ssh_options: Vec<String>,
    /// Path of the agent on the host; `None` for `sdm-agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Further arguments for the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_args: Vec<String>,
    /// Time limit for an answer of the agent, in seconds.
    #[serde(default = "patience")]
    pub patience: u64,
    /// Description for the user.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Base id of the cluster's elements ("PTP rm proxy, Element IDs"). No other cluster has it, up to some two hundred
    /// clusters. 0 before the cluster is added.
    #[serde(default)]
    pub base: u32,
}

fn patience() -> u64 {
    PATIENCE_S
}

impl Definition {
    /// A definition with this name and type on this host, and a new identifier.
    #[must_use]
    pub fn new(name: &str, rm_type: &str) -> Self {
        let id = getrandom::u64().unwrap_or_default();
        Self {
            name: name.to_owned(),
            rm_id: format!("{id:016x}"),
            rm_type: rm_type.to_owned(),
            host: None,
            ssh_options: Vec::new(),
            agent: None,
            agent_args: Vec::new(),
            patience: PATIENCE_S,
            description: String::new(),
            base: 0,
        }
    }

    /// Checks values given by a user or a file.
    ///
    /// # Errors
    /// An invalid name, type or host.
    pub fn check(&self) -> Result<(), RmError> {
        if !is_word(&self.name) {
            return Err(RmError::Name(self.name.clone()));
        }
        if !is_word(&self.rm_type) {
            return Err(RmError::Type(self.rm_type.clone()));
        }
        match &self.host {
            Some(host) if host.is_empty() || host.starts_with('-') || host.contains(is_blank) => {
                Err(RmError::Host(host.clone()))
            }
            _ => Ok(()),
        }
    }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    #[serde(default)]
    cluster: Vec<Definition>,
}

impl Contents {
    /// Gives each cluster without a base id the first free one. From some two hundred clusters on, all further ones get
    /// the same base id.
    fn give_bases(&mut self) {
        for at in 0..self.cluster.len() {
            let is_free = |base: &u32| self.cluster.iter().all(|it| it.base != *base);
            if self.cluster[at].base == 0 {
                let free = (BASE_FIRST..BASE_MAX).step_by(BASE_STEP).find(is_free);
                self.cluster[at].base = free.unwrap_or(BASE_FIRST);
            }
        }
    }
}

/// All clusters that this user has defined, as the file has them.
#[derive(Debug)]
pub struct Clusters {
    path: PathBuf,
    contents: Contents,
}

impl Clusters {
    /// Reads the definitions' file; a missing file defines no cluster.
    ///
    /// # Errors
    /// The file cannot be read, belongs to another user, or is malformed: the error names the line of a syntax error.
    pub fn load() -> Result<Self, RmError> {
        Self::of(path()?)
    }

    fn of(path: PathBuf) -> Result<Self, RmError> {
        let mut contents = match files::open_own(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Contents::default(),
            Err(error) => return Err(broken(&path, error)),
            Ok(file) => {
                let text = files::text_of(file, 1 << 20).map_err(|error| broken(&path, error))?;
                toml::from_str(&text).map_err(|error| broken(&path, place(&text, &error)))?
            }
        };
        for definition in &contents.cluster {
            definition.check().map_err(|error| broken(&path, error))?;
        }
        contents.give_bases();
        Ok(Self { path, contents })
    }

    /// The cluster of this name.
    ///
    /// # Errors
    /// No cluster has this name.
    pub fn get(&self, name: &str) -> Result<&Definition, RmError> {
        let mut all = self.iter();
        let found = all.find(|definition| definition.name == name);
        found.ok_or_else(|| RmError::Undefined(name.to_owned(), self.names()))
    }

    /// All clusters, in the order in which they were defined.
    pub fn iter(&self) -> std::slice::Iter<'_, Definition> {
        self.contents.cluster.iter()
    }

    fn names(&self) -> Vec<String> {
        self.iter().map(|it| it.name.clone()).collect()
    }

    /// Adds a definition.
    ///
    /// # Errors
    /// The name exists already, the definition is invalid, or the file cannot be written.
    pub fn add(&mut self, definition: Definition) -> Result<(), RmError> {
        definition.check()?;
        self.change(|contents| {
            let mut all = contents.cluster.iter();
            if all.any(|known| known.name == definition.name) {
                return Err(RmError::Defined(definition.name.clone()));
            }
            contents.cluster.push(definition);
            contents.give_bases();
            Ok(())
        })
    }

    /// Removes a definition.
    ///
    /// # Errors
    /// No cluster has this name, or the file cannot be written.
    pub fn remove(&mut self, name: &str) -> Result<(), RmError> {
        self.get(name)?;
        self.change(|contents| {
            contents.cluster.retain(|known| known.name != name);
            Ok(())
        })
    }

    /// Changes a definition.
    ///
    /// # Errors
    /// No cluster has this name, the changed definition is invalid, or the file cannot be written.
    pub fn edit(&mut self, name: &str, how: impl FnOnce(&mut Definition)) -> Result<(), RmError> {
        self.get(name)?;
        let names = self.names();
        self.change(|contents| {
            let mut all = contents.cluster.iter_mut();
            let found = all.find(|known| known.name == name);
            let found = found.ok_or_else(|| RmError::Undefined(name.to_owned(), names))?;
            how(found);
            found.check()
        })
    }

    /// Reads the file again, changes its definitions and replaces it under a lock: another `sdm` may have written
    /// meanwhile, and none can while this one does.
    fn change(
        &mut self,
        how: impl FnOnce(&mut Contents) -> Result<(), RmError>,
    ) -> Result<(), RmError> {
        let broken = |error: std::io::Error| broken(&self.path, error);
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(broken)?;
        }
        let lock = self.path.with_extension("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock)
            .map_err(RmError::io(sdm_text::printable_name(&lock)))?;
        let locked = Flock::lock(file, FlockArg::LockExclusive);
        let _lock = locked.map_err(|(_, errno)| broken(errno.into()))?;
        let mut now = Self::of(self.path.clone())?;
        how(&mut now.contents)?;
        let text = toml::to_string(&now.contents);
        let text = text.map_err(|error| broken(std::io::Error::other(error)))?;
        files::replace(&self.path, text.as_bytes()).map_err(broken)?;
        self.contents = now.contents;
        Ok(())
    }
}

fn path() -> Result<PathBuf, RmError> {
    let folder = files::user_folder("XDG_CONFIG_HOME", ".config");
    Ok(folder.ok_or(RmError::NoFolder)?.join("sdm/clusters.toml"))
}

fn broken(path: &Path, what: impl ToString) -> RmError {
    RmError::File {
        path: path.to_owned(),
        what: what.to_string(),
    }
}

/// Message with the line number and the fault of the text.
fn place(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n');
    let what = sdm_text::printable(error.message().as_bytes());
    format!("line {}: {what}", line.count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_a_folder(with: impl FnOnce(PathBuf)) {
        let word = format!("sdm-rm-definition-{}", getrandom::u64().unwrap());
        let folder = std::env::temp_dir().join(word);
        fs::create_dir(&folder).unwrap();
        with(folder.join("sdm/clusters.toml"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn defined_clusters_are_read_back() {
        in_a_folder(|path| {
            let mut clusters = Clusters::of(path.clone()).unwrap();
            let mut far = Definition::new("far", "slurm");
            far.host = Some("me@login".to_owned());
            far.ssh_options = vec!["-p2222".to_owned()];
            clusters.add(far.clone()).unwrap();
            clusters.add(Definition::new("here", "local")).unwrap();
            let refused = clusters.add(Definition::new("here", "local"));
            assert!(matches!(refused, Err(RmError::Defined(name)) if name == "here"));
            let mut again = Clusters::of(path.clone()).unwrap();
            far.base = BASE_FIRST;
            assert_eq!(again.get("far").unwrap(), &far);
            // Another writer's change stays.
            clusters.edit("far", |it| it.host = None).unwrap();
            again.remove("here").unwrap();
            let last = Clusters::of(path).unwrap();
            assert_eq!(last.iter().count(), 1);
            assert_eq!(last.get("far").unwrap().host, None);
            assert_eq!(last.get("far").unwrap().rm_id, far.rm_id);
            let unknown = last.get("here").unwrap_err().to_string();
            assert!(unknown.contains("there are: far"), "{unknown}");
        });
    }

    #[test]
    fn each_cluster_has_a_base_id_of_its_own() {
        in_a_folder(|path| {
            let mut clusters = Clusters::of(path.clone()).unwrap();
            for name in ["a", "b", "c"] {
                clusters.add(Definition::new(name, "local")).unwrap();
            }
            let base = |clusters: &Clusters, name| clusters.get(name).unwrap().base;
            let bases = ["a", "b", "c"].map(|name| base(&clusters, name));
            assert_eq!(bases, [1, 16_777_217, 33_554_433]);
            clusters.remove("b").unwrap();
            clusters.add(Definition::new("d", "local")).unwrap();
            let again = Clusters::of(path.clone()).unwrap();
            assert_eq!((base(&again, "d"), base(&again, "c")), (bases[1], bases[2]));
            // A file of an earlier version has none.
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace("base = 1\n", "")).unwrap();
            assert_eq!(base(&Clusters::of(path).unwrap(), "a"), 1);
        });
    }

    #[test]
    fn broken_cluster_file_is_named_with_line_and_kept() {
        in_a_folder(|path| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            for (text, part) in [
                ("[[cluster]]\nname = 7\n", "line 2"),
                ("[[cluster]]\nname = \"a\"\nsize = 3\n", "line 3"),
                ("nonsense", "line 1"),
                (
                    "[[cluster]]\nname = \"../a\"\nid = \"1\"\ntype = \"local\"\n",
                    "'../a'",
                ),
            ] {
                fs::write(&path, text).unwrap();
                let error = Clusters::of(path.clone()).unwrap_err().to_string();
                assert!(error.contains("clusters.toml: "), "{error}");
                assert!(error.contains(part), "{error}");
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
            }
        });
    }

    #[test]
    fn invalid_cluster_definition_is_refused() {
        for name in ["", ".", "-a", "a b", "a/b", &"x".repeat(65)] {
            assert!(Definition::new(name, "local").check().is_err(), "{name}");
            assert!(Definition::new("a", name).check().is_err(), "{name}");
        }
        for host in ["", "-oProxyCommand=x", "a b", "a\nb"] {
            let mut definition = Definition::new("a", "local");
            definition.host = Some(host.to_owned());
            assert!(definition.check().is_err(), "{host}");
        }
    }
}
