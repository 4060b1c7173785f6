import { aborted } from 'node:util';
import { WorkFailed } from '../../core/contract/failures.ts';
import type { TrainedName } from '../../core/names/policy-name.ts';
import { findTrainedPolicy, type TrainedPolicy } from '../../store/records/runs/find-policy.ts';
import { ServerRecord } from '../../store/records/production/servers.ts';
import { loadConfig, type TemperConfig } from '../../workers/config/config.ts';
import { openConfiguredStore } from '../../workers/config/project-store.ts';
import { loadPolicy, type ServedEngine } from '../../workers/serving/served-engine.ts';
import type { ServedPolicy } from '../../workers/serving/policy-answerer.ts';
import { servePolicy } from '../../workers/serving/serve-policy.ts';
import { readTrainedName } from '../command-line/values.ts';
import { EXIT } from '../command-line/errors.ts';
import { printJson } from '../terminal/output.ts';
import type { ServeContext } from './command.ts';
import { followProduction } from './follow-production.ts';
import { servedJson, servedLines } from './lines.ts';
import { planRecording, planServe } from './plan-serve.ts';
import { startPolicyEngine } from '../players/start-policy-engine.ts';
import { startRecording } from './start-recording.ts';

export async function serve(context: ServeContext): Promise<number> {
  const { args, project, env, output, signal, flags } = context;
  const name = readTrainedName(args.checkpoint);
  const place = planServe(context);
  const plan = planRecording(context, place);
  const config = await loadConfig(project, env);
  const store = await openConfiguredStore(project, config);
  const trained = await findTrainedPolicy(store, name);
  const models = namesOf(context, name, trained);
  let current = servedAs(trained, models);
  let engine: ServedEngine | null = null;
  let isLoaded = false;
  const over = new AbortController();
  const tell = (line: string): void => output.errorLine(line);
  const recording = plan && (await startRecording(store, name.run, plan, tell));
  const shown = new ServerRecord({ store, command: 'temper serve', records: plan && name.run, warn: tell });
  // Before the engine: a port that is taken is told at once, and early clients are told to come again.
  const serving = await servePolicy({
    ...place,
    models,
    policy: () => current,
    engine: () => (isLoaded ? engine : null),
    ...(recording && { recorder: recording.recorder, feedback: recording.feedback }),
  }).catch(async (error: unknown) => {
    await recording?.close();
    throw error;
  });
  try {
    await shown.show([trained.name]);
    if (output.isTerminal) output.errorLine(`loading ${trained.name} on ${trained.manifest.baseModel} …`);
    engine = await startEngine(context, config, trained);
    await loadPolicy(engine, trained.name, signal);
    isLoaded = true;
    const { adapterSha256 } = current;
    const told = { ...place, port: serving.port, policy: trained.name, models, adapterSha256, recording: plan };
    if (flags.json) printJson(output, servedJson(told));
    else for (const line of servedLines(told)) output.line(line);
    const loaded = engine;
    const load = (policy: string): Promise<void> => loadPolicy(loaded, policy, over.signal);
    const switchTo = (next: TrainedPolicy): Promise<void> => {
      current = servedAs(next, models);
      return shown.show([next.name]);
    };
    if (name.step === 'production')
      followProduction({ store, name, served: trained, load, switchTo, tell, signal: over.signal }).catch(
        (error: unknown) => tell(`promotions are not followed any more: ${String(error)}`),
      );
    await untilStopped(engine, signal);
  } finally {
    over.abort();
    await serving.close();
    await engine?.close();
    await shown.end();
    await recording?.close();
  }
  return EXIT.ok;
}

/** Names that clients may send. A run's production has no step: it would be another one after a promotion. */
function namesOf({ args, flags }: ServeContext, { run, step }: TrainedName, trained: TrainedPolicy): readonly string[] {
  const own = step === 'production' ? [args.checkpoint, run] : [trained.name, trained.checkpoint.run, args.checkpoint];
  return [...new Set([...own, ...flags['model-name']])];
}

function servedAs({ name, adapter, config }: TrainedPolicy, names: readonly string[]): ServedPolicy {
  return { name, adapterSha256: adapter.sha256, names, rollout: config.rollout };
}

function startEngine(
  { project, env, output, signal, flags }: ServeContext,
  config: TemperConfig,
  trained: TrainedPolicy,
): Promise<ServedEngine> {
  const tell = (line: string): void => output.errorLine(line);
  return startPolicyEngine(
    {
      project,
      env,
      signal,
      config,
      device: flags.device,
      dtype: flags.dtype,
      loadIn4bit: flags['load-in-4bit'],
      tell,
      tellChoice: (line) => (output.isTerminal ? tell(line) : undefined),
    },
    trained,
  );
}

async function untilStopped(engine: ServedEngine, signal: AbortSignal): Promise<void> {
  const reason = await Promise.race([aborted(signal, signal), engine.ended]);
  if (reason === undefined || signal.aborted) return;
  throw new WorkFailed(`the engine ended (${reason}); see .temper/logs/serve.jsonl, then start it again`);
}
