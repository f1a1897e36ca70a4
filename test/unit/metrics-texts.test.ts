/**
 * Goal: the README and the dashboard speak of the metrics that there are, of all of them, and of no others.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { instruments, prometheusName } from "../../recipes/metrics/instruments.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

interface Panel {
  id: number;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets: { expr: string; legendFormat: string }[];
}

const dashboard = JSON.parse(readFileSync(`${ROOT}docker/grafana/fencekeeper.json`, "utf8")) as {
  panels: Panel[];
};
const targets = dashboard.panels.flatMap((panel) => panel.targets);

/** Labels of each series that Prometheus has of a metric. */
const series = new Map<string, readonly string[]>();
for (const [name, { kind, labels }] of instruments) {
  const full = prometheusName(name);
  if (kind === "counter") series.set(full, labels);
  else {
    series.set(`${full}_bucket`, [...labels, "le"]);
    series.set(`${full}_sum`, labels);
    series.set(`${full}_count`, labels);
  }
}

const metricsIn = (text: string) => text.match(/fencekeeper_\w+/g) ?? [];

describe("the dashboard", () => {
  it("asks for metrics that exist, by labels that they have", () => {
    for (const { expr, legendFormat } of targets) {
      const names = metricsIn(expr);
      expect(names.length, expr).toBeGreaterThan(0);
      const known = names.flatMap((name) => series.get(name) ?? []);
      for (const name of names) expect([...series.keys()], expr).toContain(name);
      const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = ""]) =>
        list.split(", "),
      );
      const selected = [...expr.matchAll(/(\w+)(?:=~|!=|=)"/g)].map(([, label = ""]) => label);
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label);
      expect([...known, "job"], expr).toEqual(expect.arrayContaining([...grouped, ...selected]));
      expect(grouped, legendFormat).toEqual(expect.arrayContaining(shown));
    }
  });

  it("shows every metric", () => {
    const shown = targets.flatMap(({ expr }) => metricsIn(expr));
    for (const [name] of instruments) {
      expect(
        shown.filter((each) => each.startsWith(prometheusName(name))),
        name,
      ).not.toEqual([]);
    }
  });

  it("has panels of their own ids and places", () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ gridPos }) => `${gridPos.x},${gridPos.y}`)).size).toBe(
      panels.length,
    );
  });
});

describe("the README's table of metrics", () => {
  it("lists every metric with its labels", () => {
    const rows = [
      ...readFileSync(`${ROOT}README.md`, "utf8").matchAll(
        /^\| `(fencekeeper_\w+)` \| ([^|]*) \|/gm,
      ),
    ].map(([, name, labels = ""]) => [name, [...labels.matchAll(/`(\w+)`/g)].map(([, l]) => l)]);
    expect(rows).toEqual(instruments.map(([name, { labels }]) => [prometheusName(name), labels]));
  });
});
