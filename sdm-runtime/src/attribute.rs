//! Attributes: their ids, and the definitions of those that are predefined or announced by SDM's agents.

/// The type of a predefined attribute's values.
pub(crate) enum Form {
    Array,
    Boolean,
    /// An integer that is at least this one.
    Integer(i64),
    /// One of the [`States`](crate::states::States) of this attribute.
    State,
    Text,
}

type Predefined = (&'static str, Form, &'static str, &'static str);

/// An attribute that SDM's agents add to those of the model: id, type, name, description, default.
pub type Announced = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

macro_rules! table {
    ($(#[$about:meta])* $seen:vis $table:ident: $row:ty; $($name:ident = $id:literal, $($more:expr),+;)*) => {
        $(
            #[doc = concat!("`", $id, "`")]
            pub const $name: &str = $id;
        )*

        $(#[$about])*
        $seen const $table: &[$row] = &[$(($id, $($more),+)),*];
    };
}

table! {
    /// Attributes of every resource manager ("Pre-defined Attributes"), in the document's order: id, values, name
    /// and description.
    pub(crate) PREDEFINED: Predefined;
    ID = "id", Form::Text, "ID", "The element's id";
    NAME = "name", Form::Text, "Name", "Name of the element, not unique";
    RM_STATE = "rmState", Form::State, "State", "State of the resource manager";
    RM_DESCRIPTION = "rmDescription", Form::Text, "Description", "Description of the resource manager";
    RM_TYPE = "rmType", Form::Text, "Type", "The kind of resource manager";
    RM_ID = "rmID", Form::Text, "Resource manager", "Permanent id of the resource manager";
    MACHINE_STATE = "machineState", Form::State, "State", "State of the machine";
    NUM_NODES = "numNodes", Form::Integer(0), "Nodes", "Number of nodes of the machine";
    QUEUE_STATE = "queueState", Form::State, "State", "State of the queue";
    NODE_STATE = "nodeState", Form::State, "State", "State of the node";
    NODE_EXTRA_STATE = "nodeExtraState", Form::State, "Use", "Use of the node by jobs: of this user or of others, exclusive or shared";
    NODE_PROCESS_STATE = "nodeProcessState", Form::State, "Processes", "State of the processes on the node";
    NODE_NUMBER = "nodeNumber", Form::Integer(0), "Number", "Zero-based index of the node";
    JOB_STATE = "jobState", Form::State, "State", "State of the job";
    JOB_SUB_ID = "jobSubId", Form::Text, "Submission", "Id of the job's submission";
    JOB_ID = "jobId", Form::Text, "Job", "ID of the job in commands";
    QUEUE_ID = "queueId", Form::Text, "Queue", "ID of the job's queue";
    JOB_NUM_PROCS = "jobNumProcs", Form::Integer(0), "Processes", "Number of processes of the job";
    EXEC_NAME = "execName", Form::Text, "Program", "Name of the executable";
    EXEC_PATH = "execPath", Form::Text, "Path", "Folder of the executable";
    WORKING_DIR = "workingDir", Form::Text, "Directory", "Working directory of the job";
    PROG_ARGS = "progArgs", Form::Array, "Arguments", "The program's arguments";
    ENV = "env", Form::Array, "Environment", "Variables of the environment";
    DEBUG_EXEC_NAME = "debugExecName", Form::Text, "Debugger", "Name of the debugger";
    DEBUG_EXEC_PATH = "debugExecPath", Form::Text, "Debugger's path", "Folder of the debugger";
    DEBUG_ARGS = "debugArgs", Form::Array, "Debugger's arguments", "The debugger's arguments";
    DEBUG = "debug", Form::Boolean, "Debug", "Whether the job runs under a debugger";
    PROCESS_STATE = "processState", Form::State, "State", "State of the process";
    PROCESS_PID = "processPID", Form::Integer(0), "PID", "The operating system's id of the process";
    PROCESS_EXIT_CODE = "processExitCode", Form::Integer(i64::MIN), "Exit code", "Exit code of the process";
    PROCESS_SIGNAL_NAME = "processSignalName", Form::Text, "Signal", "The signal that ended the process";
    PROCESS_INDEX = "processIndex", Form::Integer(0), "Index", "Zero-based index of the process";
    PROCESS_STDOUT = "processStdout", Form::Text, "Output", "Standard output of the process";
    PROCESS_STDERR = "processStderr", Form::Text, "Errors", "Standard error of the process";
    PROCESS_NODE_ID = "processNodeId", Form::Text, "Node", "ID of the node that the process is on";
}

table! {
    /// Attributes that SDM's agents announce: id, type, name, description and default.
    pub ANNOUNCED: Announced;
    SYSTEM_JOB_ID = "systemJobId", "STRING", "Job", "The job's number, as the manager's own commands take it", "";
    JOB_STATUS = "jobStatus", "STRING", "Status", "State of the job in the resource manager's own words", "";
    JOB_STATUS_MESSAGE = "jobStatusMessage", "STRING", "Reason", "Reason of the job's state", "";
    USER_ID = "userId", "STRING", "User", "Owner of the job; for a machine, the user that runs its agent", "";
    STARTER_PID = "starterPid", "INTEGER", "Launcher", "Pid of the job's launcher, on the host of the resource manager", "0";
    DEBUG_SESSION = "debugSession", "STRING", "Session", "Name of the kept SDM session that holds the job's processes", "";
    ACCOUNT = "account", "STRING", "Account", "Account that is charged for the job", "";
    QOS = "qos", "STRING", "QOS", "The job's quality of service", "";
    ARRAY_INDEX = "arrayIndex", "STRING", "Index", "Index of the job in its array; for pending members shown together, all indices", "";
    DEPENDENCY = "dependency", "STRING", "Dependency", "Dependencies of the job on other jobs, as the manager writes them", "";
    JOB_NODES = "jobNodes", "STRING", "Nodes", "The nodes of the job, as the manager writes them", "";
    GPUS = "gpus", "STRING", "GPUs", "Generic resources of the job on each node, or its total number of GPUs", "";
    SUBMIT_TIME = "submitTime", "BIGINTEGER", "Submitted", "Time of the submission, in seconds of Unix time", "0";
    START_TIME = "startTime", "BIGINTEGER", "Start", "Start time, in seconds of Unix time; for a pending job, the expected one", "0";
    END_TIME = "endTime", "BIGINTEGER", "End", "End time, in seconds of Unix time", "0";
    TIME_LIMIT_MINUTES = "timeLimitMinutes", "STRING", "Limit", "Time limit in minutes, or `unlimited`", "";
    OUTPUT_PATH = "outputPath", "STRING", "Output", "The file with the job's standard output", "";
    ERROR_PATH = "errorPath", "STRING", "Errors", "The file with the job's standard error", "";
    EXIT_CODE = "exitCode", "INTEGER", "Exit code", "The job's exit code", "0";
    EXIT_SIGNAL = "exitSignal", "INTEGER", "Exit signal", "The signal that ended the job", "0";
    NODE_STATUS = "nodeStatus", "STRING", "Status", "State of the node in the resource manager's own words", "";
    NODE_REASON = "nodeReason", "STRING", "Reason", "Reason of the node's state", "";
    NODE_CPUS = "nodeCpus", "INTEGER", "Processors", "Number of processors of the node", "0";
    NODE_MEMORY = "nodeMemory", "BIGINTEGER", "Memory", "Memory of the node, in MiB", "0";
    NODE_GRES = "nodeGres", "STRING", "Resources", "Generic resources of the node", "";
    QUEUE_STATUS = "queueStatus", "STRING", "Status", "State of the queue in the resource manager's own words", "";
    QUEUE_TIME_LIMIT = "queueTimeLimit", "STRING", "Limit", "Time limit of the queue's jobs", "";
    QUEUE_IS_DEFAULT = "queueIsDefault", "BOOLEAN", "Default", "True for the default queue", "false";
    LOOK = "look", "BOOLEAN", "Look", "True if the agent supports the command LOOK (14)", "false";
}

/// Requested name of the job; in submissions only.
pub const JOB_NAME: &str = "jobName";
/// A further option for the manager's own command; in submissions only.
pub const SUBMIT_OPTIONS: &str = "submitOptions";
/// True if the program is a batch script, which starts its processes itself; of a submission alone.
pub const BATCH_SCRIPT: &str = "batchScript";

/// The ids of all attributes known here, including those of submissions only.
pub fn ids() -> impl Iterator<Item = &'static str> {
    let predefined = PREDEFINED.iter().map(|it| it.0);
    let announced = ANNOUNCED.iter().map(|it| it.0);
    predefined
        .chain(announced)
        .chain([JOB_NAME, SUBMIT_OPTIONS, BATCH_SCRIPT])
}
