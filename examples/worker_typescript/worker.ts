// A worker over gRPC: takes deliveries of a queue, runs a function for each, and sends the outcomes.
//
// docs/protocol.md explains the messages. This file shows all that a worker needs: credits, heartbeats, outcomes sent
// together, aborts, reconnection without losing deliveries, and draining at SIGTERM.

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

export interface Delivery {
  intentId: string;
  delivery: string; // an int64
  attempt: string;
  payload: Buffer;
  deadlineMs?: string;
  leaseMs: string;
  timeoutMs: string;
  task?: { name: string; queue: string };
  tags: Record<string, string>;
}

/** Runs one delivery. Its result is the result of the intent; an exception is a failed attempt. */
export type TaskFunction = (payload: unknown, delivery: Delivery, signal: AbortSignal) => unknown;

/** The positional arguments of a payload in the form of Python's tasks: [[1, 2], {"name": 3}]. */
export const argumentsOf = (payload: unknown): unknown[] => {
  const [args] = Array.isArray(payload) ? payload : [];
  return Array.isArray(args) ? args : [];
};

/** Thrown by a function: a retry would not help. The intent becomes a dead letter. */
export class Reject extends Error {}

/** Thrown by a function: run it later. This counts as no attempt. */
export class Snooze extends Error {
  constructor(readonly delayMs: number, reason = "") {
    super(reason);
  }
}

export interface Options {
  address: string; // host:port of gRPC
  protoFolder: string;
  queue: string;
  concurrency: number;
  token?: string;
}

interface Held {
  delivery: Delivery;
  abort: AbortController;
}
type Outcome = Record<string, unknown>;
interface ServerMessage {
  message: "welcome" | "deliveries" | "ackResults" | "aborts" | "drained" | "goingAway";
  welcome?: { consumer: string; heartbeatMs: string };
  deliveries?: { deliveries: Delivery[] };
  ackResults?: { number: string };
  aborts?: { aborts: { intentId: string; delivery: string }[] };
}
type Stream = grpc.ClientDuplexStream<unknown, ServerMessage>;

const ACK_MODE_MANUAL = 2;
const EARLIER_MAX = 8;
const key = (of: { intentId: string; delivery: string }) => `${of.intentId} ${of.delivery}`;

export class Worker {
  private readonly client: grpc.Client & { Deliveries(metadata: grpc.Metadata): Stream };
  private readonly held = new Map<string, Held>(); // running, or with an outcome that the server has not confirmed
  private readonly unsent = new Map<string, Outcome>();
  private readonly unconfirmed = new Map<number, Outcome[]>();
  private readonly consumer = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
  private earlier: string[] = []; // names of connections whose deliveries this worker may still have
  private stream?: Stream;
  private running = 0;
  private granted = 0; // credits that the server has not used
  private number = 0;
  private sending = false;
  private stopping = false;

  constructor(private readonly options: Options, private readonly functions: Record<string, TaskFunction>) {
    const proto = loadSync("duetime/v1/duetime.proto", {
      includeDirs: [options.protoFolder],
      longs: String,
      oneofs: true,
    });
    const loaded = grpc.loadPackageDefinition(proto) as unknown as {
      duetime: { v1: { Duetime: new (address: string, credentials: grpc.ChannelCredentials) => never } };
    };
    this.client = new loaded.duetime.v1.Duetime(options.address, grpc.credentials.createInsecure());
  }

  /** Run until `stop` is called and every delivery has its outcome. */
  async run(): Promise<void> {
    for (let pause = 100; !this.stopping || this.held.size; pause = Math.min(2 * pause, 5_000)) {
      if (await this.connection()) pause = 100;
      if (!this.stopping || this.held.size) await sleep(pause * (0.5 + Math.random()));
    }
    this.client.close();
  }

  /** Take no more deliveries, finish those that run, and end. */
  stop(): void {
    this.stopping = true;
    this.stream?.write({ drain: {} });
  }

  /** One connection, to its end. Returns whether the server answered. */
  private connection(): Promise<boolean> {
    const metadata = new grpc.Metadata();
    if (this.options.token) metadata.set("authorization", `Bearer ${this.options.token}`);
    const stream = this.client.Deliveries(metadata);
    let heartbeat: NodeJS.Timeout | undefined;
    let welcomed = false;
    // What was sent and not confirmed is sent again: an outcome counts only once.
    for (const outcomes of this.unconfirmed.values())
      for (const each of outcomes) this.unsent.set(key(each as never), each);
    this.unconfirmed.clear();
    this.granted = 0;
    stream.write({
      hello: {
        consumer: this.consumer,
        ackMode: ACK_MODE_MANUAL,
        credits: [this.credit()],
        earlier: this.earlier,
        holding: { held: [...this.held.values()].map(({ delivery: { intentId, delivery } }) => ({ intentId, delivery })) },
      },
    });
    return new Promise((resolve) => {
      stream.on("data", (message: ServerMessage) => {
        switch (message.message) {
          case "welcome":
            welcomed = true;
            this.stream = stream;
            this.earlier = [...this.earlier, message.welcome!.consumer].slice(-EARLIER_MAX);
            heartbeat = setInterval(() => stream.write({ heartbeat: {} }), Number(message.welcome!.heartbeatMs));
            if (this.stopping) stream.write({ drain: {} });
            this.send();
            break;
          case "deliveries":
            this.granted -= message.deliveries!.deliveries.length;
            for (const each of message.deliveries!.deliveries) void this.work(each);
            break;
          case "ackResults":
            for (const each of this.unconfirmed.get(Number(message.ackResults!.number)) ?? [])
              this.held.delete(key(each as never));
            this.unconfirmed.delete(Number(message.ackResults!.number));
            break;
          case "aborts": // nobody waits for their outcomes
            for (const each of message.aborts!.aborts) this.held.get(key(each))?.abort.abort();
            break;
          case "drained":
            stream.end();
            break;
          case "goingAway": // the stream ends soon; outcomes are still accepted
            break;
        }
      });
      stream.on("error", () => {}); // the status says the same
      stream.on("status", () => {
        clearInterval(heartbeat);
        if (this.stream === stream) this.stream = undefined;
        resolve(welcomed);
      });
    });
  }

  private async work(delivery: Delivery): Promise<void> {
    const abort = new AbortController();
    this.running += 1;
    this.held.set(key(delivery), { delivery, abort });
    const limit = setTimeout(() => abort.abort(new Error("timeout")), Number(delivery.timeoutMs));
    const outcome = await this.outcome(delivery, abort.signal);
    clearTimeout(limit);
    this.unsent.set(key(delivery), { intentId: delivery.intentId, delivery: delivery.delivery, ...outcome });
    this.running -= 1;
    this.send();
  }

  /** Credits for as many more deliveries as may run. */
  private credit(): { source: { queue: string }; credits: number } {
    const credits = this.stopping ? 0 : Math.max(0, this.options.concurrency - this.running - this.granted);
    this.granted += credits;
    return { source: { queue: this.options.queue }, credits };
  }

  private async outcome(delivery: Delivery, signal: AbortSignal): Promise<Outcome> {
    const name = delivery.task?.name ?? "";
    const run = this.functions[name];
    try {
      if (!run) throw new Reject(`this worker has no function ${name}`);
      const payload: unknown = delivery.payload.length ? JSON.parse(delivery.payload.toString()) : undefined;
      const ended = new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
      const result = await Promise.race([run(payload, delivery, signal), ended]);
      return { done: result === undefined ? {} : { result: Buffer.from(JSON.stringify(result)) } };
    } catch (error) {
      const { name: kind, message } = error instanceof Error ? error : new Error(String(error));
      if (error instanceof Reject) return { rejected: { kind: "Reject", message } };
      if (error instanceof Snooze) return { snoozed: { delayMs: error.delayMs, reason: message } };
      return { failed: { kind, message } };
    }
  }

  /** Send all outcomes of this turn of the event loop in one message, with new credits. */
  private send(): void {
    if (this.sending || !this.stream) return;
    this.sending = true;
    setImmediate(() => {
      this.sending = false;
      const stream = this.stream;
      if (!stream || !this.unsent.size) return;
      const acks = [...this.unsent.values()];
      this.unsent.clear();
      this.unconfirmed.set(++this.number, acks);
      stream.write({ acks: { acks, credits: [this.credit()], number: this.number } });
    });
  }
}
