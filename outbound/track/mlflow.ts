/**
 * An MLflow server, by its REST interface 2.0. A metric's key, step, time and value are its identity there, and they come
 * from the store: a repeated delivery changes nothing. A run is found by its tag before it is made.
 */
import { withoutSlash } from '../../core/names/addresses.ts';
import type { MlflowSettings } from '../../core/contract/outbound.ts';
import { hashOf } from '../../core/text/hashes.ts';
import { badConfig } from '../../core/contract/failures.ts';
import {
  callHttp,
  explainRefusal,
  type TargetAnswer,
  type HttpCaller,
  type HttpRequest,
} from '../../core/text/http.ts';
import type { DeliveryRow, Target, Delivery } from '../target.ts';
import { latestMetrics, describeConfig, flatten, shownName, trackerRunId, type TrackerPlace } from './tracker-run.ts';
import { metricsOfRow } from './metric-names.ts';

const LOCAL = 'http://127.0.0.1:5000';
const TOKEN_VARIABLE = 'MLFLOW_TRACKING_TOKEN';
const PASSWORD_VARIABLE = 'MLFLOW_TRACKING_PASSWORD';
/** Limits of log-batch. */
const MOST_METRICS = 1000;
const MOST_PARAMS = 100;
const MOST_VALUE = 6000;
/** The tag by which a run is found again. */
const ID_TAG = 'temper.id';

const STATES = {
  finished: 'FINISHED',
  stopped: 'FINISHED',
  'rolled back': 'FINISHED',
  cancelled: 'KILLED',
  failed: 'FAILED',
  crashed: 'FAILED',
} as const;

export interface MlflowApi {
  readonly caller: HttpCaller;
  readonly baseUrl: string;
  readonly headers: Record<string, string>;
}

export function createMlflowTracker(settings: MlflowSettings, { env, fetch }: TrackerPlace): Target {
  const open = ({ signal }: Delivery): MlflowApi => openMlflow(settings, env, { fetch, signal });
  return {
    name: settings.name,
    batch: 20,
    onRollback: 'restart',
    async begin(delivery) {
      const api = open(delivery);
      const name = settings.experiment ?? (env['MLFLOW_EXPERIMENT_NAME'] || delivery.run.config.agent);
      const experiment = await findOrMakeExperiment(api, name);
      const id =
        (await findRun(api, experiment, delivery)) ?? (await makeRun(api, experiment, delivery, settings.tags));
      await call(api, 'runs/update', { run_id: id, status: 'RUNNING' });
      await logParams(api, id, flatten(describeConfig(delivery)));
      return { experiment, id, url: `${api.baseUrl}/#/experiments/${experiment}/runs/${id}` };
    },
    async deliver(delivery, rows) {
      const metrics = rows.flatMap((row) => metricsOf(row, metricsOfRow(row)));
      for (const part of parts(metrics, MOST_METRICS))
        await call(open(delivery), 'runs/log-batch', { run_id: delivery.memory['id'], metrics: part });
    },
    async end(delivery, outcome) {
      const api = open(delivery);
      const best = Object.entries(latestMetrics(delivery)).filter(([name]) => name.startsWith('best/'));
      const tags = [
        { key: 'temper.outcome', value: outcome },
        ...best.map(([key, value]) => ({ key: `temper.${key}`, value: String(value) })),
        ...(delivery.run.failure === null
          ? []
          : [{ key: 'temper.failure', value: delivery.run.failure.slice(0, 2000) }]),
      ];
      await call(api, 'runs/log-batch', { run_id: delivery.memory['id'], tags });
      const endedAt = Math.max(delivery.run.beganAt, ...delivery.newest.map(({ at }) => at));
      await call(api, 'runs/update', { run_id: delivery.memory['id'], status: STATES[outcome], end_time: endedAt });
    },
  };
}

export function openMlflow(
  { url }: Pick<MlflowSettings, 'url'>,
  env: NodeJS.ProcessEnv,
  { fetch, signal }: Pick<HttpCaller, 'fetch' | 'signal'>,
): MlflowApi {
  const baseUrl = withoutSlash(url ?? (env['MLFLOW_TRACKING_URI'] || LOCAL));
  const variable = env[TOKEN_VARIABLE] ? TOKEN_VARIABLE : PASSWORD_VARIABLE;
  const caller = { system: 'MLflow', keyVariable: variable, key: env[variable] || null, fetch, signal };
  const password = (variable === PASSWORD_VARIABLE && env[PASSWORD_VARIABLE]) || undefined;
  const login = `${env['MLFLOW_TRACKING_USERNAME'] ?? ''}:${password ?? ''}`;
  return {
    caller,
    baseUrl,
    headers: password === undefined ? {} : { authorization: `Basic ${Buffer.from(login).toString('base64')}` },
  };
}

export async function findOrMakeExperiment(api: MlflowApi, name: string): Promise<string> {
  const find = () => call(api, `experiments/get-by-name?experiment_name=${encodeURIComponent(name)}`, null, [404]);
  const found = await find();
  if (found.status !== 404) return textAt(found, 'experiment', 'experiment_id');
  const made = await call(api, 'experiments/create', { name }, [400]);
  if (made.status !== 400) return textAt(made, 'experiment_id');
  if (!made.text.includes('RESOURCE_ALREADY_EXISTS'))
    throw explainRefusal(api.caller, requestOf(api, 'experiments/create', { name }), made);
  // Two runs that begin together: the second one finds it.
  const others = await find();
  if (others.status !== 404) return textAt(others, 'experiment', 'experiment_id');
  throw badConfig(
    `the experiment ${JSON.stringify(name)} of MLflow is deleted, or belongs to others; restore it, or set experiment in mlflow({ … })`,
  );
}

async function findRun(api: MlflowApi, experiment: string, delivery: Delivery): Promise<string | null> {
  const filter = `tags.\`${ID_TAG}\` = '${trackerRunId(delivery)}'`;
  const answer = await call(api, 'runs/search', { experiment_ids: [experiment], filter, max_results: 1 });
  const { runs = [] } = answer.json as { runs?: { info?: { run_id?: string } }[] };
  return runs[0]?.info?.run_id ?? null;
}

async function makeRun(
  api: MlflowApi,
  experiment: string,
  delivery: Delivery,
  own: Readonly<Record<string, string>>,
): Promise<string> {
  const { run } = delivery;
  const tags = {
    ...own,
    'mlflow.runName': shownName(delivery),
    'mlflow.source.name': run.config.agent,
    [ID_TAG]: trackerRunId(delivery),
    'temper.run': run.run,
    'temper.branch': String(delivery.branch),
    'temper.group': run.group ?? run.run,
    ...(run.config.parent && { 'temper.forked_from': `${run.config.parent.run}@${run.config.parent.step}` }),
  };
  const answer = await call(api, 'runs/create', {
    experiment_id: experiment,
    run_name: shownName(delivery),
    start_time: run.beganAt,
    tags: Object.entries(tags).map(([key, value]) => ({ key, value })),
  });
  return textAt(answer, 'run', 'info', 'run_id');
}

async function logParams(api: MlflowApi, id: string, params: Readonly<Record<string, string>>): Promise<void> {
  const all = Object.entries(params).map(([key, value]) => ({ key: keyOf(key), value: value.slice(0, MOST_VALUE) }));
  for (const part of parts(all, MOST_PARAMS)) await call(api, 'runs/log-batch', { run_id: id, params: part });
}

function metricsOf({ at, step }: DeliveryRow, metrics: Readonly<Record<string, number>>): object[] {
  return Object.entries(metrics).map(([key, value]) => ({ key: keyOf(key), value, timestamp: at, step }));
}

const MOST_KEY = 250;

/**
 * Letters, digits and `_-. :/` are all that a name may have, and it must be a path in its shortest form. A name that is
 * changed gets a part of its hash, so that two names never become one.
 */
function keyOf(name: string): string {
  const folders = name.replaceAll(/[^\w\-. :/]/g, '_').split('/');
  const key = folders
    .map((part) => (/^\.{0,2}$/.test(part) ? part.padEnd(1, '_').replaceAll('.', '_') : part))
    .join('/');
  return key === name && key.length <= MOST_KEY ? key : `${key.slice(0, MOST_KEY - 7)}_${hashOf(name).slice(0, 6)}`;
}

function call(
  api: MlflowApi,
  path: string,
  json: object | null,
  expected: readonly number[] = [],
): Promise<TargetAnswer> {
  return callHttp(api.caller, { ...requestOf(api, path, json), expected });
}

function requestOf({ baseUrl, headers }: MlflowApi, path: string, json: object | null): HttpRequest {
  const request = { url: `${baseUrl}/api/2.0/mlflow/${path}`, headers };
  return json === null ? request : { ...request, method: 'POST', json };
}

function parts<T>(all: readonly T[], most: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / most) }, (_, index) =>
    all.slice(index * most, (index + 1) * most),
  );
}

function textAt({ json }: TargetAnswer, ...path: readonly string[]): string {
  return String(path.reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], json));
}
