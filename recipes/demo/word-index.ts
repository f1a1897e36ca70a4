/**
 * The demo's work: an index of word counts over the text files of a folder.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

export interface WordIndex {
  files: number;
  words: number;
  distinct: number;
  /** The most frequent words of four letters or more, with their counts. */
  top: [word: string, count: number][];
}

const SKIPPED = new Set(["node_modules", ".git", "dist", "coverage"]);

/** Files above this size are not what people write by hand. */
const FILE_BYTES_MAX = 4 * 1_024 ** 2;

const TOP_WORDS = 5;

/**
 * Indexes every text file below a folder; a file with a NUL byte is taken for binary and left out.
 *
 * @param onFile told after each file, with the number of files so far
 */
export async function indexWords(
  folder: string,
  onFile: (files: number) => void,
): Promise<WordIndex> {
  const counts = new Map<string, number>();
  let files = 0;
  let words = 0;
  for await (const path of filesBelow(folder)) {
    const content = await readFile(path);
    if (content.length > FILE_BYTES_MAX || content.includes(0)) continue;
    for (const [word] of content.toString("utf8").matchAll(/\p{L}{4,}/gu)) {
      const key = word.toLowerCase();
      counts.set(key, (counts.get(key) ?? 0) + 1);
      words += 1;
    }
    files += 1;
    onFile(files);
  }
  const top = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return { files, words, distinct: counts.size, top: top.slice(0, TOP_WORDS) };
}

async function* filesBelow(folder: string): AsyncGenerator<string> {
  const entries = await readdir(folder, { withFileTypes: true });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && !SKIPPED.has(entry.name)) yield* filesBelow(path);
    else if (entry.isFile()) yield path;
  }
}
