/**
 * The slot of a key in a Redis Cluster, and for each slot a short hash tag that leads there. Pure.
 * https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
 */

export const SLOTS = 16_384;

/** CRC-16/XMODEM. */
const POLYNOMIAL = 0x1021;

const TABLE = Uint16Array.from({ length: 256 }, (_, index) => {
  let crc = index << 8;
  for (let bit = 0; bit < 8; bit += 1) {
    crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
  }
  return crc;
});

/** What Redis Cluster hashes instead of the whole key: the text from the first `{` to the next `}`, if not empty. */
export function hashTagOf(key: string): string | undefined {
  const open = key.indexOf("{");
  if (open < 0) return undefined;
  const close = key.indexOf("}", open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : undefined;
}

/** 0 to 16383. */
export function slotOf(key: string): number {
  return crcOf(Buffer.from(hashTagOf(key) ?? key)) % SLOTS;
}

/** A hash tag of four letters, always the same one, whose slot is the given one. */
export function tagOfSlot(slot: number): string {
  tags ??= allTags();
  return tags[slot] ?? "";
}

let tags: string[] | undefined;

/** Eighteen letters in four places reach every slot; sixteen miss two of them. */
const LETTERS = new TextEncoder().encode("abcdefghijklmnopqr");

function allTags(): string[] {
  const found = new Array<string>(SLOTS);
  const bytes = Buffer.alloc(4);
  const extend = (place: number, crc: number) => {
    for (const byte of LETTERS) {
      bytes[place] = byte;
      const next = crcAfter(crc, byte);
      if (place < 3) extend(place + 1, next);
      else if (found[next % SLOTS] === undefined) found[next % SLOTS] = bytes.toString("latin1");
    }
  };
  extend(0, 0);
  return found;
}

function crcOf(bytes: Uint8Array): number {
  return bytes.reduce(crcAfter, 0);
}

function crcAfter(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] ?? 0);
}
