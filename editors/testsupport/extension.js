// The extension for VS Code, in a VS Code that is not there: what it registers, asks and shows.
//
//     SDM=../../target/debug/sdm node extension.js
"use strict";

const assert = require("assert");
const fs = require("fs");
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
  id: "one",
  customRequest: async (name, values) => {
    asked.push([name, values]);
    if (name === "sdm/page") {
      const page = fs.readFileSync(path.resolve(__dirname, "../../sdm-web/page/index.html"), "utf8");
      return { files: [{ path: "/", text: page }, { path: "/main.js", text: "main" }] };
    }
    if (values && values.text === "quit") {
      throw new Error("refused");
    }
    return { threads: rows, all: "0-5", result: "7" };
  },
};
let pick;
let sdm = process.env.SDM;
const complaints = [];
// The panel, what was written for it, what it was told, and what the editor has shown.
const panels = [];
const written = new Map();
const told = [];
const shown = [];
class Range {
  constructor(line, column) {
    Object.assign(this, { line, column });
  }
}
const vscode = {
  Uri: { joinPath: (base, name) => path.join(base, name), file: (name) => name },
  Position: Range,
  Range,
  ViewColumn: { One: 1, Beside: -2 },
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
  workspace: {
    getConfiguration: () => ({ get: () => sdm }),
    fs: { writeFile: async (file, bytes) => written.set(file, String(bytes)) },
  },
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
    onDidStartDebugSession: (started) => (registered.started = started),
  },
  window: {
    createStatusBarItem: () => ({ show() {}, hide() {} }),
    registerTreeDataProvider: register("view"),
    showTextDocument: async (file, { viewColumn, selection }) => shown.push([file, viewColumn, selection.line.line]),
    createWebviewPanel: (kind, title, column, options) => {
      const panel = {
        options,
        reveal: () => asked.push(["reveal"]),
        onDidDispose: (dispose) => (panel.dispose = dispose),
        webview: {
          cspSource: "https://here",
          asWebviewUri: (file) => `https://here${file}`,
          onDidReceiveMessage: (hear) => (panel.hear = hear),
          postMessage: (message) => told.push(message),
        },
      };
      panels.push(panel);
      return panel;
    },
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

/** The page is a panel: its files are its own and nothing else's, and only its own requests are passed on. */
async function checkPage() {
  await registered["command sdm.page"]();
  const [panel] = panels;
  assert.deepStrictEqual([...written], [["/storage/page/main.js", "main"]]);
  assert.deepStrictEqual(panel.options, { enableScripts: true, localResourceRoots: ["/storage/page"] });
  const { html } = panel.webview;
  assert(html.includes("default-src 'none'; script-src https://here; style-src https://here;"), html);
  assert(html.indexOf("Content-Security-Policy") < html.indexOf("<script"), html);
  const addresses = [...html.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, address]) => address);
  assert.deepStrictEqual(addresses, ["icon.svg", "page.css", "main.js"].map((name) => `https://here/storage/page/${name}`).concat("#command"));
  await panel.hear({ id: 1, request: "sdm/line", values: { text: "bt" } });
  assert.deepStrictEqual([asked.pop(), told.pop().id], [["sdm/line", { text: "bt" }], 1]);
  const before = asked.length;
  await panel.hear({ id: 2, request: "evaluate", values: {} });
  assert.deepStrictEqual([asked.length, told.pop()], [before, { id: 2, error: "evaluate is not for a page" }]);
  await panel.hear({ id: 3, request: "sdm/line", values: { text: "quit" } });
  assert.deepStrictEqual(told.pop(), { id: 3, error: "refused" });
  await panel.hear({ path: "/src/a.c", line: 7 });
  assert.deepStrictEqual(shown, [["/src/a.c", 1, 6]]);
  // A session after this one is shown in the same panel, one of a single rank is not.
  registered.started({ ...session, id: "part", parentSession: session });
  await registered.started({ ...session, id: "two" });
  await new Promise(setImmediate);
  assert(panel.webview.html.includes('content="two"'), panel.webview.html);
  assert.strictEqual(panels.length, 1);
  panel.dispose();
  await registered["command sdm.page"]();
  assert.strictEqual(panels.length, 2);
}

async function main() {
  extension.activate({ subscriptions: [], globalStorageUri: "/storage" });
  // What the manifest names is there.
  for (const { command } of manifest.contributes.commands) {
    assert(registered[`command ${command}`], command);
  }
  for (const { id } of manifest.contributes.views.debug) {
    assert(registered[`view ${id}`], id);
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
  await checkPage();
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
