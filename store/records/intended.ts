/**
 * Checkpoints in use or about to be: by runs that have not begun, by judges of active runs, by schedules, by deployments in
 * progress, by servers, and in production. No manifest refers to them yet, or ever will.
 */
import { parsePolicyName, policyName, type Policy } from '../../core/policy-name.ts';
import { PRODUCTION_PREFIX, SCHEDULES_PREFIX } from '../layout.ts';
import { childNames } from './children.ts';
import { unfinishedDeployments } from './deployments.ts';
import { promotionsInEffect, readPromotions } from './promotions.ts';
import { isUnderWay, listRuns, readRun } from './run-reader.ts';
import { readServers } from './servers.ts';
import { findLastAnswering } from './serving-checkpoint.ts';
import { newestOf, readActiveSchedules, readFirings } from './schedules.ts';
import type { Store } from '../store.ts';

/** Why each of them is needed, by its policy's name. */
export type Intended = ReadonlyMap<string, string>;

type Needed = readonly [Policy | null | undefined, string];

/** `except`: a run whose own production does not count. */
export async function readIntended(store: Store, except: string | null = null): Promise<Intended> {
  const intended = new Map<string, string>();
  const sources = [
    byRuns(store),
    bySchedules(store),
    byDeployments(store),
    inProduction(store, except),
    byServers(store),
  ];
  for (const source of sources)
    for await (const [policy, because] of source) if (policy) intended.set(placeName(policy), because);
  return intended;
}

async function* byRuns(store: Store): AsyncGenerator<Needed> {
  for (const run of await listRuns(store)) {
    if (!(await isUnderWay(store, run))) continue;
    const config = (await readRun(store, run))?.file.config;
    yield [config?.parent, `the run ${run} begins with it`];
    yield [judgingPolicy(config), `the run ${run} is judged by it`];
    for (const checkpoint of frozenCheckpoints(config)) yield [checkpoint, `it plays a role of the run ${run}`];
  }
}

async function* bySchedules(store: Store): AsyncGenerator<Needed> {
  for (const { name, from, config } of await readActiveSchedules(store)) {
    // Later firings start from the final checkpoint of the last run that succeeded.
    if (newestOf(await readFirings(store, name)) === null) yield [from, `the schedule ${name} begins with it`];
    yield [judgingPolicy(config), `the runs of the schedule ${name} are judged by it`];
    for (const checkpoint of frozenCheckpoints(config)) yield [checkpoint, `it plays a role of the schedule ${name}`];
  }
  for (const schedule of await childNames(store, SCHEDULES_PREFIX)) {
    const firings = await readFirings(store, schedule);
    yield [newestOf(firings), `the next run of the schedule ${schedule} begins with it`];
    const last = firings.at(-1);
    if (last?.checkpoint === null) yield [last.parent, `a run of the schedule ${schedule} begins with it`];
  }
}

async function* byDeployments(store: Store): AsyncGenerator<Needed> {
  for (const run of await listRuns(store))
    for (const { checkpoint, target } of await unfinishedDeployments(store, run))
      yield [checkpoint, `it is being deployed to ${target}`];
}

async function* byServers(store: Store): AsyncGenerator<Needed> {
  for (const { policies, by } of await readServers(store))
    for (const policy of policies) yield [parsePolicyName(policy), `${by} serves it, or was killed a few minutes ago`];
}

/** The current one of each run, after the one that it could go back to; without one, that which answered last. */
async function* inProduction(store: Store, except: string | null): AsyncGenerator<Needed> {
  for (const run of await childNames(store, PRODUCTION_PREFIX)) {
    if (run === except) continue;
    const inEffect = promotionsInEffect(await readPromotions(store, run));
    const [before, current] = [inEffect.at(-2), inEffect.at(-1)];
    if (before !== undefined) yield [before.checkpoint, `temper promote ${run} --back returns to it`];
    if (current !== undefined) yield [current.checkpoint, `it is ${run}@production`];
    else yield [await findLastAnswering(store, run), `it answered last in the recordings of ${run}`];
  }
}

/** A checkpoint is kept whole, whichever of its policies is used. */
const placeName = ({ run, branch, step }: Policy): string => policyName({ run, branch, step });

/** Checkpoints that play roles of an agent, and are not trained. */
function frozenCheckpoints(config: WithRoles | undefined): Policy[] {
  return Object.values(config?.roles ?? {}).flatMap(({ checkpoint }) => checkpoint ?? []);
}

interface FrozenRole {
  readonly kind: string;
  readonly checkpoint?: Policy | undefined;
}

interface WithRoles {
  readonly roles?: Readonly<Record<string, FrozenRole>> | undefined;
}

/** Null unless a checkpoint of this store judges. */
function judgingPolicy(config: { readonly judge?: string | null | undefined } | undefined): Policy | null {
  return parsePolicyName(config?.judge?.replace(/^engine\//, '') ?? '');
}
