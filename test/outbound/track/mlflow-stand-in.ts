/** MLflow's REST interface 2.0 as version 3.17 documents it, with its limits: a metric's identity is all of it. */
import { normalize } from 'node:path/posix';
import { z } from 'zod';
import { Refused, startStandIn, type StandIn, type StandInAnswer, type StandInOptions } from '../stand-in.ts';

export interface MlflowRun {
  id: string;
  experiment: string;
  status: string;
  tags: Record<string, string>;
  params: Record<string, string>;
  /** Keyed by key, step, time and value. */
  metrics: Map<string, { key: string; value: number; step: number; timestamp: number }>;
}

export interface MlflowStandIn extends StandIn {
  readonly runs: MlflowRun[];
}

const isPath = (name: string) => normalize(name) === name && !/^(?:\/|\.$|\.\.)/.test(name);
const metricName = z
  .string()
  .regex(/^[\w\-. :/]{1,250}$/)
  .refine(isPath);
const pair = z.strictObject({ key: metricName, value: z.string().max(6000) });
const tag = z.strictObject({ key: z.string().max(250), value: z.string().max(8000) });
const LogBatch = z.strictObject({
  run_id: z.string(),
  metrics: z
    .array(z.strictObject({ key: pair.shape.key, value: z.number(), timestamp: z.int(), step: z.int() }))
    .max(1000)
    .optional(),
  params: z.array(pair).max(100).optional(),
  tags: z.array(tag).max(100).optional(),
});
const Search = z.strictObject({ experiment_ids: z.array(z.string()), filter: z.string(), max_results: z.int() });
const Create = z.strictObject({
  experiment_id: z.string(),
  run_name: z.string(),
  start_time: z.int(),
  tags: z.array(tag),
});
const Update = z.strictObject({ run_id: z.string(), status: z.string(), end_time: z.int().optional() });

export async function startMlflow(options: Pick<StandInOptions, 'fault' | 'hold'> = {}): Promise<MlflowStandIn> {
  const experiments = new Map<string, string>();
  const runs: MlflowRun[] = [];
  const find = (id: string): MlflowRun => {
    const run = runs.find((each) => each.id === id);
    if (run === undefined) throw new Refused(404, 'no such run');
    return run;
  };
  const post = (path: string, answer: (json: <T>(schema: z.ZodType<T>) => T) => StandInAnswer) => ({
    method: 'POST',
    path: new RegExp(`^/api/2\\.0/mlflow/${path}$`),
    answer: ({ json }: { json: <T>(schema: z.ZodType<T>) => T }) => answer(json),
  });
  const server = await startStandIn({
    ...options,
    key: '',
    authorization: null,
    routes: [
      {
        method: 'GET',
        path: /^\/api\/2\.0\/mlflow\/experiments\/get-by-name$/,
        answer({ query }) {
          const id = experiments.get(query.get('experiment_name') ?? '');
          if (id === undefined) throw new Refused(404, 'RESOURCE_DOES_NOT_EXIST');
          return { json: { experiment: { experiment_id: id } } };
        },
      },
      post('experiments/create', (json) => {
        const { name } = json(z.strictObject({ name: z.string() }));
        if (experiments.has(name)) throw new Refused(400, 'RESOURCE_ALREADY_EXISTS');
        experiments.set(name, String(experiments.size + 1));
        return { json: { experiment_id: experiments.get(name) } };
      }),
      post('runs/search', (json) => {
        const { experiment_ids: ids, filter } = json(Search);
        const id = /^tags\.`temper\.id` = '([^']+)'$/.exec(filter)?.[1];
        const found = runs.filter((run) => ids.includes(run.experiment) && run.tags['temper.id'] === id);
        return { json: { runs: found.map((run) => ({ info: { run_id: run.id } })) } };
      }),
      post('runs/create', (json) => {
        const { experiment_id: experiment, tags } = json(Create);
        const id = `run${runs.length}`;
        const named = Object.fromEntries(tags.map(({ key, value }) => [key, value]));
        runs.push({ id, experiment, status: 'RUNNING', tags: named, params: {}, metrics: new Map() });
        return { json: { run: { info: { run_id: id } } } };
      }),
      post('runs/update', (json) => {
        const { run_id: id, status } = json(Update);
        find(id).status = status;
        return { json: {} };
      }),
      post('runs/log-batch', (json) => {
        const { run_id: id, metrics = [], params = [], tags = [] } = json(LogBatch);
        const run = find(id);
        for (const metric of metrics) run.metrics.set(JSON.stringify(metric), metric);
        for (const { key, value } of params) {
          if ((run.params[key] ?? value) !== value) throw new Refused(400, 'a parameter cannot change');
          run.params[key] = value;
        }
        for (const { key, value } of tags) run.tags[key] = value;
        return { json: {} };
      }),
    ],
  });
  return { ...server, runs };
}
