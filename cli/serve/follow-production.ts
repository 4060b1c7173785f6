/** Follows `RUN@production`: a promoted checkpoint is loaded first, and then answers each new request. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { policyName, type TrainedName } from '../../core/names/policy-name.ts';
import { findTrainedPolicy, type TrainedPolicy } from '../../store/records/runs/find-policy.ts';
import { findPromoted } from '../../store/records/runs/promotions.ts';
import type { Store } from '../../store/store.ts';
import { trainedBase } from '../../workers/config/loaded-base.ts';

export interface FollowOptions {
  readonly store: Store;
  /** With `production` as its step. */
  readonly name: TrainedName;
  readonly served: TrainedPolicy;
  /** Resolves once the engine has it. */
  readonly load: (policy: string) => Promise<void>;
  readonly switchTo: (policy: TrainedPolicy) => Promise<void> | void;
  readonly tell: (line: string) => void;
  readonly signal: AbortSignal;
  /** 2 seconds by default. */
  readonly everyMs?: number;
}

const EVERY_MS = 2000;

/** Ends with the signal. What fails is told once, and tried again. */
export async function followProduction(options: FollowOptions): Promise<void> {
  const { signal, everyMs = EVERY_MS, tell } = options;
  let { served } = options;
  let told = '';
  while (!signal.aborted) {
    await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    try {
      if (!signal.aborted) served = await follow(options, served);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== told && !signal.aborted) tell(`${served.name} is still served: ${reason}`);
      told = reason;
    }
  }
}

async function follow(
  { store, name, load, switchTo, tell }: FollowOptions,
  served: TrainedPolicy,
): Promise<TrainedPolicy> {
  const promoted = await findPromoted(store, name.run);
  const isServed = promoted?.checkpoint.manifestSha256 === served.checkpoint.manifestSha256;
  if (promoted === null || isServed) return served;
  const next = await findTrainedPolicy(store, name);
  checkSameEngine(served, next);
  await load(next.name);
  await switchTo(next);
  const because = promoted.reason === null ? '' : ` (${promoted.reason})`;
  tell(`${next.name} is served now, ${served.name} was before${because}`);
  return next;
}

/** The engine was started for the base model and the adapters of the first one. */
function checkSameEngine(served: TrainedPolicy, next: TrainedPolicy): void {
  const [was, is] = [served, next].map(({ manifest, config }) => ({
    baseModel: manifest.baseModel,
    baseModelSha256: manifest.baseModelSha256,
    ...trainedBase(manifest),
    lora: config.train.lora,
  }));
  if (isDeepStrictEqual(was, is)) return;
  throw new Error(
    `${policyName(next.checkpoint)} has another base model or another form of its adapter than ${served.name}, so temper serve must be started again to serve it`,
  );
}
