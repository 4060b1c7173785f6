/** Curves of real runs, as far as warnings and advisories read them: `save.ts` makes a file of each. */
import { readFileSync } from 'node:fs';
import type { EvalResult, RunState, StepSummary } from '../../core/contract/contract.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { newRunState } from '../../core/plan/run-summary.ts';

interface CurveFile {
  /** What the run was started with. */
  readonly command: string;
  /** A column for each number of a step, such as `train.entropy`; null where a step has none. */
  readonly steps: Readonly<Record<string, readonly (number | null)[]>>;
  readonly evals: readonly EvalResult[];
}

const FIELDS = /^(step|reward|groups|attempts|failedAttempts|truncatedAttempts|sampledTokens|examples)$/;
const PARTS = ['metrics', 'unused', 'train'] as const;
const OF_TRAIN =
  /^(entropy|staleness|correctedShare|truncated|attempts|packedAsRows|(mostL|l)ogprobK3|pass\d+RatioK3)$/;

/** The text of a file; four digits of each number. */
export function writeCurve(command: string, steps: readonly StepSummary[], evals: readonly EvalResult[]): string {
  const rows = steps.map(flatten);
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const columns = names.map((name) => [name, rows.map((row) => rounded(row[name] ?? null))] as const);
  const lines = columns.map(([name, column]) => `    ${JSON.stringify(name)}: ${JSON.stringify(column)}`);
  const results = evals.map(
    (each) =>
      `    ${JSON.stringify(each, (name, value: unknown) => (name === 'rolloutsSha256' ? undefined : rounded(value)))}`,
  );
  const list = (items: readonly string[]) => `\n${items.join(',\n')}\n  `;
  return `{\n  "command": ${JSON.stringify(command)},\n  "steps": {${list(lines)}},\n  "evals": [${list(results)}]\n}\n`;
}

function rounded<T>(value: T): T | number {
  return typeof value === 'number' ? Number(value.toPrecision(4)) : value;
}

function flatten(step: StepSummary): Record<string, number | null> {
  const own = Object.entries(step).filter(([name]) => FIELDS.test(name));
  const parts = PARTS.flatMap((part) =>
    Object.entries(step[part])
      .filter(([name]) => part !== 'train' || OF_TRAIN.test(name))
      .map(([name, value]) => [`${part}.${name}`, value] as const),
  );
  return Object.fromEntries([...own, ...parts]) as Record<string, number | null>;
}

export interface SavedRun {
  readonly state: RunState;
  readonly steps: readonly StepSummary[];
}

export interface SavedCurve {
  readonly steps: readonly number[];
  /** The steps after which held-out scenarios were played, and the last one. */
  readonly evaluated: readonly number[];
  readonly after: (step: number) => SavedRun;
}

export function readCurve(file: string): SavedCurve {
  const { steps: columns, evals } = JSON.parse(readFileSync(file, 'utf8')) as CurveFile;
  const steps = columns['step']!.map((_, index) => readStep(columns, index));
  const config = defaultRunConfig({ run: 'saved', agent: 'agent', baseModel: 'pocket' });
  return {
    steps: steps.map(({ step }) => step),
    evaluated: [...evals.map(({ step }) => step).filter((step) => step > 0), steps.at(-1)!.step],
    after: (last) => {
      const known = evals.filter(({ step }) => step <= last);
      const [first, newest] = [
        known.find(({ step }) => step === 0) ?? null,
        known.findLast(({ step }) => step > 0) ?? null,
      ];
      const state = { ...newRunState(config), step: last, evals: known, evalBefore: first, evalAfter: newest };
      return { state, steps: steps.filter(({ step }) => step <= last) };
    },
  };
}

function readStep(columns: CurveFile['steps'], index: number): StepSummary {
  const row = Object.entries(columns).map(([name, column]) => [name, column[index] ?? null] as const);
  const partOf = (part: string) => {
    const own = row.filter(([name, value]) => name.startsWith(`${part}.`) && value !== null);
    return Object.fromEntries(own.map(([name, value]) => [name.slice(part.length + 1), value]));
  };
  const fields = row.filter(([name, value]) => FIELDS.test(name) && (value !== null || name === 'reward'));
  const train = refusing(partOf('train'), (name) => OF_TRAIN.test(name));
  const step = { ...Object.fromEntries(fields), metrics: partOf('metrics'), unused: partOf('unused'), train };
  const isSaved = (name: string) => FIELDS.test(name) || PARTS.some((part) => part === name);
  return refusing(step as unknown as StepSummary, isSaved);
}

/** A number that no file has would be missed in silence where a warning comes to read it. */
function refusing<T extends object>(values: T, isSaved: (name: string) => boolean): T {
  return new Proxy(values, {
    get(target, name) {
      if (typeof name === 'string' && !isSaved(name))
        throw new Error(
          `saved curves must have what warnings read, they lack ${name}; add it to test/curves/curve.ts, and save them anew`,
        );
      return Reflect.get(target, name) as unknown;
    },
  });
}
