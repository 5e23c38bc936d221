//! Input forms for `sdm submit`, `sdm cluster add` and `sdm cluster edit`.

use ratatui::crossterm::event::KeyCode;
use sdm_text::printable;

use crate::line::{edit, quoted, split, words};
use crate::platform_state::Cluster;

/// The types of resource managers that `sdm-agent` supports.
const TYPES: [&str; 7] = [
    "local",
    "slurm",
    "gridengine",
    "openmpi",
    "hydra",
    "prrte",
    "ssh",
];

/// Width of the labels, in columns.
const LABEL_COLUMNS: usize = 19;
/// Minimum width of the values, in columns.
const VALUE_COLUMNS: usize = 50;

/// The command that a form is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Submit,
    Add,
    /// Change a cluster; the current definition.
    Edit(Box<Cluster>),
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) label: &'static str,
    pub(crate) value: String,
    /// The choices; any other text is allowed, too.
    pub(crate) choices: Vec<String>,
    /// A description of the default that an empty field stands for.
    pub(crate) empty: &'static str,
}

/// A form with its fields. `at` is the index of the one with the keyboard focus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) purpose: Purpose,
    pub(crate) fields: Vec<Field>,
    pub(crate) at: usize,
}

fn field(label: &'static str, value: &str, choices: Vec<String>, empty: &'static str) -> Field {
    Field {
        label,
        value: value.to_owned(),
        choices,
        empty,
    }
}

impl Form {
    /// The form for a new job.
    pub(crate) fn submit(
        clusters: Vec<String>,
        chosen: &str,
        queues: Vec<String>,
        profiles: Vec<String>,
    ) -> Self {
        let no = || vec!["no".to_owned(), "yes".to_owned()];
        Self {
            purpose: Purpose::Submit,
            fields: vec![
                field(
                    "program",
                    "",
                    Vec::new(),
                    "default: program and arguments of the profile",
                ),
                field(
                    "cluster",
                    chosen,
                    clusters,
                    "default: the connected cluster",
                ),
                field("profile", "", with_none(profiles), "none"),
                field(
                    "processes",
                    "",
                    Vec::new(),
                    "default: as many as in the profile, or 1",
                ),
                field("queue", "", with_none(queues), "default: the default queue"),
                field("name", "", Vec::new(), "default: the program's name"),
                field("folder", "", Vec::new(), "this one"),
                field("options", "", Vec::new(), "as --time=10 ...; default: none"),
                field("variables", "", Vec::new(), "NAME=VALUE ...; default: none"),
                field("hold for debugger", "no", no(), "no"),
            ],
            at: 0,
        }
    }

    /// The form for a new cluster.
    pub(crate) fn add() -> Self {
        let mut fields = vec![field("name", "", Vec::new(), "a name for the cluster")];
        fields.extend(Self::of_cluster(&Cluster {
            rm_type: TYPES[0].to_owned(),
            ..Cluster::default()
        }));
        Self {
            purpose: Purpose::Add,
            fields,
            at: 0,
        }
    }

    /// The form for changes of a cluster.
    pub(crate) fn edit(cluster: &Cluster) -> Self {
        Self {
            purpose: Purpose::Edit(Box::new(cluster.clone())),
            fields: Self::of_cluster(cluster),
            at: 0,
        }
    }

    fn of_cluster(cluster: &Cluster) -> Vec<Field> {
        let types = TYPES.map(str::to_owned).to_vec();
        let joined = |words: &[String]| {
            let words: Vec<String> = words.iter().map(|it| quoted(it)).collect();
            words.join(" ")
        };
        vec![
            field(
                "type",
                &cluster.rm_type,
                types,
                "the resource manager on that host",
            ),
            field(
                "host",
                &cluster.host,
                Vec::new(),
                "[USER@]HOST; default: this host",
            ),
            field(
                "ssh options",
                &joined(&cluster.ssh_options),
                Vec::new(),
                "as -p2222 ...; default: none",
            ),
            field("agent", &cluster.agent, Vec::new(), "sdm-agent"),
            field(
                "agent arguments",
                &joined(&cluster.agent_args),
                Vec::new(),
                "none",
            ),
            field("description", &cluster.description, Vec::new(), "none"),
        ]
    }

    pub(crate) fn title(&self) -> String {
        match &self.purpose {
            Purpose::Submit => "submit a job".to_owned(),
            Purpose::Add => "add a resource manager".to_owned(),
            Purpose::Edit(cluster) => format!("edit {}", cluster.name),
        }
    }

    /// A line for each field, and the resulting command.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |field: &Field| {
            let value = match field.value.is_empty() {
                true => format!("({})", field.empty),
                false => printable(field.value.as_bytes()),
            };
            let value = match field.choices.is_empty() {
                true => value,
                false => format!("{value} <>"),
            };
            format!("{:<LABEL_COLUMNS$}{value:<VALUE_COLUMNS$}", field.label)
        };
        let mut lines: Vec<String> = self.fields.iter().map(line).collect();
        lines.push(String::new());
        lines.push(match self.words() {
            Ok(words) => {
                let words: Vec<String> = words.iter().map(|it| quoted(it)).collect();
                format!("$ sdm {}", words.join(" "))
            }
            Err((_, why)) => why,
        });
        lines
    }

    /// The column of the cursor.
    pub(crate) fn column(&self) -> usize {
        LABEL_COLUMNS + sdm_text::columns(&printable(self.fields[self.at].value.as_bytes()))
    }

    /// Handles a key other than Enter and Esc.
    pub(crate) fn key(&mut self, code: KeyCode) {
        let count = self.fields.len();
        let field = &mut self.fields[self.at];
        match code {
            KeyCode::Tab | KeyCode::Down => self.at = (self.at + 1) % count,
            KeyCode::BackTab | KeyCode::Up => self.at = (self.at + count - 1) % count,
            KeyCode::Right => field.choose(1),
            KeyCode::Left => field.choose(field.choices.len().saturating_sub(1)),
            KeyCode::Delete => field.value.clear(),
            code => edit(&mut field.value, code),
        }
    }

    fn value(&self, label: &str) -> &str {
        let found = self.fields.iter().find(|it| it.label == label);
        found.map_or("", |it| it.value.trim())
    }

    /// The words of the command. The error is the index of a wrong field, and the reason.
    pub(crate) fn words(&self) -> Result<Vec<String>, (usize, String)> {
        match &self.purpose {
            Purpose::Submit => self.submit_words(),
            Purpose::Add => {
                let (name, kind) = (self.value("name"), self.value("type"));
                self.wanted("name", name)?;
                self.wanted("type", kind)?;
                let mut all = words(&["cluster", "add", name, kind]);
                self.there(&mut all, &Cluster::default())?;
                Ok(all)
            }
            Purpose::Edit(before) => {
                let kind = self.value("type");
                self.wanted("type", kind)?;
                let mut all = words(&["cluster", "edit", &before.name]);
                if kind != before.rm_type {
                    all.extend(words(&["--type", kind]));
                }
                self.there(&mut all, before)?;
                match all.len() {
                    3 => Err((self.at, "nothing was changed in the form".to_owned())),
                    _ => Ok(all),
                }
            }
        }
    }

    fn wanted(&self, label: &str, value: &str) -> Result<(), (usize, String)> {
        match value.is_empty() {
            true => Err((self.place(label), format!("{label}: is needed"))),
            false => Ok(()),
        }
    }

    fn place(&self, label: &str) -> usize {
        let found = self.fields.iter().position(|it| it.label == label);
        found.unwrap_or(self.at)
    }

    fn submit_words(&self) -> Result<Vec<String>, (usize, String)> {
        let mut all = words(&["submit"]);
        for (label, option) in [
            ("cluster", "--cluster"),
            ("profile", "--profile"),
            ("processes", "-n"),
            ("queue", "--queue"),
            ("name", "--name"),
            ("folder", "--directory"),
        ] {
            let value = self.value(label);
            if label == "processes" && !value.is_empty() && value.parse::<u32>().is_err() {
                return Err((
                    self.place(label),
                    format!("processes: {value} is not a number"),
                ));
            }
            if !value.is_empty() {
                all.extend(words(&[option, value]));
            }
        }
        all.extend(
            self.each("options")?
                .iter()
                .map(|it| format!("--option={it}")),
        );
        all.extend(
            self.each("variables")?
                .iter()
                .map(|it| format!("--env={it}")),
        );
        if self.value("hold for debugger") == "yes" {
            all.push("--debug".to_owned());
        }
        let program = self.each("program")?;
        match (program.is_empty(), self.value("profile").is_empty()) {
            (true, true) => {
                return Err((0, "program: a program or a profile is required".to_owned()));
            }
            (true, false) => {}
            (false, _) => {
                all.push("--".to_owned());
                all.extend(program);
            }
        }
        Ok(all)
    }

    /// Adds the options for fields that differ from `before`.
    fn there(&self, all: &mut Vec<String>, before: &Cluster) -> Result<(), (usize, String)> {
        for (label, option, known) in [
            ("host", "--host", &before.host),
            ("agent", "--agent", &before.agent),
            ("description", "--description", &before.description),
        ] {
            let value = self.value(label);
            if value != known {
                all.push(format!("{option}={value}"));
            }
        }
        for (label, option, known) in [
            ("ssh options", "--ssh-option", &before.ssh_options),
            ("agent arguments", "--agent-arg", &before.agent_args),
        ] {
            let value = self.each(label)?;
            if value == *known {
                continue;
            }
            if value.is_empty() {
                all.push(format!("{option}="));
            }
            all.extend(value.iter().map(|it| format!("{option}={it}")));
        }
        Ok(())
    }

    /// The words of a field.
    fn each(&self, label: &str) -> Result<Vec<String>, (usize, String)> {
        let value = self.value(label);
        if value.is_empty() {
            return Ok(Vec::new());
        }
        let error = || {
            let text = format!("{label}: unclosed quotation mark");
            (self.place(label), text)
        };
        split(value).ok_or_else(error)
    }
}

impl Field {
    /// Selects the choice that is this number of places further.
    fn choose(&mut self, by: usize) {
        let Some(count) = std::num::NonZeroUsize::new(self.choices.len()) else {
            return;
        };
        let at = self.choices.iter().position(|it| *it == self.value);
        let at = match at {
            Some(at) => (at + by) % count.get(),
            None if by == 1 => 0,
            None => count.get() - 1,
        };
        self.value.clone_from(&self.choices[at]);
    }
}

/// Adds the empty text to the choices, unless there are none.
fn with_none(mut choices: Vec<String>) -> Vec<String> {
    if !choices.is_empty() {
        choices.insert(0, String::new());
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(form: &mut Form, label: &str, text: &str) {
        form.at = form.place(label);
        form.key(KeyCode::Delete);
        for c in text.chars() {
            form.key(KeyCode::Char(c));
        }
    }

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn submit_form_becomes_a_command_line() {
        let mut form = Form::submit(
            texts(&["here", "there"]),
            "here",
            Vec::new(),
            texts(&["halo"]),
        );
        assert_eq!(form.words().unwrap_err().0, 0);
        typed(&mut form, "program", "./app 'a b'");
        typed(&mut form, "processes", "x");
        assert_eq!(form.words().unwrap_err().1, "processes: x is not a number");
        typed(&mut form, "processes", "8");
        typed(&mut form, "options", "--time=10 --hold");
        typed(&mut form, "variables", "A=1");
        form.at = form.place("hold for debugger");
        form.key(KeyCode::Right);
        let expect = "submit --cluster here -n 8 --option=--time=10 --option=--hold --env=A=1 --debug -- ./app";
        let mut expect: Vec<String> = expect.split(' ').map(str::to_owned).collect();
        expect.push("a b".to_owned());
        assert_eq!(form.words().unwrap(), expect);
        typed(&mut form, "options", "'x");
        assert!(form.words().unwrap_err().1.starts_with("options: "));
    }

    #[test]
    fn form_with_profile_needs_no_program() {
        let mut form = Form::submit(Vec::new(), "", Vec::new(), texts(&["halo"]));
        form.at = form.place("profile");
        form.key(KeyCode::Left);
        assert_eq!(form.words(), Ok(texts(&["submit", "--profile", "halo"])));
        form.key(KeyCode::Right);
        assert!(form.words().is_err());
    }

    #[test]
    fn cluster_form_sends_only_changed_fields() {
        let mut form = Form::add();
        assert_eq!(form.words().unwrap_err().1, "name: is needed");
        typed(&mut form, "name", "phys");
        form.at = form.place("type");
        form.key(KeyCode::Right);
        assert_eq!(
            form.words(),
            Ok(texts(&["cluster", "add", "phys", "slurm"]))
        );
        typed(&mut form, "host", "me@login");
        typed(&mut form, "ssh options", "-p 22");
        let expect = [
            "cluster",
            "add",
            "phys",
            "slurm",
            "--host=me@login",
            "--ssh-option=-p",
            "--ssh-option=22",
        ];
        assert_eq!(form.words(), Ok(texts(&expect)));
        let before = Cluster {
            name: "phys".to_owned(),
            rm_type: "slurm".to_owned(),
            host: "login".to_owned(),
            ssh_options: texts(&["-o", "A B"]),
            ..Cluster::default()
        };
        let mut form = Form::edit(&before);
        assert_eq!(
            form.words().unwrap_err().1,
            "nothing was changed in the form"
        );
        typed(&mut form, "host", "");
        typed(&mut form, "ssh options", "");
        let expect = ["cluster", "edit", "phys", "--host=", "--ssh-option="];
        assert_eq!(form.words(), Ok(texts(&expect)));
    }
}
