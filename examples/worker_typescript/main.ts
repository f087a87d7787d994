// npm install && npm run build && npm start
import { Worker, type TaskFunction } from "./worker.js";

const { functions } = (await import(process.env.FUNCTIONS ?? "./functions.js")) as {
  functions: Record<string, TaskFunction>;
};
const worker = new Worker(
  {
    address: process.env.DUETIME_GRPC ?? "localhost:7929",
    protoFolder: process.env.DUETIME_PROTO ?? "../../proto",
    queue: process.env.QUEUE ?? "default",
    concurrency: Number(process.env.CONCURRENCY ?? 100),
    token: process.env.DUETIME_TOKEN,
  },
  functions,
);
process.once("SIGTERM", () => worker.stop());
process.once("SIGINT", () => worker.stop());
await worker.run();
