/**
 * Checkpoints about to be used: by runs that have not begun, by judges of active runs, and by schedules. No manifest
 * refers to them yet, or ever will.
 */
import { parsePolicyName, policyName, type Policy } from '../../core/policy-name.ts';
import { SCHEDULES_PREFIX } from '../layout.ts';
import { childNames } from './children.ts';
import { isUnderWay, listRuns, readRun } from './run-reader.ts';
import { newestOf, readActiveSchedules, readFirings } from './schedules.ts';
import type { Store } from '../store.ts';

/** Why each of them is needed, by its policy's name. */
export type Intended = ReadonlyMap<string, string>;

export async function readIntended(store: Store): Promise<Intended> {
  const intended = new Map<string, string>();
  const add = (policy: Policy | null | undefined, because: string) => {
    if (policy) intended.set(placeName(policy), because);
  };
  for (const run of await listRuns(store)) {
    if (!(await isUnderWay(store, run))) continue;
    const config = (await readRun(store, run))?.file.config;
    add(config?.parent, `the run ${run} begins with it`);
    add(judgingPolicy(config), `the run ${run} is judged by it`);
    for (const checkpoint of frozenCheckpoints(config)) add(checkpoint, `it plays a role of the run ${run}`);
  }
  for (const { name, from, config } of await readActiveSchedules(store)) {
    // Later firings start from the final checkpoint of the last run that succeeded.
    if (newestOf(await readFirings(store, name)) === null) add(from, `the schedule ${name} begins with it`);
    add(judgingPolicy(config), `the runs of the schedule ${name} are judged by it`);
    for (const checkpoint of frozenCheckpoints(config)) add(checkpoint, `it plays a role of the schedule ${name}`);
  }
  for (const schedule of await childNames(store, SCHEDULES_PREFIX)) {
    const firings = await readFirings(store, schedule);
    add(newestOf(firings), `the next run of the schedule ${schedule} begins with it`);
    const last = firings.at(-1);
    if (last?.checkpoint === null) add(last.parent, `a run of the schedule ${schedule} begins with it`);
  }
  return intended;
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
