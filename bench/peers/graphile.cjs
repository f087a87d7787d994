// Graphile Worker on PostgreSQL: see graphile.py for the settings and their reason.
"use strict";
const { Logger, makeWorkerUtils, run } = require("graphile-worker");
const gauge = require("./gauge.cjs");

const connectionString = process.env.PEER_URL;
const logger = new Logger(() => () => {});

async function queue(due) {
  const utils = await makeWorkerUtils({ connectionString, logger });
  await utils.migrate();
  for (let start = 0; start < due.length; start += 1000) {
    await utils.addJobs(
      due.slice(start, start + 1000).map((each) => ({
        identifier: "job",
        payload: { due: each },
        ...(each ? { runAt: new Date(1000 * each) } : {}),
      })),
    );
  }
  await utils.release();
}

gauge.play({
  fill: (count) => queue(new Array(count).fill(0)),
  plan: queue,
  work: async () => {
    await run({
      preset: {
        worker: {
          connectionString,
          logger,
          concurrentJobs: 24,
          maxPoolSize: 25,
          pollInterval: 10,
          localQueue: { size: 2000 },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
        },
      },
      taskList: { job: async (payload) => gauge.hit(payload.due) },
    });
  },
});
