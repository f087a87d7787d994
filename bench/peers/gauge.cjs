// The clock of a worker in Node: see gauge.py, which says the same in Python.
"use strict";
const fs = require("node:fs");
const { performance } = require("node:perf_hooks");

const wanted = Number(process.env.PEER_WANTED || 0);
const hits = [];
const late = [];

exports.now = () => (performance.timeOrigin + performance.now()) / 1000;

exports.hit = (due) => {
  if (due) late.push([due, exports.now() - due]);
  hits.push(performance.now());
  if (hits.length === wanted) {
    const seconds = (hits[hits.length - 1] - hits[0]) / 1000;
    const part = process.env.PEER_OUT + ".part";
    fs.writeFileSync(part, JSON.stringify({ jobs: hits.length, seconds, late }));
    fs.renameSync(part, process.env.PEER_OUT);
  }
};

// `fill 10000`, `plan DUE DUE ...` (on standard input), or `work`, as play.py does it.
exports.play = async ({ fill, plan, work }) => {
  const [what, count] = process.argv.slice(2);
  if (what === "fill") await fill(Number(count));
  else if (what === "plan") await plan(JSON.parse(fs.readFileSync(0, "utf8")));
  else await work();
};
