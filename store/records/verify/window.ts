/** Checks what a step took from its window (`--groups-ahead`): groups of several steps, which its verdict names. */
import type { GroupResult, OpenGroup } from '../../../core/contract.ts';
import { canonicalJson } from '../../../core/hashes.ts';
import { planFirstGroups, type RunPosition } from '../../../core/plan-step.ts';
import { hasWindow, isFresh, planChoice, withPlayed, withResults } from '../../../core/plan-window.ts';
import { isSupervisedStep } from '../../../core/supervised.ts';
import { placeOfGroup, rolloutsKey, stepVerdictKey } from '../../layout.ts';
import {
  readStepVerdict,
  toGroupVerdict,
  toStepVerdict,
  type DecidedGroup,
  type StepVerdict,
} from '../step-verdict.ts';
import { compareInputs, plannedConfig, type VerifyContext } from './context.ts';
import type { PlayedStep } from './groups.ts';

/** What a step trains, and from what; `position` is null if it is not known. */
export interface Taken {
  position: RunPosition | null;
  chosen: (GroupResult | null)[];
}

const UNKNOWN: Taken = { position: null, chosen: [null] };

/** Null for a step without a window. `groups`: those that the step dealt. */
export async function verifyWindow(
  context: VerifyContext,
  { step, position, isDone }: PlayedStep,
  groups: readonly (DecidedGroup | null)[],
): Promise<Taken | null> {
  const { store, findings } = context;
  const config = plannedConfig(context, step);
  if (config === null || context.isLoop || !hasWindow(config) || step.step === 0) return null;
  if (isSupervisedStep(config, step.step)) return null;
  const key = stepVerdictKey(step);
  const verdict = await findings.attempt('verdicts', key, () => readStepVerdict(store, step));
  if (findings.isBroken(key)) return UNKNOWN;
  if (verdict === null && isDone) findings.problem('verdicts', key, 'it is missing');
  if (verdict !== null) findings.count('verdicts');
  const known = groups.filter((group) => group !== null);
  if (position?.open === undefined || known.length < groups.length) return UNKNOWN;
  for (const [group, decided] of known.entries()) context.decided.set(rolloutsKey({ ...step, group }), decided);
  const dealt = planFirstGroups(config, position, known.length);
  const window = withPlayed(
    position,
    dealt,
    known.map(({ result }) => result),
  );
  if (verdict === null) return { position: window, chosen: [] };
  const now = withResults(window, judgedNow(context, window.open ?? []));
  compareInputs(context, key, verdict.inputsSha256, planChoice(config, now).inputsSha256);
  const decided = verdict.groups.map((ref) => decidedIn(context, step, ref, (group) => isFresh(config, group), now));
  if (decided.some((group) => group === null)) {
    findings.problem('verdicts', key, 'it names a group that was not open, or not decided');
    return UNKNOWN;
  }
  const leaving = decided.filter((group) => group !== null);
  compareVerdict(context, key, verdict, leaving);
  return { position: now, chosen: leaving.map(({ result }) => result) };
}

/** Results of groups that earlier steps dealt, as their files are today. */
function judgedNow({ run, decided }: VerifyContext, open: readonly OpenGroup[]): GroupResult[] {
  const places = open.map(({ branch, result: { step, group } }) => ({ run, branch, step, group }));
  return places.flatMap((place) => decided.get(rolloutsKey(place))?.result ?? []);
}

function decidedIn(
  { decided }: VerifyContext,
  trained: PlayedStep['step'],
  { group, step, branch }: StepVerdict['groups'][number],
  isInTime: (group: OpenGroup) => boolean,
  { open = [] }: RunPosition,
): DecidedGroup | null {
  const place = placeOfGroup(trained, {
    group,
    ...(step !== undefined && { step }),
    ...(branch !== undefined && { branch }),
  });
  const found = open.find(({ result }) => result.step === place.step && result.group === group);
  const known = decided.get(rolloutsKey(place));
  if (found === undefined || known === undefined || known.result.judgedSha256 === null) return null;
  const dealt = { ...(step !== undefined && { step }), ...(branch !== undefined && { branch }) };
  const result = isInTime(found) ? known.result : { ...known.result, use: 'stale' as const };
  return { result, rewards: known.rewards, dealt };
}

function compareVerdict({ findings }: VerifyContext, key: string, verdict: StepVerdict, leaving: DecidedGroup[]): void {
  const stored = verdict.groups.map(({ step, branch, ...group }) =>
    toGroupVerdict(group, group.rewards, {
      ...(step !== undefined && { step }),
      ...(branch !== undefined && { branch }),
    }),
  );
  if (canonicalJson(toStepVerdict(verdict.inputsSha256, leaving).groups) !== canonicalJson(stored))
    findings.problem('verdicts', key, 'it decides otherwise than follows from its groups');
}
