/**
 * Goal: the rules of the house hold, because a test fails when they do not. Method: the sources are read as text.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

function filesBelow(folder: string, ending: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name))
    .sort();
}

const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
const shipped = [...filesBelow("lib", ".ts"), ...filesBelow("recipes", ".ts")];
const tests = filesBelow("test", ".ts");
const lua = filesBelow("lib", ".lua");

/** Modules that a file imports: packages by name, our own files by their path from the root. */
function importsOf(file: string): string[] {
  const found = read(file).matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g);
  return [...found].map(([, name = ""]) =>
    name.startsWith(".") ? normalize(join(dirname(file), name)).replace(/\.js$/, ".ts") : name,
  );
}

const importers = (name: string) => shipped.filter((file) => importsOf(file).includes(name));

describe("the direction of imports", () => {
  it("lets lib import no recipe, and nothing import the command line", () => {
    for (const file of shipped) {
      for (const imported of importsOf(file)) {
        const edge = `${file} imports ${imported}`;
        if (file.startsWith("lib/")) expect(imported, edge).not.toMatch(/^recipes\//);
        if (!file.startsWith("recipes/cli/")) expect(imported, edge).not.toMatch(/^recipes\/cli\//);
        expect(imported, edge).not.toMatch(/^test\//);
      }
    }
  });

  it("lets the pure modules import nothing but errors and one another", () => {
    const pure = [
      "lib/redis/slot.ts",
      "lib/errors.ts",
      "lib/token.ts",
      "lib/job-id.ts",
      "lib/redis/fence-key.ts",
      "lib/zookeeper/access.ts",
      "lib/zookeeper/connect-string.ts",
      "lib/zookeeper/paths.ts",
      "lib/zookeeper/queue-order.ts",
      "lib/zookeeper/request-error.ts",
      "lib/zookeeper/znode-name.ts",
    ];
    for (const file of pure) {
      for (const imported of importsOf(file)) {
        expect(pure, `${file} imports ${imported}`).toContain(imported);
      }
    }
  });

  it("has one file that imports `zookeeper` and one folder that imports `ioredis`", () => {
    expect(importers("zookeeper")).toEqual(["lib/zookeeper/package-client.ts"]);
    const apart = importers("ioredis").filter((file) => !file.startsWith("lib/redis/client/"));
    expect(apart).toEqual([]);
  });

  it("keeps OpenTelemetry, which need not be installed, out of everything but its own entry point", () => {
    const files = importers("@opentelemetry/api");
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) expect(file).toMatch(/^recipes\/opentelemetry\//);
    const reachers = shipped.filter((file) =>
      importsOf(file).some((name) => name.startsWith("recipes/opentelemetry/")),
    );
    for (const file of reachers) expect(file).toMatch(/^recipes\/opentelemetry\//);
  });

  it("has no circle", () => {
    const done = new Set<string>();
    const visit = (file: string, way: string[]): void => {
      expect(way, `a circle: ${[...way, file].join(" > ")}`).not.toContain(file);
      if (done.has(file)) return;
      for (const next of importsOf(file)) if (shipped.includes(next)) visit(next, [...way, file]);
      done.add(file);
    };
    for (const file of shipped) visit(file, []);
  });

  it("reaches every shipped file from an entry point", () => {
    const entries = [
      "recipes/index.ts",
      "recipes/cli/main.ts",
      "recipes/demo/worker.ts",
      "recipes/metrics/index.ts",
      "recipes/opentelemetry/index.ts",
      "recipes/testing/index.ts",
      "recipes/testing/main.ts",
      "recipes/testing/seeds-thread.ts",
      "lib/zookeeper/thread/session-thread.ts",
      "lib/zookeeper/tls/tunnel-thread.ts",
    ];
    const reached = new Set<string>();
    const visit = (file: string): void => {
      if (reached.has(file)) return;
      reached.add(file);
      for (const next of importsOf(file)) if (shipped.includes(next)) visit(next);
    };
    for (const entry of entries) visit(entry);
    expect(shipped.filter((file) => !reached.has(file))).toEqual([]);
  });

  it("reaches every file of test support from a test or the set-up", () => {
    const support = tests.filter(
      (file) => file.startsWith("test/support/") && !file.endsWith(".d.ts"),
    );
    const used = new Set([...tests, "vitest.config.ts"].flatMap(importsOf));
    const setUp = read("vitest.config.ts");
    expect(support.filter((file) => !used.has(file) && !setUp.includes(file))).toEqual([]);
  });
});

describe("the text of the sources", () => {
  it("keeps lines within 120 characters and shipped files within 230 lines", () => {
    for (const file of [...shipped, ...tests, ...lua]) {
      const lines = read(file).split("\n");
      lines.forEach((line, index) => {
        expect(line.length, `${file}:${index + 1} is too long`).toBeLessThanOrEqual(120);
      });
      if (shipped.includes(file)) {
        expect(lines.length, `${file} is too long: split it`).toBeLessThanOrEqual(230);
      }
    }
  });

  it("begins each shipped file with a statement of what it is for", () => {
    for (const file of shipped) {
      const text = read(file).replace(/^#!.*\n/, "");
      expect(text.startsWith("/**"), `${file} does not say what it is for`).toBe(true);
    }
  });

  it("uses one word for one thing, and leaves nothing for later", () => {
    for (const file of [...shipped, ...lua]) {
      expect(read(file), file).not.toMatch(/\b(?:lease|mutex|TODO|FIXME|XXX|HACK)\b/i);
    }
  });

  it("explains every suppressed rule and every swallowed error on its line", () => {
    for (const file of [...shipped, ...tests]) {
      read(file)
        .split("\n")
        .forEach((line, index) => {
          const place = `${file}:${index + 1}`;
          if (/\.catch\(\(\) => (?:\{\}|undefined)\)/.test(line))
            expect(line, place).toMatch(/\/\/ \S/);
          if (/biome-ignore/.test(line)) expect(line, place).toMatch(/biome-ignore \S+: \S/);
          expect(line, place).not.toMatch(/@ts-(?:ignore|nocheck)/);
        });
    }
  });
});

describe("the tests", () => {
  it("have titles that are used once", () => {
    const titles = tests.flatMap((file) =>
      [
        ...read(file).matchAll(/^\s*it(?:\.\w+(?:<[^(]*>)?(?:\([^)]*\))?)*\(\s*(["`])(.+?)\1/gms),
      ].map(([, , title = ""]) => title),
    );
    const twice = titles.filter((title, index) => titles.indexOf(title) !== index);
    expect(twice).toEqual([]);
    expect(titles.length).toBeGreaterThan(50);
  });

  it("neither sleep nor leave a test out", () => {
    for (const file of tests) {
      const text = read(file);
      expect(text, `${file} sleeps`).not.toMatch(
        /setTimeout\((?:resolve|done|r)\b|timers\/promises/,
      );
      expect(text, `${file} leaves tests out`).not.toMatch(
        /\b(?:it|describe)\.(?:only|todo|skip)\(/,
      );
    }
  });
});
