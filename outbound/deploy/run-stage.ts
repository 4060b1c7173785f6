/** One stage of a deployment: what an earlier try recorded is not done again. */
import { setTimeout as sleep } from 'node:timers/promises';
import { TemperError } from '../../core/contract/failures.ts';
import {
  recordStage,
  showStatus,
  type Made,
  type RecordedDeployment,
} from '../../store/records/production/deployments.ts';
import type { Store } from '../../store/store.ts';
import { withoutSecrets, requireKey } from '../../core/text/http.ts';
import { deploymentFiles } from './targets/files.ts';
import type { DeployFile, Proof, ProofRequest, StageContext, WriteGguf } from './targets/target.ts';
import { requireTarget } from './targets.ts';

/** The last stage of a deployment, of every target. */
export const PROOF_STAGE = 'proof';

export interface StageRun {
  readonly store: Store;
  readonly deployment: RecordedDeployment;
  readonly stage: string;
  readonly env: NodeJS.ProcessEnv;
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
  readonly prove: (request: ProofRequest) => Promise<Proof>;
  readonly writeGguf: WriteGguf;
  /** Throws if another worker may have taken over. */
  readonly checkFresh: () => void;
  /** First pause between two questions to a target that is not ready. */
  readonly pollMs?: number;
}

const POLL_MS = 2000;
const LONGEST_POLL_MS = 60_000;

export async function runStage(run: StageRun): Promise<void> {
  const { store, deployment, stage } = run;
  if (deployment.finished.some((record) => record.stage === stage)) return;
  const show = (state: 'running' | 'failed', message: string | null) =>
    showStatus(store, deployment.run, deployment.id, { state, stage, message });
  await show('running', null);
  try {
    const made = await makeStage(run, (message) => show('running', message));
    run.checkFresh();
    await recordStage(store, deployment.run, deployment.id, stage, made);
  } catch (error) {
    if (run.signal.aborted) throw error;
    const failure = hideSecrets(error, run.env);
    const isOver = failure instanceof TemperError && !failure.retryable;
    await show(isOver ? 'failed' : 'running', failure.message);
    throw failure;
  }
}

async function makeStage(run: StageRun, show: (message: string) => Promise<void>): Promise<Made> {
  const { deployment, stage, signal } = run;
  const context = openContext(run);
  if (stage === PROOF_STAGE) return proveDeployment(context, run.prove);
  const wanted = requireTarget(deployment.target)
    .stages(deployment)
    .find(({ name }) => name === stage);
  if (wanted === undefined)
    throw new TemperError('LaterVersion', `this version of Temper does not know the stage ${stage}; upgrade it`);
  for (let pauseMs = run.pollMs ?? POLL_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_POLL_MS)) {
    const outcome = await wanted.run(context);
    if ('made' in outcome) return outcome.made;
    await show(outcome.waitingFor);
    await sleep(pauseMs, undefined, { signal });
  }
}

function openContext({ store, deployment, env, fetch, signal, writeGguf }: StageRun): StageContext {
  let files: Promise<readonly DeployFile[]> | null = null;
  return {
    store,
    deployment,
    env,
    fetch,
    signal,
    writeGguf,
    made: Object.fromEntries(deployment.finished.map(({ stage, made }) => [stage, made])),
    files: () => (files ??= deploymentFiles(store, deployment)),
  };
}

/** A library may put what it was given into its errors, and a failure is written to the history and the store. */
function hideSecrets(error: unknown, env: NodeJS.ProcessEnv): Error {
  const secrets = Object.entries(env).flatMap(([name, value]) => (SECRET.test(name) && value ? [value] : []));
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  if (error instanceof TemperError) {
    const { type, retryAfterMs } = error;
    return new TemperError(type, withoutSecrets(message, secrets), retryAfterMs === null ? {} : { retryAfterMs });
  }
  const hidden = new Error(withoutSecrets(message, secrets));
  if (stack !== undefined) hidden.stack = withoutSecrets(stack, secrets);
  return hidden;
}

const SECRET = /KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/;

/** The last stage: that what was deployed is the checkpoint. Answers are compared where something answers, else bytes. */
async function proveDeployment(context: StageContext, prove: (request: ProofRequest) => Promise<Proof>): Promise<Made> {
  const { deployment, made, env, store, fetch, signal } = context;
  const target = requireTarget(deployment.target);
  const address = target.address(deployment, made, env);
  if (address === null) return compareBytes(context);
  const { keyVariable } = address;
  const key = keyVariable === null ? null : requireKey(env, keyVariable, deployment.target);
  const { verdict, detail, prompts, measured } = await prove({ store, deployment, address, key, fetch, signal });
  if (verdict === 'matches') return { verdict, detail, prompts, ...measured };
  throw new TemperError(
    'DeploymentFailed',
    `${address.model} at ${deployment.target} is not ${deployment.policy} (${verdict}): ${detail}`,
  );
}

async function compareBytes(context: StageContext): Promise<Made> {
  const { policy, target: name } = context.deployment;
  const target = requireTarget(name);
  if (target.verify === undefined)
    return { verdict: 'none', detail: 'nothing serves it yet, so that no prompt could be sent' };
  const difference = await target.verify(context);
  const { length: files } = await context.files();
  if (difference === null) return { verdict: 'same-bytes', detail: 'the files there are those of the store', files };
  throw new TemperError(
    'DeploymentFailed',
    `what is at ${name} is not ${policy}: ${difference}; deploy it again with --again`,
  );
}
