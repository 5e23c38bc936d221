// The SDM extension: where `sdm` is, a view of the classes of ranks, and the switch of whom steps move.
// What a session is and what is shown of it is decided in `sdm dap`; nothing of that is done here.
"use strict";

const vscode = require("vscode");

/** The session of ours that is in front, where one is. */
function current() {
  const session = vscode.debug.activeDebugSession;
  return session && session.type === "sdm" ? session : undefined;
}

/** Starts `sdm dap` for each session. */
class AdapterFactory {
  createDebugAdapterDescriptor() {
    const path = vscode.workspace.getConfiguration("sdm").get("path") || "sdm";
    return new vscode.DebugAdapterExecutable(path, ["dap"]);
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
    const item = new vscode.TreeItem(row.name);
    item.description = row.running ? "running" : `${row.count} stopped`;
    item.tooltip = `ranks ${row.ranks}`;
    item.iconPath = new vscode.ThemeIcon(row.running ? "debug-start" : "debug-pause");
    return item;
  }

  async getChildren(row) {
    const session = current();
    if (row || !session) {
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
  const item = vscode.window.createStatusBarItem(vscode.StatusBarAlignment.Left);
  item.command = "sdm.scopeAll";
  // What follows a stop or a start is shown anew.
  const tracker = {
    createDebugAdapterTracker: () => ({
      onDidSendMessage: (message) => {
        const events = ["stopped", "continued", "thread", "invalidated", "terminated"];
        if (message.type === "event" && events.includes(message.event)) {
          view.refresh();
        }
        const moving = ["continue", "next", "stepIn", "stepOut"];
        if (message.type === "response" && moving.includes(message.command)) {
          view.refresh();
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
    vscode.debug.onDidChangeActiveDebugSession(() => view.refresh()),
    vscode.debug.onDidTerminateDebugSession(() => item.hide()),
    vscode.commands.registerCommand("sdm.refresh", () => view.refresh()),
    vscode.commands.registerCommand("sdm.scopeClass", () => setScope("class", item)),
    vscode.commands.registerCommand("sdm.scopeAll", () => setScope("all", item)),
    vscode.commands.registerCommand("sdm.evaluateOn", evaluateOn),
  );
}

module.exports = { activate, deactivate() {} };
