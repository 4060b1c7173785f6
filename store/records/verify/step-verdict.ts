/** Checks a step's verdict: the groups that it took from its window, which earlier steps may have dealt. */
import type { GroupResult, OpenGroup, RunConfig } from '../../../core/contract/contract.ts';
import { canonicalJson } from '../../../core/text/hashes.ts';
import { planGroups, type RunPosition } from '../../../core/plan/step.ts';
import { chooseKnown, hasWindow, isFresh, planJudging, withPlayed, withResults } from '../../../core/plan/window.ts';
import { isSupervisedStep } from '../../../core/rules/supervised.ts';
import { placeOfGroup, rolloutsKey, stepVerdictKey } from '../../layout.ts';
import {
  dealtAt,
  readStepVerdict,
  toGroupVerdict,
  toStepVerdict,
  type DecidedGroup,
  type StepVerdict,
} from '../groups/step-verdict.ts';
import { compareInputs, plannedConfig, type VerifyContext } from './context.ts';
import type { PlayedStep } from './groups.ts';

/** Groups that leave the window of a step; `position` is null if it is not known. */
export interface Taken {
  position: RunPosition | null;
  chosen: (GroupResult | null)[];
}

const UNKNOWN: Taken = { position: null, chosen: [null] };

/** Null for a step without a verdict: no plan lists what a script's own loop trains. `groups`: those that the step dealt. */
export async function verifyStepVerdict(
  context: VerifyContext,
  played: PlayedStep,
  groups: readonly (DecidedGroup | null)[],
): Promise<Taken | null> {
  const { isLoop } = context;
  const { step, isDone } = played;
  const config = plannedConfig(context, step);
  if (isLoop || step.step === 0 || (config !== null && isSupervisedStep(config, step.step))) return null;
  const verdict = await readVerdict(context, played);
  const window = config && openWindow(context, played, config, groups);
  if (config === null || window === null) return UNKNOWN;
  if (verdict !== null) return verifyChoice(context, played, verdict, { config, window });
  // What else is complete by now does not matter without further groups: the choice can be made again.
  return { position: window, chosen: isDone && !hasWindow(config) ? chooseKnown(config, window) : [] };
}

function verifyChoice(
  context: VerifyContext,
  { step }: PlayedStep,
  { inputsSha256, groups }: StepVerdict,
  { config, window }: { config: RunConfig; window: RunPosition },
): Taken {
  const { findings } = context;
  const key = stepVerdictKey(step);
  compareInputs(context, key, inputsSha256, planJudging(config, window).inputsSha256);
  const decided = groups.map((ref) => decidedIn(context, step, ref, (group) => isFresh(config, group), window));
  const leaving = decided.filter((group) => group !== null);
  if (leaving.length < decided.length) {
    findings.problem('verdicts', key, 'it names a group that was not open, or not decided');
    return UNKNOWN;
  }
  const stored = groups.map((group) => toGroupVerdict(group, group.rewards, dealtAt(group)));
  const chosen = leaving.map(({ result }) => result);
  const isWhole = hasWindow(config) || canonicalJson(chosen) === canonicalJson(chooseKnown(config, window));
  if (!isWhole || canonicalJson(toStepVerdict(inputsSha256, leaving).groups) !== canonicalJson(stored))
    findings.problem('verdicts', key, 'it decides otherwise than follows from the groups of its step');
  return { position: window, chosen };
}

async function readVerdict(
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
  if (position === null || known.length < groups.length) return null;
  if (!hasWindow(config)) context.decided.clear();
  for (const [group, decided] of known.entries()) context.decided.set(rolloutsKey({ ...step, group }), decided);
  const results = known.map(({ result }) => result);
  const window = withPlayed(position, planGroups(config, position, 0, known.length), results);
  return withResults(window, judgedNow(context, window.open));
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
  { open }: RunPosition,
): DecidedGroup | null {
  const place = placeOfGroup(trained, ref);
  const found = open.find(({ result }) => result.step === place.step && result.group === ref.group);
  const known = decided.get(rolloutsKey(place));
  if (found === undefined || known === undefined || known.result.judgedSha256 === null) return null;
  const result = isInTime(found) ? known.result : { ...known.result, use: 'stale' as const };
  return { result, rewards: known.rewards, dealt: dealtAt(ref) };
}
