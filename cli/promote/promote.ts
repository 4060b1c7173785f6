import { userInfo } from 'node:os';
import type { Checkpoint } from '../../core/contract.ts';
import type { CheckpointName } from '../../core/policy-name.ts';
import { nameCheckpoint } from '../../store/records/find-checkpoint.ts';
import { findTrainedPolicy } from '../../store/records/find-policy.ts';
import {
  findBefore,
  findPromoted,
  recordPromotion,
  type NewPromotion,
  type Promotion,
} from '../../store/records/promotions.ts';
import { readEval, requireRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { printJson } from '../terminal/output.ts';
import type { PromoteContext } from './command.ts';

export async function promote(context: PromoteContext, name: CheckpointName): Promise<number> {
  const { flags, args, project, env, output } = context;
  const run = flags.to ?? name.run;
  const store = await openProjectStore(project, env);
  const { file } = await requireRun(store, run);
  const { checkpoint, manifest } = await findTrainedPolicy(store, name);
  if (manifest.baseModel !== file.config.baseModel)
    throw new UsageError(
      `${run}@production must stay on the base model ${file.config.baseModel}, got ${args.checkpoint} of ${manifest.baseModel}; promote a checkpoint of the same base model`,
    );
  const current = await findPromoted(store, run);
  if (current?.checkpoint.manifestSha256 === checkpoint.manifestSha256) {
    const named = await nameCheckpoint(store, checkpoint);
    if (flags.json) printJson(output, { run, created: false, ...promotionJson(current, named) });
    else output.line(`${named} is ${run}@production already, since ${current.at}`);
    return EXIT.ok;
  }
  await record(context, store, run, { ...(await describe(context, store, checkpoint)), kind: 'promoted' });
  return EXIT.ok;
}

export async function goBack(context: PromoteContext, run: string): Promise<number> {
  const { project, env } = context;
  const store = await openProjectStore(project, env);
  const checkpoint = await findBefore(store, run);
  await record(context, store, run, { ...(await describe(context, store, checkpoint)), kind: 'back' });
  return EXIT.ok;
}

async function describe(
  { flags }: PromoteContext,
  store: Store,
  checkpoint: Checkpoint,
): Promise<Omit<NewPromotion, 'kind'>> {
  const { reward = null, attempts = 0, scenarios = attempts } = (await readEval(store, checkpoint)) ?? {};
  const evaluation = reward === null ? null : { reward, scenarios };
  return { checkpoint, by: flags.by ?? userName(), reason: flags.reason, evaluation, comparison: null, key: null };
}

async function record({ flags, output }: PromoteContext, store: Store, run: string, row: NewPromotion): Promise<void> {
  const before = await findPromoted(store, run);
  const { row: recorded } = await recordPromotion(store, run, row);
  const named = await nameCheckpoint(store, recorded.checkpoint);
  if (flags.json) {
    printJson(output, { run, created: true, ...promotionJson(recorded, named) });
    return;
  }
  const was = before === null ? '' : `, ${await nameCheckpoint(store, before.checkpoint)} was before`;
  output.line(`${named} is ${run}@production now${was}`);
  if (before === null) output.line(`serve it with temper serve ${run}@production`);
}

export function promotionJson({ checkpoint, schema: _schema, key: _key, ...row }: Promotion, named: string): object {
  return { ...row, checkpoint: named, adapterSha256: checkpoint.adapterSha256 };
}

/** Null where the system has no name for it, as in some containers. */
function userName(): string | null {
  try {
    return userInfo().username;
  } catch {
    return null;
  }
}
