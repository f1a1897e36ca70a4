/**
 * The entry point `fencekeeper/testing`: the simulation that fencekeeper itself is tested with, for the code of users.
 */
export { FAULT_NAMES, type FaultName } from "./faults.js";
export { JOB } from "./job.js";
export { Random } from "./random.js";
export type { AcceptedWrite } from "./script-call.js";
export { type SimulationOptions, type SimulationResult, simulate } from "./simulate.js";
export { SimulatedStore } from "./simulated-store.js";
export { standardWork } from "./standard-work.js";
export type { Worker } from "./worker.js";
export type { Work } from "./world.js";
