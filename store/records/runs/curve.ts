/**
 * A run's curve for display: a line for each step, in files of a hundred by branch, `steps/<branch>.<number>.jsonl`.
 * The cost of adding a step does not grow with the run; nothing is appended, because S3 can't append.
 */
import type { StepSummary } from '../../../core/contract/contract.ts';
import { parseStored, StepSummaryLineSchema } from '../file-schemas.ts';
import { decodeJsonLines, encodeJsonLines } from '../../bytes/json.ts';
import { curveFileKey, curvePrefix } from '../../layout.ts';
import type { Store } from '../../store.ts';

/** The last step of a run as its state tells it. */
export interface CurveEnd {
  branch: number;
  step: number;
}

const STEPS_PER_FILE = 100;
const FILE_NAME = /\/(\d+)\.(\d+)\.jsonl$/;

/**
 * The newest word on each step. What a file holds beyond the end is of an earlier life of the run, and goes. `checkFresh`
 * throws if this process stood still meanwhile: what it has read is old by then, and would take others' steps away.
 */
export async function addToCurve(
  store: Store,
  run: string,
  { branch, step: last }: CurveEnd,
  summaries: readonly StepSummary[],
  checkFresh: () => void,
): Promise<void> {
  for (const number of new Set(summaries.map(fileNumber))) {
    const key = curveFileKey(run, branch, number);
    const written = (await readCurveFile(store, key)).filter(({ step }) => step <= last);
    const added = summaries.filter((summary) => fileNumber(summary) === number);
    const steps = new Map([...written, ...added].map((summary) => [summary.step, summary]));
    checkFresh();
    await store.replace(key, encodeJsonLines([...steps.values()].toSorted((a, b) => a.step - b.step)));
  }
}

/** Each step once, in order: the first step of a branch ends the part of the branch before it. */
export async function readCurve(store: Store, run: string, end: CurveEnd | null): Promise<StepSummary[]> {
  const keys: string[] = [];
  for await (const key of store.list(curvePrefix(run))) keys.push(key);
  const parts = await Promise.all(inCurveOrder(keys).map((key) => readCurveFile(store, key)));
  const curve = parts.reduce((before, part) => {
    const first = part[0]?.step ?? Infinity;
    return [...before.filter(({ step }) => step < first), ...part];
  }, []);
  return end === null ? curve : curve.filter(({ step }) => step <= end.step);
}

/** Lines of one branch, also beyond the step at which a rollback left it. */
export async function readBranchCurve(store: Store, run: string, branch: number): Promise<StepSummary[]> {
  const keys: string[] = [];
  for await (const key of store.list(curvePrefix(run)))
    if (key.startsWith(`${curvePrefix(run)}/${branch}.`)) keys.push(key);
  return (await Promise.all(inCurveOrder(keys).map((key) => readCurveFile(store, key)))).flat();
}

/** The curve of a run that has gone on, on the same branch, since `known` was read. Costs what was added. */
export async function extendCurve(
  store: Store,
  run: string,
  known: readonly StepSummary[],
  { branch, step: last }: CurveEnd,
): Promise<StepSummary[]> {
  const lastKnown = known.at(-1)?.step ?? 0;
  const added: StepSummary[] = [];
  for (let number = Math.floor(lastKnown / STEPS_PER_FILE); number * STEPS_PER_FILE < last; number++)
    added.push(...(await readCurveFile(store, curveFileKey(run, branch, number))));
  return [...known, ...added.filter(({ step }) => step > lastKnown)].filter(({ step }) => step <= last);
}

/** The line of one step, wherever its branch has gone since; null if it is not told. */
export async function readStepLine(store: Store, run: string, { branch, step }: CurveEnd): Promise<StepSummary | null> {
  const lines = await readCurveFile(store, curveFileKey(run, branch, Math.floor((step - 1) / STEPS_PER_FILE)));
  return lines.find((line) => line.step === step) ?? null;
}

/** Keys of a curve's files, by branch and step; other keys are left out. */
export function inCurveOrder(keys: readonly string[]): string[] {
  const files = keys.flatMap((key) => {
    const [, branch, number] = FILE_NAME.exec(key) ?? [];
    return branch === undefined ? [] : [{ branch: Number(branch), number: Number(number), key }];
  });
  return files.toSorted((a, b) => a.branch - b.branch || a.number - b.number).map(({ key }) => key);
}

function fileNumber({ step }: StepSummary): number {
  return Math.floor((step - 1) / STEPS_PER_FILE);
}

export async function readCurveFile(store: Store, key: string): Promise<StepSummary[]> {
  const bytes = await store.read(key);
  return bytes === null ? [] : decodeJsonLines(bytes, key).map((line) => parseStored(StepSummaryLineSchema, line, key));
}
