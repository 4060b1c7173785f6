import { badConfig, WorkFailed } from '../../core/contract/failures.ts';
import { listTold } from '../../outbound/describe-telling.ts';
import { SnapshotReader, type RunSnapshot } from '../../outbound/run-snapshot.ts';
import type { Target } from '../../outbound/target.ts';
import { runOutcomeOf, tellNext } from '../../outbound/tell-run.ts';
import { runWorkflowId, trackWorkflowId } from '../../core/names/queues.ts';
import { readCursor } from '../../store/records/production/outbound-cursor.ts';
import { isEnded, requireRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig, type TemperConfig } from '../../workers/config/config.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { settingsOfTarget } from '../../workers/config/targets.ts';
import { isWorkflowRunning, type TemporalClient } from '../../workers/connection/connection.ts';
import { openTarget } from '../../workers/tracking/open-target.ts';
import { tellTarget } from '../../workers/tracking/tracking.ts';
import { EXIT } from '../command-line/errors.ts';
import { tryServer } from '../../operations/server.ts';
import { printJson } from '../terminal/output.ts';
import type { TrackContext } from './command.ts';

const ANSWER_WITHIN_MS = 5000;

export async function track(context: TrackContext): Promise<number> {
  const { flags, args, project, env } = context;
  const store = await openProjectStore(project, env);
  await requireRun(store, args.run);
  if (flags.to.length === 0) return show(context, store);
  const config = await loadConfig(project, env);
  const settings = flags.to.map((name) => settingsOfTarget(config, name));
  const place = { store, project, env, fetch: globalThis.fetch };
  const targets = settings.map((each) => openTarget(each, place));
  const server = await tryServer({ project, env }, ANSWER_WITHIN_MS);
  try {
    const told = server === null ? [] : await tellByWorkers(context, { store, config, server }, targets);
    for (const target of targets) if (!told.includes(target)) await tellHere(context, store, target);
  } finally {
    await server?.close();
  }
  return EXIT.ok;
}

interface TrackServer {
  readonly store: Store;
  readonly config: TemperConfig;
  readonly server: TemporalClient;
}

/** Targets of a run that goes on, and those that are being told of one that has ended. */
async function tellByWorkers(
  { args: { run }, flags, output }: TrackContext,
  { store, config, server: { client } }: TrackServer,
  targets: readonly Target[],
): Promise<Target[]> {
  const storeId = await store.id();
  const isRunning = await isWorkflowRunning(client, runWorkflowId(storeId, run));
  const told: Target[] = [];
  for (const target of targets) {
    if (!isRunning && !(await isWorkflowRunning(client, trackWorkflowId(storeId, run, target.name)))) continue;
    const from = flags.backfill ? 'start' : 'now';
    await tellTarget(client, { storeId, workflows: config.queues.workflows }, { run, target: target.name, from });
    output.line(`${target.name} is told of ${run} by the workers; see temper track ${run}`);
    told.push(target);
  }
  return told;
}

/** An ended run, or one whose server is away. */
async function tellHere({ flags, args, output, signal }: TrackContext, store: Store, target: Target): Promise<void> {
  const known = await readCursor(store, args.run, target.name);
  if (known === null && !flags.backfill)
    throw badConfig(
      `${args.run} has ended, and ${target.name} knows nothing of it; pass --backfill to tell it all steps`,
    );
  const snapshot = await new SnapshotReader(store, args.run).read();
  if (snapshot === null) throw badConfig(`${args.run} has taken no step yet; start it with temper train`);
  const outcome = endOf(snapshot);
  const scope = { store, signal, checkFresh: () => undefined };
  try {
    while (await tellNext(target, snapshot, { outcome, from: 'start' }, scope)) signal.throwIfAborted();
  } catch (error) {
    signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    throw new WorkFailed(`${target.name} was not told all of ${args.run}: ${reason}; run this command again`, {
      cause: error,
    });
  }
  const { url } = (await listTold(store, args.run)).find((each) => each.target === target.name) ?? { url: null };
  output.line(`${target.name} knows ${args.run} up to step ${snapshot.state.step}${url === null ? '' : `: ${url}`}`);
}

/** A script's run, and one that is started again, goes on: its end is told then. */
function endOf(snapshot: RunSnapshot): ReturnType<typeof runOutcomeOf> | null {
  return isEnded(snapshot.state) ? runOutcomeOf(snapshot) : null;
}

async function show({ args, flags, output }: TrackContext, store: Store): Promise<number> {
  const told = await listTold(store, args.run);
  if (flags.json) {
    printJson(output, { run: args.run, trackers: told });
    return EXIT.ok;
  }
  if (told.length === 0)
    output.line(`no tracker knows ${args.run}; tell one with temper track ${args.run} --to wandb --backfill`);
  for (const { target, branch, step, evaluations, ended, url, failure } of told) {
    const place = branch === 0 ? `step ${step}` : `step ${step} of branch ${branch}`;
    const end = ended === null ? '' : `, and its end (${ended})`;
    output.line(`${target}: up to ${place}, ${evaluations} evaluations${end}${url === null ? '' : ` · ${url}`}`);
    if (failure !== null) output.line(`  it does not know more yet: ${failure}`);
  }
  return EXIT.ok;
}
