/** A deployment in a store, and its stages as a worker does them: again after each failure that may pass. */

import { onTestFinished } from 'vitest';

import { TemperError } from '../../../core/contract/failures.ts';
import { PROOF_STAGE, runStage } from '../../../outbound/deploy/run-stage.ts';
import type { Proof, ProofRequest, WriteGguf } from '../../../outbound/deploy/targets/target.ts';
import { requireTarget } from '../../../outbound/deploy/targets.ts';
import {
  readDeployment,
  recordDeployment,
  type NewDeployment,
  type RecordedDeployment,
} from '../../../store/records/production/deployments.ts';
import type { Store } from '../../../store/store.ts';
import { checkpoint } from '../../activities/world.ts';
import type { StandIn } from '../stand-in.ts';

const text = (content: string): Uint8Array => new TextEncoder().encode(content);

export const ADAPTER = text('the weights of an adapter');
const CONFIG = { base_model_name_or_path: 'pocket', r: 8, lora_alpha: 16, target_modules: ['q_proj', 'v_proj'] };

/** Keys that must stand nowhere. */
export const KEYS = {
  HF_TOKEN: 'hf_canary-of-the-hub',
  TOGETHER_API_KEY: 'canary-of-together',
  FIREWORKS_API_KEY: 'canary-of-fireworks',
};

/** Closed with its test. */
export async function closing<T extends StandIn>(starting: Promise<T>): Promise<T> {
  const standIn = await starting;
  onTestFinished(() => standIn.close());
  return standIn;
}

export async function addDeployment(
  store: Store,
  changes: Pick<NewDeployment, 'target' | 'options'> & Partial<NewDeployment> & { shape?: object },
): Promise<RecordedDeployment> {
  const { shape, ...given } = changes;
  const asked: NewDeployment = {
    checkpoint: checkpoint(12),
    policy: 'demo@12',
    baseModel: 'base/model',
    adapter: await store.putBlob(ADAPTER),
    adapterConfig: await store.putBlob(text(JSON.stringify({ ...CONFIG, ...shape }))),
    chatTemplateSha256: (await store.putBlob(text('{{ messages }}'))).sha256,
    card: '---\nbase_model: "base/model"\n---\n\n# demo@12\n',
    prompts: 8,
    stages: [
      ...requireTarget(given.target)
        .stages(given)
        .map(({ name }) => name),
      PROOF_STAGE,
    ],
    ...given,
  };
  const id = await recordDeployment(store, 'demo', asked, 1);
  return (await readDeployment(store, 'demo', id))!;
}

export const MATCHES: Proof = { verdict: 'matches', detail: '8 of 8 answers are the same', prompts: 8, measured: {} };

const noGguf: WriteGguf = () => Promise.reject(new Error('this target needs no GGUF file'));

export interface Playing {
  readonly env: NodeJS.ProcessEnv;
  readonly prove?: (request: ProofRequest) => Promise<Proof>;
  readonly writeGguf?: WriteGguf;
}

/** Returns the messages of failures on the way; a failure that no retry mends is thrown. */
export async function playStages(
  store: Store,
  { run, id, stages }: RecordedDeployment,
  { env, prove = () => Promise.resolve(MATCHES), writeGguf = noGguf }: Playing,
): Promise<string[]> {
  const failures: string[] = [];
  const checkFresh = (): void => undefined;
  for (const stage of stages) {
    for (let tries = 1; ; tries += 1) {
      const deployment = (await readDeployment(store, run, id))!;
      const { signal } = new AbortController();
      try {
        await runStage({ store, deployment, stage, env, fetch, signal, prove, writeGguf, checkFresh, pollMs: 1 });
        break;
      } catch (error) {
        if (!(error instanceof TemperError) || !error.retryable || tries > 30) throw error;
        failures.push(error.message);
      }
    }
  }
  return failures;
}

export async function madeOf(store: Store, { run, id }: RecordedDeployment): Promise<Record<string, object>> {
  const { finished } = (await readDeployment(store, run, id))!;
  return Object.fromEntries(finished.map(({ stage, made }) => [stage, made]));
}
