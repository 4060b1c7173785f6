/** Checks what a step took from its window (`--groups-ahead`): groups of several steps, which its verdict names. */
import type { GroupResult, OpenGroup, RunConfig } from '../../../core/contract.ts';
import { canonicalJson } from '../../../core/hashes.ts';
import { planFirstGroups, type RunPosition } from '../../../core/plan-step.ts';
import { hasWindow, isFresh, planChoice, withPlayed, withResults } from '../../../core/plan-window.ts';
import { isSupervisedStep } from '../../../core/supervised.ts';
import { placeOfGroup, rolloutsKey, stepVerdictKey } from '../../layout.ts';
import {
  dealtAt,
  readStepVerdict,
  toGroupVerdict,
  toStepVerdict,
  type DecidedGroup,
  type StepVerdict,
} from '../step-verdict.ts';
import { compareInputs, plannedConfig, type VerifyContext } from './context.ts';
import type { PlayedStep } from './groups.ts';

/** Groups that leave the window of a step; `position` is null if it is not known. */
export interface Taken {
  position: RunPosition | null;
  chosen: (GroupResult | null)[];
}

const UNKNOWN: Taken = { position: null, chosen: [null] };

/** Null for a step without a window. `groups`: those that the step dealt. */
export async function verifyWindow(
  context: VerifyContext,
  played: PlayedStep,
  groups: readonly (DecidedGroup | null)[],
): Promise<Taken | null> {
  const { findings } = context;
  const { step } = played;
  const config = findWindow(context, step);
  if (config === null) return null;
  const key = stepVerdictKey(step);
  const verdict = await verifyVerdict(context, played);
  const window = findings.isBroken(key) ? null : openWindow(context, played, config, groups);
  if (window === null) return UNKNOWN;
  if (verdict === null) return { position: window, chosen: [] };
  compareInputs(context, key, verdict.inputsSha256, planChoice(config, window).inputsSha256);
  const decided = verdict.groups.map((ref) => decidedIn(context, step, ref, (group) => isFresh(config, group), window));
  const leaving = decided.filter((group) => group !== null);
  if (leaving.length < decided.length) {
    findings.problem('verdicts', key, 'it names a group that was not open, or not decided');
    return UNKNOWN;
  }
  compareVerdict(context, key, verdict, leaving);
  return { position: window, chosen: leaving.map(({ result }) => result) };
}

/** The configuration of a step that has a window. */
function findWindow(context: VerifyContext, step: PlayedStep['step']): RunConfig | null {
  const config = plannedConfig(context, step);
  if (config === null || context.isLoop || !hasWindow(config) || step.step === 0) return null;
  return isSupervisedStep(config, step.step) ? null : config;
}

async function verifyVerdict(
  { store, findings }: VerifyContext,
  { step, isDone }: PlayedStep,
): Promise<StepVerdict | null> {
  const key = stepVerdictKey(step);
  const verdict = await findings.attempt('verdicts', key, () => readStepVerdict(store, step));
  if (findings.isBroken(key)) return null;
  if (verdict !== null) findings.count('verdicts');
  else if (isDone) findings.problem('verdicts', key, 'it is missing');
  return verdict;
}

/** All open groups as their files are today; null if they are not known. */
function openWindow(
  context: VerifyContext,
  { step, position }: PlayedStep,
  config: RunConfig,
  groups: readonly (DecidedGroup | null)[],
): RunPosition | null {
  const known = groups.filter((group) => group !== null);
  if (position?.open === undefined || known.length < groups.length) return null;
  for (const [group, decided] of known.entries()) context.decided.set(rolloutsKey({ ...step, group }), decided);
  const results = known.map(({ result }) => result);
  const window = withPlayed(position, planFirstGroups(config, position, known.length), results);
  return withResults(window, judgedNow(context, window.open ?? []));
}

/** Results of groups that earlier steps dealt, as their files are today. */
function judgedNow({ run, decided }: VerifyContext, open: readonly OpenGroup[]): GroupResult[] {
  const places = open.map(({ branch, result: { step, group } }) => ({ run, branch, step, group }));
  return places.flatMap((place) => decided.get(rolloutsKey(place))?.result ?? []);
}

function decidedIn(
  { decided }: VerifyContext,
  trained: PlayedStep['step'],
  ref: StepVerdict['groups'][number],
  isInTime: (group: OpenGroup) => boolean,
  { open = [] }: RunPosition,
): DecidedGroup | null {
  const place = placeOfGroup(trained, ref);
  const found = open.find(({ result }) => result.step === place.step && result.group === ref.group);
  const known = decided.get(rolloutsKey(place));
  if (found === undefined || known === undefined || known.result.judgedSha256 === null) return null;
  const result = isInTime(found) ? known.result : { ...known.result, use: 'stale' as const };
  return { result, rewards: known.rewards, dealt: dealtAt(ref) };
}

function compareVerdict({ findings }: VerifyContext, key: string, verdict: StepVerdict, leaving: DecidedGroup[]): void {
  const stored = verdict.groups.map((group) => toGroupVerdict(group, group.rewards, dealtAt(group)));
  if (canonicalJson(toStepVerdict(verdict.inputsSha256, leaving).groups) !== canonicalJson(stored))
    findings.problem('verdicts', key, 'it decides otherwise than follows from its groups');
}
