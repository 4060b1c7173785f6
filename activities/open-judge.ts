/** The judge that a ruler names, as something that answers, and by what its verdicts are known. */
import { TemperError } from '../core/failures.ts';
import { parsePolicyName } from '../core/policy-name.ts';
import { connectEngineJudge, connectHosted, type Judge } from '../sdk/ruler/judge-client.ts';
import type { Ruler } from '../sdk/ruler/ruler.ts';
import { readCheckpoint } from '../store/find-checkpoint.ts';
import type { PlayDependencies } from './dependencies.ts';

export interface OpenJudge {
  judge: Judge;
  /** A checkpoint by its adapter's hash: its name may stand for another one in another store. */
  model: string;
}

export async function openJudge(
  { store, engine, env = process.env }: PlayDependencies,
  ruler: Ruler,
): Promise<OpenJudge> {
  const { judge } = ruler;
  if (judge.kind === 'hosted') return { judge: connectHosted(ruler, judge, env), model: judge.name };
  const policy = parsePolicyName(judge.model);
  const checkpoint = policy && (await readCheckpoint(store, policy));
  if (policy !== null && checkpoint === null) {
    const rule = `the judge ${judge.name} must be a committed checkpoint of this store`;
    throw new TemperError('BadConfig', `${rule}; name another one, or a base model`);
  }
  const adapterSha256 = checkpoint?.adapterSha256 ?? null;
  const client = connectEngineJudge(ruler, judge, { connection: engine, adapterSha256 });
  return { judge: client, model: adapterSha256 === null ? judge.name : `engine/${adapterSha256}` };
}
