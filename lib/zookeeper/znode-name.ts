/**
 * Names of contenders: ours, and those of other clients that people run on the same path.
 * Pure. A name is recognised by its known prefix, and its number is what follows that prefix.
 */

/** A contender's name, read. */
export interface ContenderName {
  /** The znode's name, without its path. */
  name: string;
  /** Which client writes names of this form. */
  form: string;
  /** What the server appended: a signed 32-bit number. Order by this, never by the text. */
  sequence: number;
}

const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const HEX32 = "[0-9a-f]{32}";

/**
 * The forms that are understood. The dash before the digits belongs to the prefix where the prefix ends in one; only a
 * second dash is a sign, so `-lock-2147483645` is positive and `-lock--2147483648` is negative.
 */
const FORMS: readonly { form: string; prefix: string }[] = [
  { form: "curator", prefix: `_c_${UUID}-lock-` },
  { form: "go-zookeeper", prefix: `_c_${HEX32}-lock-` },
  { form: "kazoo", prefix: `${HEX32}__lock__` },
  { form: "zookeeper-recipe", prefix: `(?:${UUID}|${HEX32})-lock-` },
  { form: "zookeeper-java", prefix: "x--?[0-9]{1,19}-" },
  { form: "zookeeper-c", prefix: "x-[0-9a-f]{16}-" },
];

const PATTERNS = FORMS.map(({ form, prefix }) => ({
  form,
  pattern: new RegExp(`^${prefix}(-?[0-9]{10})$`),
}));

/** The beginning of our own contenders' names: Curator's form, which most other clients understand. */
export function contenderPrefix(uuid: string): string {
  return `_c_${uuid}-lock-`;
}

/** The contender that a znode's name stands for, or undefined when it is nobody's contender. */
export function parseContenderName(name: string): ContenderName | undefined {
  for (const { form, pattern } of PATTERNS) {
    const digits = pattern.exec(name)?.[1];
    if (digits === undefined) continue;
    const sequence = Number(digits);
    return isInt32(sequence) ? { name, form, sequence } : undefined;
  }
  return undefined;
}

function isInt32(value: number): boolean {
  return value === (value | 0);
}
