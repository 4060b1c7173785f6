/** Names of checkpoints, as engines serve them and as users may write them in every command. */
import { branchOfStep } from './lineage.ts';
import {
  BRANCH_POLICY_NAME,
  MAIN_POLICY,
  NAME_PATTERN,
  POLICY_NAME,
  POLICY_NAME_PATTERN,
  POLICY_SUFFIX,
  ROLE_NAME_PATTERN,
} from './wire-constants.ts';
import type { Branch, Checkpoint } from './contract.ts';

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
