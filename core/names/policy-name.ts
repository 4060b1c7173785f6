/** Names of checkpoints, as engines serve them and as users may write them in every command. */
import { badConfig, type TemperError } from '../contract/failures.ts';
import { branchOfStep } from './lineage.ts';
import {
  BRANCH_POLICY_NAME,
  MAIN_POLICY,
  NAME_PATTERN,
  POLICY_NAME,
  POLICY_NAME_PATTERN,
  POLICY_SUFFIX,
  ROLE_NAME_PATTERN,
} from '../contract/wire-constants.ts';
import type { Branch, Checkpoint } from '../contract/contract.ts';

/** Names in a template: `{run}` and `{step}` of `{run}@{step}`. */
type NamesIn<T extends string> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;

/** A template of `wire-constants.ts` with its values, as Python's `str.format` fills it. */
export function fillTemplate<T extends string>(
  template: T,
  values: Readonly<Record<NamesIn<T>, string | number>>,
): string {
  return template.replace(/\{(\w+)\}/g, (_, name: NamesIn<T>) => String(values[name]));
}

export type Policy = Pick<Checkpoint, 'run' | 'branch' | 'step'> & {
  /** Which one of the checkpoint's; absent: `main`. */
  policy?: string;
};

/** A checkpoint as a person names it: `RUN[~BRANCH][@STEP]`. */
export interface CheckpointName {
  readonly run: string;
  /** Branch in the name; null if absent: the branches of the run's lineage. */
  readonly branch: number | null;
  readonly step: number | 'latest' | 'best' | 'production';
}

/** One policy of a checkpoint, as a person names it: `RUN[~BRANCH][@STEP][:POLICY]`. */
export interface TrainedName extends CheckpointName {
  /** Absent: `main`. */
  readonly policy?: string;
}

/** Without its ends. */
const RUN = NAME_PATTERN.source.slice(1, -1);
const NUMBER = '0|[1-9][0-9]*';
const CHECKPOINT = `(${RUN})(?:~(${NUMBER}))?(?:@(${NUMBER}|latest|best|production))?`;
const CHECKPOINT_NAME = new RegExp(`^${CHECKPOINT}$`);
const TRAINED_NAME = new RegExp(`^${CHECKPOINT}(?::(${ROLE_NAME_PATTERN.source.slice(1, -1)}))?$`);

const isWord = (step: string): step is 'latest' | 'best' | 'production' => !/^\d/.test(step);

/** `run@step`, on a branch b > 0 `run~b@step`: the model's name under which engines serve a checkpoint. */
export function policyName({ run, branch, step, policy = MAIN_POLICY }: Policy): string {
  const name = fillTemplate(branch === 0 ? POLICY_NAME : BRANCH_POLICY_NAME, { run, branch, step });
  return policy === MAIN_POLICY ? name : name + fillTemplate(POLICY_SUFFIX, { policy });
}

/** As a person names it: without a branch it means the line that the run follows, so a branch that was left is written, 0 too. */
export function checkpointName(place: Policy, lineage: readonly Branch[]): string {
  const { run, branch, step } = place;
  if (branch === branchOfStep(lineage, step)) return policyName(place);
  return fillTemplate(BRANCH_POLICY_NAME, { run, branch, step });
}

/** Null if the name is not a policy's: a base model answers to its own name. */
export function parsePolicyName(name: string): Policy | null {
  const match = POLICY_NAME_PATTERN.exec(name);
  if (match === null) return null;
  const [, run = '', branch, step, policy] = match;
  return { run, branch: Number(branch ?? 0), step: Number(step), ...beside(policy) };
}

const beside = (policy: string | undefined) => (policy === undefined || policy === MAIN_POLICY ? {} : { policy });

/** Hash of the adapter of one policy; undefined if the checkpoint has no such policy. */
export function adapterOf({ adapterSha256, adapters }: Checkpoint, policy: string = MAIN_POLICY): string | undefined {
  if (policy === MAIN_POLICY) return adapterSha256;
  return adapters !== undefined && Object.hasOwn(adapters, policy) ? adapters[policy] : undefined;
}

/** Null if the text names no checkpoint. A run alone is its latest one. */
export function parseCheckpointName(text: string): CheckpointName | null {
  return CHECKPOINT_NAME.test(text) ? parseTrainedName(text) : null;
}

/** Null if the text names no policy of a checkpoint. */
export function parseTrainedName(text: string): TrainedName | null {
  const match = TRAINED_NAME.exec(text);
  if (match === null) return null;
  const [, run = '', branch, step = 'latest', policy] = match;
  return {
    run,
    branch: branch === undefined ? null : Number(branch),
    step: isWord(step) ? step : Number(step),
    ...beside(policy),
  };
}

/** A checkpoint that a person names; throws for another text. */
export function requireCheckpointName(text: string): CheckpointName {
  const name = parseCheckpointName(text);
  if (name !== null) return name;
  if (parseTrainedName(text) !== null)
    throw badConfig(
      `the checkpoint must be named without one of its policies here, got ${JSON.stringify(text)}; pass ${text.slice(0, text.indexOf(':'))}`,
    );
  throw noCheckpoint(text);
}

/** For what is done to a run with all its steps. */
export function requireWholeRun(action: string, text: string): void {
  const { run } = requireCheckpointName(text);
  if (text !== run) throw badConfig(`${action} works on a whole run, got ${JSON.stringify(text)}; pass ${run}`);
}

/** One policy of a checkpoint. */
export function requireTrainedName(text: string): TrainedName {
  const name = parseTrainedName(text);
  if (name !== null) return name;
  throw noCheckpoint(text);
}

function noCheckpoint(text: string): TemperError {
  return badConfig(
    `the checkpoint must be RUN, RUN@STEP, RUN@latest, RUN@best, RUN@production or RUN~BRANCH@STEP, got ${JSON.stringify(text)}; see temper runs`,
  );
}
