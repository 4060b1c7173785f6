/** A Trackio server: `bulk_log` with an id for each row, of which it keeps the first. */
import { withoutSlash } from '../../core/names/addresses.ts';
import type { TrackioSettings } from '../../core/contract/outbound.ts';
import { callHttp, type HttpCaller, type HttpRequest } from '../../core/text/http.ts';
import type { Target, Delivery } from '../target.ts';
import { latestMetrics, describeConfig, shownName, trackerRunId, type TrackerPlace } from './tracker-run.ts';
import { metricsOfRow } from './metric-names.ts';

const LOCAL = 'http://127.0.0.1:7860';
const TOKEN_VARIABLE = 'TRACKIO_WRITE_TOKEN';
const HUB_VARIABLE = 'HF_TOKEN';

interface Entry {
  readonly id: string;
  readonly step: number;
  readonly metrics: Readonly<Record<string, number | string>>;
}

export function createTrackioTracker(settings: TrackioSettings, { env, fetch }: TrackerPlace): Target {
  const log = async (delivery: Delivery, entries: readonly Entry[]): Promise<void> => {
    const baseUrl = trackioUrl(settings, env);
    const project = settings.project ?? (env['TRACKIO_PROJECT'] || delivery.run.config.agent);
    await bulkLog(trackioCaller(baseUrl, { env, fetch, signal: delivery.signal }), baseUrl, {
      project,
      delivery,
      entries,
    });
  };
  return {
    name: settings.name,
    batch: 200,
    onRollback: 'restart',
    // A run begins with its first row, which brings the configuration.
    begin: (delivery) => Promise.resolve({ id: trackerRunId(delivery) }),
    deliver: (delivery, rows) =>
      log(
        delivery,
        rows.map((row) => ({ id: String(row.number), step: row.step, metrics: metricsOfRow(row) })),
      ),
    async end(delivery, outcome) {
      // Trackio has no states: the end is a row of its own.
      const { training_step: step = 0, ...latest } = latestMetrics(delivery);
      const results = Object.entries(latest).filter(([name]) => /^(before|after|best)\//.test(name));
      const metrics = { ...Object.fromEntries(results), outcome };
      await log(delivery, [{ id: `end-${outcome}-${delivery.rows}`, step, metrics }]);
    },
  };
}

export function trackioUrl({ url }: Pick<TrackioSettings, 'url'>, env: NodeJS.ProcessEnv): string {
  return withoutSlash(url ?? (env['TRACKIO_SERVER_URL'] || LOCAL));
}

/** A Space knows the hub's token. No other server gets it: on this machine, anybody may listen on the usual port. */
export function trackioCaller(
  baseUrl: string,
  { env, fetch, signal }: Pick<TrackerPlace, 'env' | 'fetch'> & Pick<Delivery, 'signal'>,
): HttpCaller {
  const variable = !env[TOKEN_VARIABLE] && isOfHub(baseUrl, env) ? HUB_VARIABLE : TOKEN_VARIABLE;
  return { system: 'Trackio', keyVariable: variable, key: env[variable] || null, fetch, signal };
}

function isOfHub(baseUrl: string, env: TrackerPlace['env']): boolean {
  const [url, hub] = [baseUrl, env['HF_ENDPOINT'] ?? ''].map((text) => (URL.canParse(text) ? new URL(text) : null));
  if (url == null) return false;
  return url.origin === hub?.origin || /^https:\/\/([^/]+\.)?(hf\.space|huggingface\.co)$/.test(url.origin);
}

async function bulkLog(
  caller: HttpCaller,
  baseUrl: string,
  { project, delivery, entries }: { project: string; delivery: Delivery; entries: readonly Entry[] },
): Promise<void> {
  const runId = trackerRunId(delivery);
  const config = { ...describeConfig(delivery), _Group: delivery.run.group ?? delivery.run.run };
  const logs = entries.map(({ id, step, metrics }) => ({
    project,
    run: shownName(delivery),
    run_id: runId,
    metrics,
    step,
    config,
    log_id: `${runId}/${id}`,
  }));
  await callHttp(caller, logRequest(caller, baseUrl, logs));
}

/** Without entries, it says whether the token may write, and changes nothing. */
export function logRequest({ key, keyVariable }: HttpCaller, baseUrl: string, logs: readonly object[]): HttpRequest {
  const isOwn = keyVariable === TOKEN_VARIABLE;
  return {
    method: 'POST',
    url: `${baseUrl}/api/bulk_log`,
    json: { logs, hf_token: isOwn ? null : key },
    headers: isOwn && key !== null ? { 'x-trackio-write-token': key } : {},
  };
}
