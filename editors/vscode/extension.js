// The SDM extension: where `sdm` is, a view of the classes of ranks, the page as a panel, and the switch of whom steps move.
// What a session is and what is shown of it is decided in `sdm dap`; nothing of that is done here.
"use strict";

const { execFile } = require("child_process");
const fs = require("fs");
const path = require("path");
const vscode = require("vscode");

/** How many ranks a class shows below it. */
const RANKS_MAX = 256;

/** Where `sdm` is. */
function program() {
  return vscode.workspace.getConfiguration("sdm").get("path") || "sdm";
}

/** Whether a program can be run: a path, or a name on `PATH`. */
function canRun(name) {
  const folders = name.includes("/") ? [""] : (process.env.PATH || "").split(path.delimiter);
  return folders.some((folder) => {
    try {
      const file = folder ? path.join(folder, name) : name;
      fs.accessSync(file, fs.constants.X_OK);
      return fs.statSync(file).isFile();
    } catch {
      return false;
    }
  });
}

/** VS Code says nothing where a debug adapter cannot be started: we do. */
async function complainOfProgram() {
  const settings = "Open the setting";
  const text = `SDM: "${program()}" is not found on this machine by VS Code. Where sdm is can be said in the setting sdm.path.`;
  if ((await vscode.window.showErrorMessage(text, settings)) === settings) {
    vscode.commands.executeCommand("workbench.action.openSettings", "sdm.path");
  }
}

/** The ranks of a set as text, `0-3,7`, at most so many. */
function ranksOf(text, most) {
  const ranks = [];
  for (const range of text.split(",").filter(Boolean)) {
    const [first, last = first] = range.split("-").map(Number);
    for (let rank = first; rank <= last && ranks.length < most; rank++) {
      ranks.push(rank);
    }
  }
  return ranks;
}

/** The session of ours that is in front, where one is. */
function current() {
  const session = vscode.debug.activeDebugSession;
  return session && session.type === "sdm" ? session : undefined;
}

/** Starts `sdm dap` for each session. */
class AdapterFactory {
  createDebugAdapterDescriptor() {
    return new vscode.DebugAdapterExecutable(program(), ["dap"]);
  }
}

/** Fills in what a person left out. */
class Configurations {
  resolveDebugConfiguration(folder, configuration) {
    if (!configuration.type && !configuration.request) {
      configuration.type = "sdm";
      configuration.request = "launch";
      configuration.name = "MPI: 4 ranks";
      configuration.program = "${workspaceFolder}/a.out";
      configuration.ranks = 4;
    }
    if (configuration.request === "launch" && !configuration.cwd && folder) {
      configuration.cwd = folder.uri.fsPath;
    }
    if (!canRun(program())) {
      complainOfProgram();
      return undefined;
    }
    return configuration;
  }
}

/** The classes of ranks, a row each; below a class the place where it stands. */
class RanksView {
  constructor() {
    this.changed = new vscode.EventEmitter();
    this.onDidChangeTreeData = this.changed.event;
  }

  refresh() {
    this.changed.fire(undefined);
  }

  getTreeItem(row) {
    if (row.rank !== undefined) {
      const item = new vscode.TreeItem(`rank ${row.rank}`);
      item.contextValue = "rank";
      return item;
    }
    const item = new vscode.TreeItem(row.name, vscode.TreeItemCollapsibleState.Collapsed);
    item.description = row.running ? "running" : `${row.count} stopped`;
    item.tooltip = `ranks ${row.ranks}`;
    item.iconPath = new vscode.ThemeIcon(row.running ? "debug-start" : "debug-pause");
    return item;
  }

  async getChildren(row) {
    const session = current();
    if (row) {
      return row.rank === undefined ? ranksOf(row.ranks, RANKS_MAX).map((rank) => ({ rank })) : [];
    }
    if (!session) {
      return [];
    }
    try {
      const body = await session.customRequest("sdm/ranks", {});
      return body.threads;
    } catch {
      // The programs are not at `main` yet, or have ended.
      return [];
    }
  }
}

/** What the page may ask of the debug adapter. */
const REQUESTS = ["sdm/events", "sdm/line", "completions", "sdm/interrupt", "sdm/suspend"];

/** The page of `sdm web` as a panel. The adapter has its files and what is on it; here messages are passed on. */
class Page {
  constructor(storage) {
    this.folder = vscode.Uri.joinPath(storage, "page");
  }

  /** Opens the panel beside the editor, or comes back to it. */
  async show() {
    const session = current();
    if (!session) {
      vscode.window.showErrorMessage("SDM: there is no session to show. F5 begins one.");
      return;
    }
    if (this.panel) {
      this.panel.reveal();
    } else {
      const options = { enableScripts: true, localResourceRoots: [this.folder] };
      this.panel = vscode.window.createWebviewPanel("sdm.page", "SDM", vscode.ViewColumn.Beside, options);
      this.panel.onDidDispose(() => (this.panel = this.session = undefined));
      this.panel.webview.onDidReceiveMessage((message) => this.hear(message));
    }
    await this.load(session);
  }

  /** Shows a session in the panel. */
  async load(session) {
    const { files } = await session.customRequest("sdm/page");
    const [{ text: page }, ...others] = files;
    for (const { path: name, text } of others) {
      await vscode.workspace.fs.writeFile(vscode.Uri.joinPath(this.folder, name), Buffer.from(text));
    }
    if (!this.panel || session === this.session) {
      return;
    }
    this.session = session;
    const { webview } = this.panel;
    const own = webview.cspSource;
    const policy = `default-src 'none'; script-src ${own}; style-src ${own}; img-src ${own}; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'`;
    // The session's id makes the text another one, as the same text is not loaded again.
    const head = `<head><meta http-equiv="Content-Security-Policy" content="${policy}"><meta name="session" content="${session.id}">`;
    const address = (_, attribute, name) => `${attribute}="${webview.asWebviewUri(vscode.Uri.joinPath(this.folder, name))}"`;
    webview.html = page.replace(/(href|src)="\/([^"]+)"/g, address).replace("<head>", head);
  }

  /** A new session takes the place of the one before. */
  follow(session) {
    if (this.panel && session.type === "sdm" && !session.parentSession) {
      this.load(session);
    }
  }

  /** A message of the page: a place to show, or a request for the adapter. */
  async hear({ id, request, values, path: file, line }) {
    if (file) {
      return showLine(file, line);
    }
    const answer = { id };
    try {
      if (!REQUESTS.includes(request)) {
        throw new Error(`${request} is not for a page`);
      }
      answer.body = await this.session.customRequest(request, values);
    } catch (error) {
      answer.error = error.message;
    }
    if (this.panel) {
      this.panel.webview.postMessage(answer);
    }
  }
}

/** Shows a line of a file in the editor. */
async function showLine(file, line) {
  const at = new vscode.Position(line - 1, 0);
  const options = { viewColumn: vscode.ViewColumn.One, selection: new vscode.Range(at, at) };
  try {
    await vscode.window.showTextDocument(vscode.Uri.file(file), options);
  } catch (error) {
    vscode.window.showErrorMessage(error.message);
  }
}

/** A job that runs, for `${command:PickJob}` in launch.json. */
async function pickJob() {
  const jobs = await new Promise((resolve) => {
    execFile(program(), ["dap", "--jobs"], (error, stdout) => {
      if (error) {
        vscode.window.showErrorMessage(`${program()} dap --jobs: ${error.message}`);
      }
      resolve(error ? [] : JSON.parse(stdout));
    });
  });
  const items = jobs.map((job) => ({ label: job.target, description: job.label }));
  const other = { label: "another", description: "a pid, slurm:JOB, CLUSTER:JOB" };
  const picked = await vscode.window.showQuickPick([...items, other], { placeHolder: "Attach to which job?" });
  if (picked !== other) {
    return picked && picked.label;
  }
  return vscode.window.showInputBox({ prompt: "The job: a pid of mpirun or srun, pids, slurm:JOB, CLUSTER:JOB" });
}

/** One rank in a session of its own. */
async function focusRank(row) {
  const session = current();
  if (!session) {
    return;
  }
  let rank = row && row.rank;
  if (rank === undefined) {
    const first = row && row.ranks ? String(ranksOf(row.ranks, 1)[0]) : "";
    const typed = await vscode.window.showInputBox({ prompt: "Which rank?", value: first });
    if (!typed) {
      return;
    }
    rank = Number(typed);
  }
  try {
    await session.customRequest("sdm/focus", { rank });
  } catch (error) {
    vscode.window.showErrorMessage(error.message);
  }
}

async function setScope(scope, item) {
  const session = current();
  if (!session) {
    return;
  }
  await session.customRequest("sdm/scope", { scope });
  item.text = scope === "class" ? "$(debug) SDM: this class" : "$(debug) SDM: all ranks";
  item.show();
}

async function evaluateOn() {
  const session = current();
  if (!session) {
    return;
  }
  const known = await session.customRequest("sdm/ranks", {});
  const sets = known.threads.map((row) => ({ label: row.ranks, description: row.name }));
  sets.push({ label: "all", description: `all ranks: ${known.all}` });
  const set = await vscode.window.showQuickPick(sets, { placeHolder: "On which ranks?" });
  if (!set) {
    return;
  }
  const expression = await vscode.window.showInputBox({ prompt: `Expression on ranks ${set.label}` });
  if (!expression) {
    return;
  }
  const line = `[${set.label}] print ${expression}`;
  try {
    const body = await session.customRequest("evaluate", { expression: line, context: "repl" });
    vscode.debug.activeDebugConsole.appendLine(`${line}\n${body.result}`);
  } catch (error) {
    vscode.window.showErrorMessage(`${line}: ${error.message}`);
  }
}

function activate(context) {
  const view = new RanksView();
  const page = new Page(context.globalStorageUri);
  const refresh = () => view.refresh();
  const item = vscode.window.createStatusBarItem(vscode.StatusBarAlignment.Left);
  item.command = "sdm.scopeAll";
  // What follows a stop or a start is shown anew.
  const tracker = {
    createDebugAdapterTracker: () => ({
      onDidSendMessage: (message) => {
        const events = ["stopped", "continued", "thread", "invalidated", "terminated"];
        if (message.type === "event" && events.includes(message.event)) {
          refresh();
        }
        const moving = ["continue", "next", "stepIn", "stepOut"];
        if (message.type === "response" && moving.includes(message.command)) {
          refresh();
        }
      },
    }),
  };
  context.subscriptions.push(
    item,
    vscode.debug.registerDebugAdapterDescriptorFactory("sdm", new AdapterFactory()),
    vscode.debug.registerDebugConfigurationProvider("sdm", new Configurations()),
    vscode.debug.registerDebugAdapterTrackerFactory("sdm", tracker),
    vscode.window.registerTreeDataProvider("sdm.ranks", view),
    vscode.debug.onDidChangeActiveDebugSession(refresh),
    vscode.debug.onDidStartDebugSession((session) => page.follow(session)),
    vscode.debug.onDidTerminateDebugSession(() => item.hide()),
    vscode.commands.registerCommand("sdm.refresh", refresh),
    vscode.commands.registerCommand("sdm.page", () => page.show()),
    vscode.commands.registerCommand("sdm.focusRank", focusRank),
    vscode.commands.registerCommand("sdm.pickJob", pickJob),
    vscode.commands.registerCommand("sdm.scopeClass", () => setScope("class", item)),
    vscode.commands.registerCommand("sdm.scopeAll", () => setScope("all", item)),
    vscode.commands.registerCommand("sdm.evaluateOn", evaluateOn),
  );
}

module.exports = { activate, deactivate() {} };
