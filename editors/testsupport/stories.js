// VS Code's own client for tests of adapters (npm @vscode/debugadapter-testsupport) drives `sdm dap`: one rank, four, and
// sixty-four, without MPI and with it. A test of Rust's, tests/tests/launchers/stories.rs, compiles the programs, runs
// this with mocha, and holds all that the adapter said against the protocol's schema.
"use strict";

const assert = require("assert");
const fs = require("fs");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

// What starts the adapter, the fixtures and their programs: said by the test.
const { ADAPTER, FIXTURES, PROGRAMS } = process.env;

/** The number of the line of a fixture that holds `text`. */
function lineOf(fixture, text) {
  const lines = fs.readFileSync(`${FIXTURES}/${fixture}`, "utf8").split("\n");
  const at = lines.findIndex((line) => line.includes(text));
  assert(at >= 0, text);
  return at + 1;
}

suite("sdm dap", function () {
  this.timeout(200000);
  let client;

  setup(() => {
    client = new DebugClient(ADAPTER, "dap", "sdm");
    client.defaultTimeout = 150000;
    return client.start();
  });

  teardown(() => client.stop());

  /** The last of the stops, when all ranks stand. */
  async function allStopped() {
    for (;;) {
      const stopped = await client.waitForEvent("stopped");
      if (stopped.body.allThreadsStopped) {
        return stopped.body;
      }
    }
  }

  /**
   * As `client.hitBreakpoint`, which takes only an answer that tells the line: it is pending where the ranks take more than
   * two seconds to start, and an event tells the line.
   */
  async function hitBreakpoint(launch, { path, line }) {
    const bound = new Promise((resolve) => {
      client.on("breakpoint", ({ body: { breakpoint } }) => breakpoint.verified && resolve(breakpoint));
    });
    const set = async () => {
      await client.waitForEvent("initialized");
      const { body } = await client.setBreakpointsRequest({ source: { path }, breakpoints: [{ line }] });
      const [answered] = body.breakpoints;
      await client.configurationDoneRequest();
      assert.strictEqual((answered.verified ? answered : await bound).line, line);
    };
    await Promise.all([set(), client.launch(launch), client.assertStoppedLocation("breakpoint", { path, line })]);
  }

  test("an unknown request is refused", async () => {
    await client.initializeRequest();
    await assert.rejects(client.send("illegal"));
  });

  test("capabilities are told, and the order is kept", async () => {
    const { body } = await client.initializeRequest();
    for (const name of ["ConfigurationDone", "Restart", "GotoTargets", "LoadedSources", "Disassemble"]) {
      assert(body[`supports${name}Request`], name);
    }
    await assert.rejects(client.launchRequest({}), /`program` is missing/);
  });

  for (const [ranks, threads] of [[1, 1], [4, 4], [64, 1]]) {
    test(`a breakpoint stops ${ranks} ranks, a step moves them, and they end`, async () => {
      const launch = { program: `${PROGRAMS}/work`, ranks, launcher: "local", args: ["steps"] };
      const path = `${FIXTURES}/work.c`;
      const line = lineOf("work.c", "int result = number * 2;");
      const stop = allStopped();
      await hitBreakpoint(launch, { path, line });
      const { threadId } = await stop;
      const list = (await client.threadsRequest()).body.threads;
      assert.strictEqual(list.length, threads, JSON.stringify(list));
      const frames = (await client.stackTraceRequest({ threadId })).body.stackFrames;
      assert.deepStrictEqual(frames.map((frame) => frame.name), ["twice", "step_through", "main"]);
      const scopes = (await client.scopesRequest({ frameId: frames[0].id })).body.scopes;
      const { variablesReference } = scopes[0];
      const values = (await client.variablesRequest({ variablesReference })).body.variables;
      assert.deepStrictEqual(values.map(({ name, value }) => [name, value]), [["number", "0"]]);
      const moved = allStopped();
      await client.nextRequest({ threadId });
      assert.strictEqual((await moved).reason, "step");
      await client.assertStoppedLocationOf(threadId, { path, line: line + 1 });
      await client.setBreakpointsRequest({ source: { path }, breakpoints: [] });
      const ended = client.waitForEvent("terminated");
      await client.continueRequest({ threadId });
      await ended;
    });
  }

  // How the ranks of the DebugClient of VS Code stand: by their innermost frame.
  DebugClient.prototype.assertStoppedLocationOf = async function (threadId, { path, line }) {
    const { body } = await this.stackTraceRequest({ threadId });
    assert.strictEqual(body.stackFrames[0].source.path, path);
    assert.strictEqual(body.stackFrames[0].line, line);
  };

  for (const ranks of [1, 4, 64]) {
    test(`an MPI program of ${ranks} ranks is debugged`, async () => {
      const launch = {
        program: `${PROGRAMS}/mpi_sum`,
        ranks,
        launcher: "mpirun",
        launcherOptions: ["--oversubscribe"],
        threads: "classes",
      };
      const path = `${FIXTURES}/mpi_sum.c`;
      const line = lineOf("mpi_sum.c", "MPI_Allreduce(");
      const stop = allStopped();
      await hitBreakpoint(launch, { path, line });
      const { threadId } = await stop;
      const list = (await client.threadsRequest()).body.threads;
      assert.strictEqual(list.length, 1, JSON.stringify(list));
      const whose = ranks === 1 ? "rank 0" : `[0-${ranks - 1}] ${ranks} ranks`;
      assert(list[0].name.startsWith(`${whose}: add_up mpi_sum.c`), list[0].name);
      // Each rank has another value.
      const { body } = await client.evaluateRequest({ expression: "[all] print contribution", context: "repl" });
      const said = { 1: "1", 4: "1 [0], 2 [1], 3 [2], 4 [3]", 64: "1 [0], 2 [1], 3 [2], 4 [3], and 60 more values" };
      assert.strictEqual(body.result, said[ranks]);
      await client.setBreakpointsRequest({ source: { path }, breakpoints: [] });
      const ended = client.waitForEvent("terminated");
      await client.continueRequest({ threadId });
      await ended;
    });
  }
});
