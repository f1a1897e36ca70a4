/**
 * Goal: what the README shows works as it stands there. Method: its example is run against the built package, with the
 * addresses of the shared servers.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { EXIT } from "../../recipes/cli/exit.js";
import { cli } from "../support/cli.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const README = readFileSync(`${ROOT}README.md`, "utf8");

describe("the README", () => {
  it("has an example that runs", async () => {
    const example = /```ts\n([\s\S]*?)```/.exec(README)?.[1] ?? "";
    const id = randomUUID();
    const script = example
      .replace("localhost:2181", inject("zookeeper"))
      .replace("redis://localhost:6379", inject("redis"))
      .replaceAll("nightly-report", `job-${id}`)
      .replace('key: "report"', `key: "key-${id}"`);
    // inside the package, so that it finds itself under its own name
    const file = `${ROOT}dist/readme-${id}.mjs`;
    writeFileSync(file, `const makeReport = async () => ({ made: true });\n${script}`);
    onTestFinished(() => rmSync(file));
    const { stdout } = await promisify(execFile)(process.execPath, [file]);
    expect(stdout).toBe("done, token 0\n");
    expect((await cli(["get", `key-${id}`])).stdout.toString()).toBe('{"made":true}');
  });

  it("has an example of the simulation that runs, and finds nothing wrong", async () => {
    const example = /```ts\n(import \{ JOB[\s\S]*?)```/.exec(README)?.[1] ?? "";
    const file = `${ROOT}dist/readme-${randomUUID()}.mjs`;
    writeFileSync(file, `${example}\nconsole.log(violations.length, history.length > 5);\n`);
    onTestFinished(() => rmSync(file));
    const { stdout } = await promisify(execFile)(process.execPath, [file]);
    expect(stdout).toBe("0 true\n");
  });

  it("has an example of metrics that runs, on a port of its own", async () => {
    const example = /```ts\n(import \{ metricsServer[\s\S]*?)```/.exec(README)?.[1] ?? "";
    const file = `${ROOT}dist/readme-${randomUUID()}.mjs`;
    const here = example.replace("9464", "0").replace("0.0.0.0", "127.0.0.1");
    const rest = "stop(); console.log(typeof tracedRun, server.port > 0); await server.close();";
    writeFileSync(file, `${here}\n${rest}\n`);
    onTestFinished(() => rmSync(file));
    const { stdout } = await promisify(execFile)(process.execPath, [file]);
    expect(stdout).toBe("function true\n");
  });

  it("has an example of the doctor that runs", async () => {
    const example = /```ts\n(import \{ diagnose[\s\S]*?)```/.exec(README)?.[1] ?? "";
    const file = `${ROOT}dist/readme-${randomUUID()}.mjs`;
    const here = example.replace("redis://localhost:6379", inject("redis"));
    writeFileSync(file, `${here}\nconsole.log(findings[0].check);\n`);
    onTestFinished(() => rmSync(file));
    const { stdout } = await promisify(execFile)(process.execPath, [file]);
    expect(stdout).toBe("reachable\n");
  });

  it("lists every exit code that the command line has", () => {
    const listed = [...README.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
    expect(listed).toEqual(Object.values(EXIT));
  });
});
