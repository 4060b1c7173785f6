/**
 * Neutral values of the contract's options. Reading fills them in, so every option has a value in memory; hashes and stored
 * files omit them, so a new option with its neutral value as default changes no recorded bytes. Workflows use them
 * without zod. Values that a later version may choose otherwise are recorded: `run-defaults.ts`.
 */
export const SCHEMA_DEFAULTS = {
  learningRateRestarts: 0,
  maxStaleness: 0,
  groupsAhead: 0,
  maxRewardStaleness: 4,
  gpuUsdPerHour: null,
  maxCostUsd: null,
  maxHours: null,
  keepAll: false,
  train: {
    lora: { dropout: 0, rslora: false, dora: false },
    optimizer: { kind: 'adamw' },
    packing: 'tree',
    passes: 1,
    miniBatches: 1,
    reduction: 'token',
    correction: 'none',
    klCoefficient: 0,
    klAs: 'loss',
    klEstimator: 'k3-ratio',
    entropyCoefficient: 0,
    baseline: 'group',
    overlongBuffer: 0,
    overlongPenalty: 1,
  },
} as const;

type Defaults = Readonly<Record<string, unknown>>;

/** Fills in defaults as reading with the schema does, for values that no schema has read. */
export function fillDefaults<T extends object>(value: T, defaults: Defaults): T {
  const members = new Map<string, unknown>(Object.entries(value));
  for (const [name, usual] of Object.entries(defaults)) {
    const member = members.get(name);
    if (isObject(usual) && member !== null) members.set(name, fillDefaults(member ?? {}, usual));
    else if (member === undefined) members.set(name, usual);
  }
  return Object.fromEntries(members) as T;
}

/** Form of a value that is hashed and stored. */
export function omitDefaults<T extends object>(value: T, defaults: Defaults): Partial<T> {
  const members = Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
    const usual = defaults[name];
    if (isObject(usual) && isObject(member)) return [[name, omitDefaults(member, usual)]];
    return member === usual ? [] : [[name, member]];
  });
  return Object.fromEntries(members) as Partial<T>;
}

function isObject(value: unknown): value is Defaults {
  return typeof value === 'object' && value !== null;
}
