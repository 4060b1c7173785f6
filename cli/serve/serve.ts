import { aborted } from 'node:util';
import { checkTrainedWeights } from '../../core/engine-rules.ts';
import type { TrainedName } from '../../core/policy-name.ts';
import { findTrainedPolicy, type TrainedPolicy } from '../../store/records/find-policy.ts';
import { loadConfig, type TemperConfig } from '../../workers/config/config.ts';
import { ANY_USE, decideEngine, describeDecision } from '../../workers/local-stack/decide-engine.ts';
import { cacheFolder } from '../../workers/project/folders.ts';
import { trainedBase } from '../../workers/config/loaded-base.ts';
import { writeKnownModels } from '../../workers/base-models/known-models.ts';
import { openConfiguredStore } from '../../workers/config/project-store.ts';
import { loadPolicy, startServedEngine, type ServedEngine } from '../../workers/serving/served-engine.ts';
import type { ServedPolicy } from '../../workers/serving/policy-answerer.ts';
import { servePolicy } from '../../workers/serving/serve-policy.ts';
import { readTrainedName } from '../command-line/values.ts';
import { EXIT, WorkFailed } from '../command-line/errors.ts';
import { printJson } from '../terminal/output.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import { SERVE_KEY_VARIABLE, type ServeContext } from './command.ts';
import { followProduction } from './follow-production.ts';
import { servedJson, servedLines } from './lines.ts';
import { planRecording } from './plan-recording.ts';
import { planServe } from './plan-serve.ts';
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
  // Before the engine: a port that is taken is told at once, and early clients are told to come again.
  const serving = await servePolicy({
    ...place,
    models,
    policy: () => current,
    engine: () => (isLoaded ? engine : null),
    ...(recording && { recorder: recording.recorder, feedback: recording.feedback }),
  });
  try {
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
    const switchTo = (next: TrainedPolicy): void => void (current = servedAs(next, models));
    if (name.step === 'production')
      void followProduction({ store, name, served: trained, load, switchTo, tell, signal: over.signal });
    await untilStopped(engine, signal);
  } finally {
    over.abort();
    await serving.close();
    await engine?.close();
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

async function startEngine(
  { project, env, output, signal, flags }: ServeContext,
  config: TemperConfig,
  { manifest, name, config: run }: TrainedPolicy,
): Promise<ServedEngine> {
  const { [SERVE_KEY_VARIABLE]: _key, ...others } = env;
  const { device, dtype } = flags;
  // In another type of numbers the same policy gives other tokens.
  const trained = trainedBase(manifest);
  const wanted = {
    ...config.engine,
    device: device ?? config.engine.device,
    dtype: dtype ?? trained.dtype,
    devices: 1,
    shardBaseModel: false,
    compileLayers: false,
    // Beside other weights, too.
    loadIn4bit: flags['load-in-4bit'] || trained.loadIn4bit,
  };
  checkTrainedWeights(`${name} must be served`, wanted);
  const use = { ...ANY_USE, trained: [run.train.lora] };
  const decided = await decideEngine(wanted, {}, use, { env, cache: cacheFolder(env) });
  const why = describeDecision(decided);
  if (why !== null && output.isTerminal) output.errorLine(why);
  const engine = { ...wanted, kind: decided.kind };
  return startServedEngine({
    project,
    env: others,
    signal,
    onEvent: createEventPrinter((line) => output.errorLine(line)),
    config: { ...config, engine },
    models: writeKnownModels(project, config),
    // These flags name the differences.
    anyBase: engine.dtype !== trained.dtype || engine.loadIn4bit !== trained.loadIn4bit,
  });
}

async function untilStopped(engine: ServedEngine, signal: AbortSignal): Promise<void> {
  const reason = await Promise.race([aborted(signal, signal), engine.ended]);
  if (reason === undefined || signal.aborted) return;
  throw new WorkFailed(`the engine ended (${reason}); see .temper/logs/serve.jsonl, then start it again`);
}
