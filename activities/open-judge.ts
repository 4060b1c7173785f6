/** The judge that a ruler names: on the run's own engine it may be a checkpoint of the run's store. */
import { TemperError } from '../core/failures.ts';
import { parsePolicyName } from '../core/policy-name.ts';
import { openJudge, type OpenJudge } from '../play/judge/judge-client.ts';
import type { EngineJudge } from '../play/judge/judge-model.ts';
import type { Ruler } from '../play/judge/ruler.ts';
import { readCheckpoint } from '../store/records/find-checkpoint.ts';
import type { Store } from '../store/store.ts';
import type { PlayDependencies } from './dependencies.ts';

export async function openRunJudge(
  { store, engine, env = process.env }: PlayDependencies,
  ruler: Ruler,
): Promise<OpenJudge> {
  const { judge } = ruler;
  if (judge.kind === 'hosted') return openJudge(ruler, null, env);
  return openJudge(ruler, { connection: engine, adapterSha256: await findAdapter(store, judge) }, env);
}

/** Null for a base model. */
async function findAdapter(store: Store, { name, model }: EngineJudge): Promise<string | null> {
  const policy = parsePolicyName(model);
  if (policy === null) return null;
  const checkpoint = await readCheckpoint(store, policy);
  if (checkpoint !== null) return checkpoint.adapterSha256;
  const rule = `the judge ${name} must be a committed checkpoint in this store`;
  throw new TemperError('BadConfig', `${rule}; name another one, or a base model`);
}
