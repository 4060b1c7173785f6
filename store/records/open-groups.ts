/**
 * Open groups of a run (`--groups-ahead`) as its store tells them: those that its steps dealt and no step's verdict names.
 * Files for display are not read.
 */
import pLimit from 'p-limit';

import type { Branch, OpenGroup, RunConfig, SettingChange } from '../../core/contract.ts';
import { branchOfStep } from '../../core/lineage.ts';
import { hasWindow } from '../../core/plan-window.ts';
import { planRoles, rewardRules } from '../../core/plan-step.ts';
import { configAt } from '../../core/settings.ts';
import { placeOfGroup, rolloutsKey, type GroupPlace, type StepPlace } from '../layout.ts';
import type { Store } from '../store.ts';
import { GROUPS_AT_ONCE } from './children.ts';
import { listGroups, readRollouts, readVerdict, requireFile } from './group-files.ts';
import { summariseGroup, summariseUnjudged } from './group-result.ts';
import { checkpointOf, type Commit } from './manifest.ts';
import { readCommit } from './run-reader.ts';
import { readStepVerdict } from './step-verdict.ts';

/** Position in a run's lineage, and the settings under which its steps were planned. */
export interface OpenAfter {
  config: RunConfig;
  changes: readonly SettingChange[];
  lineage: readonly Branch[];
  step: number;
}

/** In plan order; none without `--groups-ahead`. */
export async function findOpenGroups(store: Store, run: string, after: OpenAfter): Promise<OpenGroup[]> {
  const { config, lineage } = after;
  if (!hasWindow(config)) return [];
  const taken = new Set<string>();
  const found: Promise<OpenGroup>[] = [];
  const limit = pLimit(GROUPS_AT_ONCE);
  let staleness = 0;
  // Older groups have left the window with a verdict.
  for (let step = after.step; step > 0 && staleness <= config.maxRewardStaleness + 1; step--) {
    const place: StepPlace = { run, branch: branchOfStep(lineage, step), step };
    for (const ref of (await readStepVerdict(store, place))?.groups ?? [])
      taken.add(rolloutsKey(placeOfGroup(place, ref)));
    if ((await readCommit(store, place)) !== null) staleness += 1;
    if (staleness > config.maxRewardStaleness + 1) break;
    const policy = await findPolicyBefore(store, after, place);
    const open = (await listGroups(store, place))
      .map((group) => ({ ...place, group }))
      .filter((group) => !taken.has(rolloutsKey(group)))
      .map((group) => limit(() => readOpenGroup(store, after, group)));
    const age = staleness;
    found.unshift(
      ...open.map(async (read) => ({ ...(await read), policy: checkpointOf(run, policy), staleness: age })),
    );
  }
  return Promise.all(found);
}

/** The newest commit before a step, which sampled the groups that the step dealt. */
async function findPolicyBefore(store: Store, { lineage }: OpenAfter, { run, step: next }: StepPlace): Promise<Commit> {
  for (let step = next - 1; step >= 0; step--) {
    const commit = await readCommit(store, { run, branch: branchOfStep(lineage, step), step });
    if (commit !== null) return commit;
  }
  throw new Error(`no commit before step ${next} of ${run}`);
}

async function readOpenGroup(
  store: Store,
  { config, changes }: OpenAfter,
  place: GroupPlace,
): Promise<Omit<OpenGroup, 'policy' | 'staleness'>> {
  const { branch, step, group } = place;
  const { rollouts, sha256 } = requireFile(await readRollouts(store, rolloutsKey(place)), rolloutsKey(place));
  const { scenario = 0, inputsSha256 } = rollouts.header;
  const planned = configAt(config, changes, place);
  const { minimumGroupSize, train } = planned;
  const plan = { step, group, scenario, minimumGroupSize, ...rewardRules(train), ...planRoles(planned) };
  const verdict = await readVerdict(store, place);
  const result =
    verdict === null
      ? summariseUnjudged(plan, rollouts, sha256)
      : summariseGroup(plan, rollouts, verdict.judged, verdict.sha256);
  return { branch, inputsSha256, result };
}
