/** Tells a run as traces: one for each step, with its groups, and one for each attempt that is sent. */
import type { TraceSettings } from '../../core/contract/trace.ts';
import type { Store } from '../../store/store.ts';
import type { HttpCaller } from '../../core/text/http.ts';
import type { TargetMemory, DeliveryRow, RunFacts, StepRow, Target, Delivery } from '../target.ts';
import { attemptRoot, attemptSpans, nameAttempt, sampleAttempts } from './attempt-spans.ts';
import { SCHEMA_URL } from './conventions.ts';
import { endpointOf, langfuseAccess, lookUp } from './endpoint.ts';
import { verdictsOf } from './evaluation-events.ts';
import { shareOf } from './ids.ts';
import { LangfuseApi, type ScoredAttempt } from './langfuse-api.ts';
import type { Attributes, Span, SpanLink } from './otlp/span.ts';
import { readEvaluation, readStepGroups } from './read-groups.ts';
import { TraceSender } from './send-traces.ts';
import { groupLink, groupSpan, runSpan, stepSpan } from './step-spans.ts';
import type { TracedGroup, TracedRun } from './traced.ts';
import { hash } from 'node:crypto';
import { policyName } from '../../core/names/policy-name.ts';
import { readPrepared, streamStoredScenarios } from '../../store/records/runs/run-reader.ts';

export interface TracePlace {
  readonly store: Store;
  /** Keys are in it alone. */
  readonly env: NodeJS.ProcessEnv;
  readonly fetch: HttpCaller['fetch'];
  /** Version of this package. */
  readonly version: string;
}

/** Keys are looked for when there is something to deliver. */
export function openTraceTarget(settings: TraceSettings, place: TracePlace): Target {
  return new TraceTarget(settings, place);
}

class TraceTarget implements Target {
  readonly name: string;
  /** A step may have thousands of attempts: it is a delivery by itself. */
  readonly batch = 1;
  /** Ids distinguish branches. */
  readonly onRollback = 'continue';
  readonly #settings: TraceSettings;
  readonly #place: TracePlace;

  constructor(settings: TraceSettings, place: TracePlace) {
    this.name = settings.name;
    this.#settings = settings;
    this.#place = place;
  }

  async begin({ run, signal }: Delivery): Promise<TargetMemory> {
    const { env, fetch, store } = this.#place;
    const { agent } = run.config;
    const memory = await lookUp(this.#settings, agent, env, { fetch, signal });
    // Missing keys are named before the first step.
    endpointOf(this.#settings, agent, env, memory, { fetch, signal });
    const api = this.#langfuse(signal);
    const dataset = datasetOf(this.#settings);
    if (api === null || dataset === null) return memory;
    return { ...memory, datasetId: await putHeldOut(api, store, run.run, dataset) };
  }

  async deliver(delivery: Delivery, rows: readonly DeliveryRow[]): Promise<void> {
    for (const row of rows) {
      const rowExport = new RowExport(this.#settings, this.#place, delivery, this.#langfuse(delivery.signal));
      await (row.kind === 'step' ? rowExport.step(row) : rowExport.evaluation(row));
    }
  }

  /** Times come from the store: the run is over with its last commit. */
  async end(delivery: Delivery, outcome: string): Promise<void> {
    const { beganAt, failure } = delivery.run;
    const endedAt = Math.max(beganAt, ...delivery.newest.map(({ at }) => at));
    const sender = openSender(this.#settings, this.#place, delivery);
    await sender.add([runSpan(tracedRun(delivery.run, this.#settings), { beganAt, endedAt, outcome, failure })]);
    await sender.flush();
  }

  /** Null for another target. */
  #langfuse(signal: AbortSignal): LangfuseApi | null {
    if (this.#settings.kind !== 'langfuse') return null;
    const { env, fetch } = this.#place;
    const { url, environment } = this.#settings;
    return new LangfuseApi(langfuseAccess(env, url), environment, { fetch, signal });
  }
}

function datasetOf(settings: TraceSettings): string | null {
  return settings.kind === 'langfuse' ? settings.dataset : null;
}

function openSender(settings: TraceSettings, { env, fetch, version }: TracePlace, delivery: Delivery): TraceSender {
  const endpoint = endpointOf(settings, delivery.run.config.agent, env, delivery.memory, {
    fetch,
    signal: delivery.signal,
  });
  const resource = { 'service.name': 'temper', 'service.version': version, ...endpoint.resource };
  const source = { resource, scope: { name: 'temper-rl', version }, schemaUrl: SCHEMA_URL };
  return new TraceSender(endpoint, source);
}

function tracedRun(
  { run, storeId, config, agentCodeSha256 }: RunFacts,
  { content, maxTextLength }: TraceSettings,
): TracedRun {
  const { agent, baseModel } = config;
  return { storeId, run, agent, agentCodeSha256, baseModel, content, maxTextLength };
}

/** One row on its way: groups are read, sent and let go one after the other. */
class RowExport {
  readonly #settings: TraceSettings;
  readonly #store: Store;
  readonly #run: TracedRun;
  readonly #memory: TargetMemory;
  readonly #sender: TraceSender;
  readonly #langfuse: LangfuseApi | null;

  constructor(settings: TraceSettings, place: TracePlace, delivery: Delivery, langfuse: LangfuseApi | null) {
    this.#settings = settings;
    this.#store = place.store;
    this.#run = tracedRun(delivery.run, settings);
    this.#memory = delivery.memory;
    this.#sender = openSender(settings, place, delivery);
    this.#langfuse = langfuse;
  }

  async step({ branch, step, at, summary }: StepRow): Promise<void> {
    const place = { run: this.#run.run, branch, step };
    const groups: Span[] = [];
    for await (const group of readStepGroups(this.#store, place, at)) {
      const sent = await this.#attempts(group, groupLink(this.#run, place, group));
      groups.push(groupSpan(this.#run, place, group, sent));
    }
    await this.#sender.add([stepSpan(this.#run, { branch, summary, over: at }, groups), ...groups]);
    await this.#sender.flush();
  }

  async evaluation({ branch, step, at }: Pick<StepRow, 'branch' | 'step' | 'at'>): Promise<void> {
    const group = await readEvaluation(this.#store, { run: this.#run.run, branch, step }, at);
    if (group !== null) await this.#attempts(group, null);
    await this.#sender.flush();
  }

  /** Numbers of the attempts that were sent. */
  async #attempts(group: TracedGroup, link: SpanLink | null): Promise<number[]> {
    // An experiment has all of its items.
    const share = group.group === null && this.#memory['datasetId'] !== undefined ? 1 : this.#settings.share;
    const { storeId, run } = this.#run;
    const verdicts = verdictsOf(group);
    const drawn = group.attempts.map(({ attempt }, index) => ({
      draw: shareOf(storeId, run, nameAttempt(group, attempt)),
      reward: verdicts[index]!.reward,
    }));
    const chosen = sampleAttempts(drawn, share);
    const scored: ScoredAttempt[] = [];
    for (const [index, record] of group.attempts.entries()) {
      const [sampledBy, verdict] = [chosen[index], verdicts[index]!];
      if (sampledBy === undefined) continue;
      const root = attemptRoot(this.#run, group, record.attempt);
      const extra = this.#experiment(group, record.scenarioId, root.spanId);
      await this.#sender.add(attemptSpans(this.#run, group, record, { verdict, sampledBy, link, extra }));
      scored.push({ root, verdict, metadata: { run, step: group.step, attempt: nameAttempt(group, record.attempt) } });
    }
    if (this.#settings.kind === 'langfuse' && this.#settings.scores) {
      await this.#sender.flush();
      await this.#langfuse?.score(scored);
    }
    return group.attempts.filter((_, index) => chosen[index] !== undefined).map(({ attempt }) => attempt);
  }

  /** Empty but for an evaluation, if the run's held-out scenarios are a data set. */
  #experiment(group: TracedGroup, scenarioId: string | undefined, spanId: string): Attributes {
    const { datasetId } = this.#memory;
    const dataset = datasetOf(this.#settings);
    if (dataset === null || datasetId === undefined || group.group !== null || scenarioId === undefined) return {};
    return experimentAttributes({ run: this.#run.run, dataset, datasetId }, group, { scenarioId, spanId });
  }
}

/** A data set is for people: those of a very large run are its first ones. */
const MOST_ITEMS = 1000;

/** The id of the data set. */
async function putHeldOut(api: LangfuseApi, store: Store, run: string, dataset: string): Promise<string> {
  const prepared = await readPrepared(store, run);
  const items: Parameters<LangfuseApi['putDataset']>[1][number][] = [];
  if (prepared !== null) {
    const { trainScenarios: from, evalScenarios } = prepared;
    const to = from + Math.min(evalScenarios, MOST_ITEMS);
    for await (const { id, scenario } of streamStoredScenarios(store, prepared, from, to))
      items.push({ id: itemId(dataset, id), input: scenario, metadata: { scenario: id } });
  }
  return api.putDataset(dataset, items);
}

/** A run's held-out scenarios as a data set of Langfuse, and each evaluation of them as an experiment on it. */
function experimentAttributes(
  { run, dataset, datasetId }: { run: string; dataset: string; datasetId: string },
  { branch, step }: TracedGroup,
  { scenarioId, spanId }: { scenarioId: string; spanId: string },
): Attributes {
  const name = policyName({ run, branch, step });
  return {
    'langfuse.experiment.id': hash('sha256', `${datasetId}/${name}`).slice(0, 32),
    'langfuse.experiment.name': name,
    'langfuse.experiment.dataset.id': datasetId,
    'langfuse.experiment.item.id': itemId(dataset, scenarioId),
    'langfuse.experiment.item.root_observation_id': spanId,
  };
}

/** Ids are unique in a project, not in a data set: so the data set's name is in it. */
function itemId(dataset: string, scenario: string): string {
  return `temper-${hash('sha256', JSON.stringify([dataset, scenario])).slice(0, 32)}`;
}
