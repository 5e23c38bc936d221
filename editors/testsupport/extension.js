// The extension for VS Code, in a VS Code that is not there: what it registers, asks and shows.
//
//     SDM=../../target/debug/sdm node extension.js
"use strict";

const assert = require("assert");
const Module = require("module");
const path = require("path");

const registered = {};
const register = (kind) => (name, value) => {
  registered[`${kind} ${name}`] = value;
  return { dispose() {} };
};
const asked = [];
const rows = [
  { threadId: 1, ranks: "0-2,5", count: 4, name: "[0-2,5] 4 ranks: main a.c:<3>", running: false },
  { threadId: 2, ranks: "3-4", count: 2, name: "[3-4] 2 ranks: running", running: true },
];
const session = {
  type: "sdm",
  customRequest: async (name, values) => {
    asked.push([name, values]);
    return { threads: rows, all: "0-5", result: "7" };
  },
};
let pick;
let sdm = process.env.SDM;
const complaints = [];
const vscode = {
  EventEmitter: class {
    fire() {}
  },
  TreeItem: class {
    constructor(label, state) {
      Object.assign(this, { label, state });
    }
  },
  ThemeIcon: class {},
  TreeItemCollapsibleState: { Collapsed: 1 },
  StatusBarAlignment: { Left: 1 },
  DebugAdapterExecutable: class {
    constructor(command, args) {
      Object.assign(this, { command, args });
    }
  },
  workspace: { getConfiguration: () => ({ get: () => sdm }) },
  commands: {
    registerCommand: register("command"),
    executeCommand: (...words) => asked.push(words),
  },
  debug: {
    activeDebugSession: session,
    activeDebugConsole: { appendLine: (line) => asked.push(["console", line]) },
    registerDebugAdapterDescriptorFactory: register("adapter"),
    registerDebugConfigurationProvider: register("configuration"),
    registerDebugAdapterTrackerFactory: register("tracker"),
    onDidChangeActiveDebugSession: () => ({}),
    onDidTerminateDebugSession: () => ({}),
  },
  window: {
    createStatusBarItem: () => ({ show() {}, hide() {} }),
    registerTreeDataProvider: register("view"),
    registerWebviewViewProvider: register("webview"),
    showQuickPick: async (items) => pick(items),
    showInputBox: async () => "17",
    showErrorMessage: async (text, ...answers) => {
      complaints.push(text);
      return answers[0];
    },
  },
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));

const folder = path.resolve(__dirname, "../vscode");
const extension = require(folder);
const manifest = require(path.join(folder, "package.json"));

async function main() {
  extension.activate({ subscriptions: [] });
  // What the manifest names is there.
  for (const { command } of manifest.contributes.commands) {
    assert(registered[`command ${command}`], command);
  }
  for (const { id, type } of manifest.contributes.views.debug) {
    assert(registered[`${type === "webview" ? "webview" : "view"} ${id}`], id);
  }
  const adapter = registered["adapter sdm"].createDebugAdapterDescriptor();
  assert.deepStrictEqual([adapter.command, adapter.args], [process.env.SDM, ["dap"]]);
  // What a person left out is filled in; VS Code is silent about an adapter that is not there, so we are not.
  const configurations = registered["configuration sdm"];
  const resolve = () => configurations.resolveDebugConfiguration({ uri: { fsPath: "/ws" } }, { type: "sdm", request: "launch" });
  assert.deepStrictEqual(await resolve(), { type: "sdm", request: "launch", cwd: "/ws" });
  for (const missing of ["/nowhere/sdm", "no-such-sdm", folder]) {
    sdm = missing;
    assert.strictEqual(await resolve(), undefined);
    await new Promise(setImmediate);
    assert(complaints.pop().includes(`"${missing}" is not found`));
    assert.deepStrictEqual(asked.pop(), ["workbench.action.openSettings", "sdm.path"]);
  }
  sdm = process.env.SDM;
  // The classes, and the ranks of one.
  const view = registered["view sdm.ranks"];
  const classes = await view.getChildren();
  assert.deepStrictEqual(classes, rows);
  assert.strictEqual(view.getTreeItem(classes[0]).label, rows[0].name);
  const ranks = await view.getChildren(classes[0]);
  assert.deepStrictEqual(ranks.map(({ rank }) => rank), [0, 1, 2, 5]);
  assert.deepStrictEqual(await view.getChildren(ranks[3]), []);
  // The map has a square for each rank, and texts of programs are texts.
  const page = { webview: {}, onDidDispose() {} };
  await registered["webview sdm.map"].resolveWebviewView(page);
  assert.strictEqual(page.webview.html.split("<i ").length - 1, 6);
  assert(page.webview.html.includes("a.c:&#60;3&#62;"), page.webview.html);
  // One rank in a session of its own, from the view and by its number.
  await registered["command sdm.focusRank"](ranks[3]);
  assert.deepStrictEqual(asked.pop(), ["sdm/focus", { rank: 5 }]);
  await registered["command sdm.focusRank"]();
  assert.deepStrictEqual(asked.pop(), ["sdm/focus", { rank: 17 }]);
  // A set is picked, and an expression evaluated on it.
  pick = (items) => items.find(({ label }) => label === "3-4");
  await registered["command sdm.evaluateOn"]();
  assert.deepStrictEqual(asked.pop(), ["console", "[3-4] print 17\n7"]);
  await registered["command sdm.scopeClass"]();
  assert.deepStrictEqual(asked.pop(), ["sdm/scope", { scope: "class" }]);
  // The jobs come from the real `sdm`.
  pick = (items) => items[items.length - 1];
  assert.strictEqual(await registered["command sdm.pickJob"](), "17");
  assert.deepStrictEqual(complaints, []);
  console.log("the extension is whole");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
