// VS Code's own client for tests of adapters (npm @vscode/debugadapter-testsupport) drives `sdm dap`.
//
//     cc -g -pthread -o work ../../tests/fixtures/work.c
//     npm install --no-save @vscode/debugadapter-testsupport mocha
//     SDM=../../target/debug/sdm npx mocha -u tdd stories.js
"use strict";

const path = require("path");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

const source = path.resolve(__dirname, "../../tests/fixtures/work.c");
const program = path.resolve("work");

suite("sdm dap", function () {
  this.timeout(60000);
  let client;

  setup(() => {
    client = new DebugClient(process.env.SDM || "sdm", "dap", "sdm");
    return client.start();
  });

  teardown(() => client.stop());

  test("an unknown request is refused", (done) => {
    client.send("illegal").then(() => done(new Error("it was not"))).catch(() => done());
  });

  test("initialize tells what there is", async () => {
    const response = await client.initializeRequest();
    if (!response.body.supportsConfigurationDoneRequest) {
      throw new Error("no configurationDone");
    }
  });

  for (const [ranks, threads] of [[1, 1], [4, 4], [32, 1]]) {
    test(`a breakpoint stops ${ranks} ranks`, async () => {
      const configuration = { program, ranks, launcher: "local", args: ["steps"] };
      await client.hitBreakpoint(configuration, { path: source, line: 27 });
      const response = await client.threadsRequest();
      if (response.body.threads.length !== threads) {
        throw new Error(JSON.stringify(response.body.threads));
      }
    });
  }

  test("two ranks run from main to their end", async () => {
    await Promise.all([
      client.configurationSequence(),
      client.launch({ program, ranks: 2, stopAtEntry: true, launcher: "local" }),
      client.waitForEvent("stopped"),
    ]);
    await Promise.all([client.continueRequest({ threadId: 1 }), client.waitForEvent("terminated")]);
  });
});
