//! The attributes of JOB_CREATE ("Ninf-G Invoke Server", JOB_CREATE Request), and the job that they describe.

use crate::manager::Submission;

/// Attributes that a job must have; `argument` may be absent if `argument_optional` is `true`.
const MANDATORY: [&str; 11] = [
    "hostname",
    "port",
    "client_name",
    "executable_path",
    "backend",
    "count",
    "staging",
    ARGUMENT,
    "redirect_enable",
    "status_polling",
    "refresh_credential",
];

/// An argument of the executable.
const ARGUMENT: &str = "argument";
/// Option for clients whose executables have no arguments, which the reference servers accept: `true`.
const ARGUMENT_OPTIONAL: &str = "argument_optional";

/// Option with the number of jobs that the client gives to one server.
const MAX_JOBS: &str = "max_jobs";

/// Attributes without an effect here: certificates, GASS, and those that only the client uses.
const WITHOUT_EFFECT: [&str; 5] = [
    "subject",
    "client_name",
    "refresh_credential",
    "gass_url",
    "rsl_extensions",
];

/// The way in which the executable is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// NORMAL: the executable is started directly.
    #[default]
    Normal,
    /// MPI or BLACS: the executable is started by the launcher of its MPI.
    Mpi,
}

/// A job that a client has requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRequest {
    /// The host on which the job is to run.
    pub hostname: String,
    /// The port of the host's ssh server; 0 leaves the choice to `ssh`.
    pub port: u16,
    /// The type of the resource manager on the host, in the words of the client's configuration.
    pub jobmanager: String,
    /// The way in which the executable is started.
    pub backend: Backend,
    /// The job for the resource manager.
    pub job: Submission,
    /// True if the executable is to be copied to the manager's host.
    pub staging: bool,
    /// The client's file for the job's output; `None` if the client wants none.
    pub output: Option<String>,
    /// The client's file for the job's errors; `None` if the client wants none.
    pub errors: Option<String>,
    /// Interval between queries of the job's state, in seconds; 0 leaves the choice to this server.
    pub status_polling: u64,
    /// Number of jobs after whose end the server exits; 0 for no limit.
    pub jobs_max: u64,
    /// Limits and requests: pairs of name and value.
    pub limits: Vec<(Limit, String)>,
    /// Options of `ssh`, one word each.
    pub ssh_options: Vec<String>,
    /// Path of `sdm-agent` on the host; `None` for the path of this program.
    pub agent: Option<String>,
    /// Names of unknown attributes, which have no effect.
    pub unknown: Vec<String>,
}

/// A limit or request that only some managers support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Wall time, in minutes.
    Time,
    /// Processor time, in minutes.
    CpuTime,
    /// Minimum memory, in megabytes.
    MemoryMin,
    /// Maximum memory, in megabytes.
    MemoryMax,
    /// Number of hosts.
    Hosts,
    /// Account that is charged.
    Project,
}

impl Limit {
    /// The name of the attribute of JOB_CREATE that sets this limit. `max_time` also sets [`Limit::Time`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "max_wall_time",
            Self::CpuTime => "max_cpu_time",
            Self::MemoryMin => "min_memory",
            Self::MemoryMax => "max_memory",
            Self::Hosts => "host_count",
            Self::Project => "project",
        }
    }
}

/// Fault of attributes from which no job can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributeError {
    /// A mandatory attribute is missing.
    #[error("attribute {0} is missing")]
    Missing(&'static str),
    /// An attribute with an invalid value: its name, the value, and the reason.
    #[error("{0} is `{1}`: {2}")]
    Value(&'static str, String, &'static str),
}

impl JobRequest {
    /// Builds a job from the attributes of JOB_CREATE. For an attribute that is allowed once, the first value counts:
    /// the client's options come in front. Of `agent_path` and `sdm_debug` the last value counts.
    ///
    /// # Errors
    /// A mandatory attribute is missing, or a value is invalid.
    pub fn read(attributes: &[(String, String)]) -> Result<Self, AttributeError> {
        let given = AttributeList(attributes);
        let is_lax = given.flag(ARGUMENT_OPTIONAL)?;
        let is_missing = |it: &&str| given.first(it).is_none() && !(is_lax && *it == ARGUMENT);
        if let Some(missing) = MANDATORY.into_iter().find(is_missing) {
            return Err(AttributeError::Missing(missing));
        }
        let count = u32::try_from(given.number("count")?).ok();
        let processes = count.filter(|it| *it > 0).ok_or_else(|| {
            AttributeError::Value(
                "count",
                given.text("count"),
                "expected a number of 1 or more",
            )
        })?;
        let program = given.text("executable_path");
        if program.is_empty() {
            return Err(AttributeError::Missing("executable_path"));
        }
        let backend = match given.first("backend") {
            Some("NORMAL") => Backend::Normal,
            Some("MPI" | "BLACS") => Backend::Mpi,
            other => {
                let other = cut(other.unwrap_or_default());
                let what = "expected NORMAL, MPI or BLACS";
                return Err(AttributeError::Value("backend", other, what));
            }
        };
        let redirects = given.flag("redirect_enable")?;
        let file = |name| Some(given.text(name)).filter(|path| redirects && !path.is_empty());
        let mut request = Self {
            hostname: given.text("hostname"),
            port: u16::try_from(given.number("port")?).map_err(|_| {
                let what = "expected a port, 65535 at most";
                AttributeError::Value("port", given.text("port"), what)
            })?,
            jobmanager: given.text("jobmanager"),
            backend,
            staging: given.flag("staging")?,
            output: file("stdout_file"),
            errors: file("stderr_file"),
            status_polling: given.number("status_polling")?,
            jobs_max: given.number(MAX_JOBS)?,
            job: Submission {
                processes,
                program,
                queue: Some(given.text("queue_name")).filter(|it| !it.is_empty()),
                directory: given.text("work_directory"),
                is_mpi: backend == Backend::Mpi,
                ..Submission::default()
            },
            ..Self::default()
        };
        for (name, value) in attributes {
            request.take(name, value);
        }
        if request.job.directory.is_empty() {
            request.job.directory = match request.job.program.rsplit_once('/') {
                Some((folder, _)) if !request.staging && !folder.is_empty() => folder.to_owned(),
                _ => given.text("tmp_dir"),
            };
        }
        Ok(request)
    }

    /// Applies an attribute that is repeatable, a limit, `agent_path` or `sdm_debug`, and records an unknown one.
    fn take(&mut self, name: &str, value: &str) {
        let limit = match name {
            "max_time" | "max_wall_time" => Some(Limit::Time),
            "max_cpu_time" => Some(Limit::CpuTime),
            "min_memory" => Some(Limit::MemoryMin),
            "max_memory" => Some(Limit::MemoryMax),
            "host_count" => Some(Limit::Hosts),
            "project" => Some(Limit::Project),
            _ => None,
        };
        if let Some(limit) = limit {
            let value = value.trim();
            // The Java client sends `min_memory` twice.
            let is_new = self.limits.iter().all(|(known, _)| *known != limit);
            if is_new && !value.is_empty() && value != "0" {
                self.limits.push((limit, value.to_owned()));
            }
            return;
        }
        match name {
            // The client's own debug attributes are arguments of the executable, too.
            ARGUMENT => self.job.arguments.push(value.to_owned()),
            "environment" => {
                let pair = value.trim_start();
                self.job.environment.push(match pair.contains('=') {
                    true => pair.to_owned(),
                    false => format!("{}=", pair.trim_end()),
                });
            }
            "submit_option" => self.job.options.push(value.to_owned()),
            "ssh_option" => self.ssh_options.push(value.to_owned()),
            "agent_path" => self.agent = Some(value.trim().to_owned()),
            "sdm_debug" => self.job.debug = value.trim() == "true",
            _ if MANDATORY.contains(&name) || WITHOUT_EFFECT.contains(&name) => {}
            ARGUMENT_OPTIONAL | "jobmanager" | "work_directory" | "stdout_file" | "stderr_file"
            | "tmp_dir" | "queue_name" | MAX_JOBS => {}
            _ => self.unknown.push(cut(name)),
        }
    }
}

/// Attributes in the order in which the client gave them.
struct AttributeList<'a>(&'a [(String, String)]);

impl<'a> AttributeList<'a> {
    /// The first value of this name, without blanks around it; `None` if there is none.
    fn first(&self, name: &str) -> Option<&'a str> {
        let mut all = self.0.iter().filter(|(known, _)| known == name);
        all.next().map(|(_, value)| value.trim())
    }

    fn text(&self, name: &str) -> String {
        self.first(name).unwrap_or_default().to_owned()
    }

    fn flag(&self, name: &'static str) -> Result<bool, AttributeError> {
        match self.first(name) {
            Some("true") => Ok(true),
            Some("false") | None => Ok(false),
            Some(other) => {
                let other = cut(other);
                Err(AttributeError::Value(name, other, "expected true or false"))
            }
        }
    }

    fn number(&self, name: &'static str) -> Result<u64, AttributeError> {
        let value = self.first(name).unwrap_or("0");
        let wrong = |_| AttributeError::Value(name, cut(value), "expected a number");
        value.parse().map_err(wrong)
    }
}

fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(more: &str) -> Vec<(String, String)> {
        let usual = "hostname localhost\nport 0\nclient_name 127.0.0.1\nexecutable_path /opt/app/_stub_add\nbackend NORMAL\n\
            count 1\nstaging false\nargument -x\nredirect_enable false\nstatus_polling 0\nrefresh_credential 0\n";
        let text = format!("{more}{usual}");
        let pair = |line: &str| {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            (name.to_owned(), value.to_owned())
        };
        text.lines().map(pair).collect()
    }

    #[test]
    fn missing_mandatory_attribute_is_named() {
        for missing in MANDATORY {
            let mut all = attributes("");
            all.retain(|(name, _)| name != missing);
            let error = JobRequest::read(&all).unwrap_err();
            assert_eq!(error, AttributeError::Missing(missing));
        }
        let mut lax = attributes("argument_optional true\n");
        lax.retain(|(name, _)| name != ARGUMENT);
        let request = JobRequest::read(&lax).unwrap();
        assert!(request.job.arguments.is_empty() && request.unknown.is_empty());
    }

    /// The table of the document: each attribute and its effect.
    #[test]
    fn attributes_become_arguments_limits_and_paths_of_the_job() {
        let request = JobRequest::read(&attributes(
            "jobmanager jobmanager-slurm\nqueue_name short\nargument --connectbackAddress=ng_tcp://127.0.0.1:5/\nargument \
             --title=two words\nenvironment A=1 2\nenvironment B\nwork_directory /w\ntmp_dir /t\nredirect_enable \
             true\nstdout_file /o\nstderr_file /e\nmax_time 5\nmax_wall_time 7\nmax_cpu_time 9\nmin_memory 100\nmin_memory \
             200\nmax_memory 300\nhost_count 2\nproject p\nstatus_polling 3\nnonsense x\nsubject /C=JP\n",
        ))
        .unwrap();
        assert_eq!(
            (&*request.hostname, &*request.jobmanager),
            ("localhost", "jobmanager-slurm")
        );
        assert_eq!(request.job.queue.as_deref(), Some("short"));
        let arguments = [
            "--connectbackAddress=ng_tcp://127.0.0.1:5/",
            "--title=two words",
            "-x",
        ];
        assert_eq!(request.job.arguments, arguments);
        assert_eq!(request.job.environment, ["A=1 2", "B="]);
        assert_eq!(request.job.directory, "/w");
        assert_eq!(request.output.as_deref(), Some("/o"));
        assert_eq!(request.errors.as_deref(), Some("/e"));
        assert_eq!(request.status_polling, 3);
        let limit = |wanted| {
            let mut all = request.limits.iter().filter(|(limit, _)| *limit == wanted);
            (all.next().map(|(_, value)| value.as_str()), all.count())
        };
        for (wanted, value) in [
            (Limit::Time, "5"),
            (Limit::CpuTime, "9"),
            (Limit::MemoryMin, "100"),
            (Limit::MemoryMax, "300"),
            (Limit::Hosts, "2"),
            (Limit::Project, "p"),
        ] {
            assert_eq!(limit(wanted), (Some(value), 0), "{wanted:?}");
        }
        assert_eq!(request.unknown, ["nonsense"]);
    }

    #[test]
    fn invalid_attribute_value_is_refused_by_name() {
        for (more, text) in [
            ("count 0\n", "count is `0`: expected a number of 1 or more"),
            ("count x\n", "count is `x`: expected a number"),
            (
                "backend PVM\n",
                "backend is `PVM`: expected NORMAL, MPI or BLACS",
            ),
            ("port ssh\n", "port is `ssh`: expected a number"),
            (
                "port 65536\n",
                "port is `65536`: expected a port, 65535 at most",
            ),
            ("staging yes\n", "staging is `yes`: expected true or false"),
        ] {
            let error = JobRequest::read(&attributes(more)).unwrap_err();
            assert_eq!(error.to_string(), text);
        }
        // Output is asked for only where redirection is.
        let request = JobRequest::read(&attributes("stdout_file /o\n")).unwrap();
        assert_eq!(
            (request.output, request.job.directory),
            (None, "/opt/app".to_owned())
        );
    }
}
