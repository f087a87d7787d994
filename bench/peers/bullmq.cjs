// BullMQ on Redis: see bullmq.py for the settings and their reason.
"use strict";
const { Queue, Worker } = require("bullmq");
const gauge = require("./gauge.cjs");

const url = new URL(process.env.PEER_URL);
const connection = { host: url.hostname, port: Number(url.port), maxRetriesPerRequest: null };
const gone = { removeOnComplete: true, removeOnFail: true };

async function queue(due) {
  const jobs = new Queue("peer", { connection });
  for (let start = 0; start < due.length; start += 1000) {
    const now = gauge.now();
    await jobs.addBulk(
      due.slice(start, start + 1000).map((each) => ({
        name: "job",
        data: { due: each },
        opts: each ? { ...gone, delay: Math.max(0, Math.round(1000 * (each - now))) } : gone,
      })),
    );
  }
  await jobs.close();
}

gauge.play({
  fill: (count) => queue(new Array(count).fill(0)),
  plan: queue,
  work: () => {
    new Worker("peer", async (job) => gauge.hit(job.data.due), {
      connection, concurrency: 100, ...gone });
  },
});
