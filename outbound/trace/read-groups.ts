/** Groups that a step decided on, or an evaluation, as spans are made of them; one after the other, for a step may have thousands. */
import { policyName } from '../../core/names/policy-name.ts';
import type { GroupRef, GroupResult } from '../../core/contract/contract.ts';
import { branchOfStep, planLineage } from '../../core/names/lineage.ts';
import { evalTimesKey, groupTimesKey, placeOfGroup, type StepPlace } from '../../store/layout.ts';
import { readStored, TimesFileSchema } from '../../store/records/file-schemas.ts';
import { listGroups } from '../../store/records/groups/group-files.ts';
import { readBranches } from '../../store/records/runs/lineage.ts';
import { readEvalRollouts, readGroup, readManifest } from '../../store/records/runs/run-reader.ts';
import { readStepVerdict } from '../../store/records/groups/step-verdict.ts';
import type { Store } from '../../store/store.ts';
import type { TracedGroup } from './traced.ts';

type Decided = Pick<GroupRef, 'group' | 'step' | 'branch'> & { use: GroupResult['use'] | null };

/** `over`: when the step was, in milliseconds since 1970. */
export async function* readStepGroups(store: Store, place: StepPlace, over: number): AsyncGenerator<TracedGroup> {
  const verdict = await readStepVerdict(store, place);
  const decided: Decided[] = verdict?.groups ?? (await listGroups(store, place)).map((group) => ({ group, use: null }));
  const policies = new PolicyNames(store, place);
  for (const { use, ...ref } of decided) {
    const dealt = placeOfGroup(place, ref);
    const played = await readGroup(store, dealt);
    if (played === null) continue;
    const { header, attempts } = played.rollouts;
    yield {
      branch: dealt.branch,
      step: dealt.step,
      group: dealt.group,
      policy: await policies.nameOf(header.adapterSha256),
      adapterSha256: header.adapterSha256,
      attempts,
      judged: played.judged,
      scenarioId: header.scenarioId ?? null,
      scenario: header.scenario ?? null,
      use,
      times: await readStored(store, groupTimesKey(dealt), TimesFileSchema),
      over,
    };
  }
}

/** Null if the store has no attempts of it. */
export async function readEvaluation(store: Store, place: StepPlace, over: number): Promise<TracedGroup | null> {
  const rollouts = await readEvalRollouts(store, place);
  if (rollouts === null) return null;
  const { adapterSha256 } = rollouts.header;
  return {
    branch: place.branch,
    step: place.step,
    group: null,
    policy: policyName(place),
    adapterSha256,
    attempts: rollouts.attempts,
    judged: null,
    scenarioId: null,
    scenario: null,
    use: null,
    times: await readStored(store, evalTimesKey(place), TimesFileSchema),
    over,
  };
}

/** Steps before its own in which a group's policy is looked for: it may be older, or those between trained nothing. */
const STEPS_BACK = 64;

/** Names of checkpoints by their adapters, as far as the steps before one made them. */
class PolicyNames {
  readonly #store: Store;
  readonly #place: StepPlace;
  readonly #known = new Map<string, string>();
  #next: number;
  #lineage: ReturnType<typeof planLineage> | null = null;

  constructor(store: Store, place: StepPlace) {
    this.#store = store;
    this.#place = place;
    this.#next = place.step - 1;
  }

  async nameOf(adapterSha256: string | null): Promise<string | null> {
    if (adapterSha256 === null) return null;
    const { run, branch, step } = this.#place;
    this.#lineage ??= planLineage(await readBranches(this.#store, run), branch);
    while (!this.#known.has(adapterSha256) && this.#next >= Math.max(0, step - STEPS_BACK)) {
      const place = { run, branch: branchOfStep(this.#lineage, this.#next), step: this.#next };
      const adapter = (await readManifest(this.#store, place))?.adapter.sha256;
      if (adapter !== undefined && !this.#known.has(adapter)) this.#known.set(adapter, policyName(place));
      this.#next -= 1;
    }
    return this.#known.get(adapterSha256) ?? null;
  }
}
