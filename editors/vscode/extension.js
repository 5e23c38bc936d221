// The SDM extension: where `sdm` is, a view of the classes of ranks, and the switch of whom steps move.
// What a session is and what is shown of it is decided in `sdm dap`; nothing of that is done here.
"use strict";

const { execFile } = require("child_process");
const fs = require("fs");
const path = require("path");
const vscode = require("vscode");

/** How many ranks a class shows below it, and how many a map has. */
const RANKS_MAX = 256;
const MAP_MAX = 65536;

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

/** All ranks as a map: a square each, in the colour of its class. */
class RankMap {
  resolveWebviewView(view) {
    this.view = view;
    view.webview.options = { enableScripts: false };
    view.onDidDispose(() => (this.view = undefined));
    return this.refresh();
  }

  async refresh() {
    if (!this.view) {
      return;
    }
    const session = current();
    let rows = [];
    if (session) {
      try {
        rows = (await session.customRequest("sdm/ranks", {})).threads;
      } catch {
        // The programs are not at `main` yet, or have ended.
      }
    }
    if (this.view) {
      this.view.webview.html = mapOf(rows);
    }
  }
}

/** The page of a map. */
function mapOf(rows) {
  const squares = [];
  rows.forEach((row, at) => {
    // Colours that are far apart for classes that are neighbours; who runs is grey.
    const colour = row.running ? "#888" : `hsl(${(at * 137) % 360}, 60%, 50%)`;
    for (const rank of ranksOf(row.ranks, MAP_MAX)) {
      squares.push({ rank, colour, name: row.name });
    }
  });
  squares.sort((one, other) => one.rank - other.rank);
  const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const cells = squares.slice(0, MAP_MAX).map(
    ({ rank, colour, name }) => `<i style="background:${colour}" title="${escape(`rank ${rank}: ${name}`)}"></i>`,
  );
  return `<!DOCTYPE html><html><head>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>i { display: inline-block; width: 9px; height: 9px; margin: 1px; } body { line-height: 11px; padding: 4px; }</style>
</head><body>${cells.join("")}</body></html>`;
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
  const map = new RankMap();
  const refresh = () => {
    view.refresh();
    map.refresh();
  };
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
    vscode.window.registerWebviewViewProvider("sdm.map", map),
    vscode.debug.onDidChangeActiveDebugSession(refresh),
    vscode.debug.onDidTerminateDebugSession(() => item.hide()),
    vscode.commands.registerCommand("sdm.refresh", refresh),
    vscode.commands.registerCommand("sdm.focusRank", focusRank),
    vscode.commands.registerCommand("sdm.pickJob", pickJob),
    vscode.commands.registerCommand("sdm.scopeClass", () => setScope("class", item)),
    vscode.commands.registerCommand("sdm.scopeAll", () => setScope("all", item)),
    vscode.commands.registerCommand("sdm.evaluateOn", evaluateOn),
  );
}

module.exports = { activate, deactivate() {}, mapOf, ranksOf };
