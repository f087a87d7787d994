// The functions of this worker, by the name of the task.
import { argumentsOf, Reject, type TaskFunction } from "./worker.js";

export const functions: Record<string, TaskFunction> = {
  greet: (payload) => `hello ${String(argumentsOf(payload)[0])}`,
  add: (payload) => {
    const [a, b] = argumentsOf(payload);
    if (typeof a !== "number" || typeof b !== "number") throw new Reject("add takes two numbers");
    return a + b;
  },
};
