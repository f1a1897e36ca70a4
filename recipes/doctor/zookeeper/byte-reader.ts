/**
 * Reads numbers and texts out of a reply of ZooKeeper, in the order in which they are there.
 */
export class ByteReader {
  #at = 0;

  constructor(readonly bytes: Buffer) {}

  int(): number {
    this.#at += 4;
    return this.bytes.readInt32BE(this.#at - 4);
  }

  long(): bigint {
    this.#at += 8;
    return this.bytes.readBigInt64BE(this.#at - 8);
  }

  /** A length of -1 stands for none. */
  text(): string {
    const length = Math.max(0, this.int());
    this.#at += length;
    return this.bytes.toString("utf8", this.#at - length, this.#at);
  }

  vector<T>(item: (reader: this) => T): T[] {
    return Array.from({ length: Math.max(0, this.int()) }, () => item(this));
  }
}
