/** Rows of a data set of W&B Weave, by its service API: an object that names a table. */
import { z } from 'zod';

import { TemperError } from '../../core/failures.ts';
import { weaveAccess } from '../../core/weave.ts';
import { RowSource, type Identified, type MapOptions, type Row } from './row-source.ts';
import { askService, type Service } from './service-client.ts';

export interface WeaveOptions<R, S> extends MapOptions<R, S> {
  /** Version of the data set: its digest, or an alias; by default `latest`. */
  version?: string;
}

const Dataset = z.object({ obj: z.object({ val: z.looseObject({ rows: z.string() }) }) });
const Table = z.object({ rows: z.array(z.object({ digest: z.string(), val: z.record(z.string(), z.unknown()) })) });

/** `weave:///entity/project/table/DIGEST` */
const TABLE = /^weave(?:-trace-internal)?:\/\/\/.*\/table\/([A-Za-z0-9]+)$/;
const ROWS_AT_ONCE = 200;

/** `place` is `entity/project/name`. A row without an id gets its digest as one. */
export function weaveSource<R, S extends Identified>(
  place: string,
  { map, version = 'latest' }: WeaveOptions<R, S> = {},
  env: NodeJS.ProcessEnv = process.env,
): RowSource<S> {
  const name = `the data set ${place} of Weave`;
  return new RowSource(() => ({ name, unit: 'row', isTable: true, read: () => readRows(place, version, env) }), map);
}

async function* readRows(place: string, version: string, env: NodeJS.ProcessEnv): AsyncGenerator<Row> {
  const [entity, project, id] = place.split('/');
  const { url, key } = weaveAccess(env);
  const headers = { authorization: `Basic ${btoa(`api:${key}`)}` };
  const service: Service = { name: 'Weave', url, headers, keys: 'WANDB_API_KEY' };
  const projectId = `${entity}/${project}`;
  const what = `the data set ${place}`;
  const object = { project_id: projectId, object_id: id, digest: version };
  const { obj } = await askService(service, { what, path: '/obj/read', body: object }, Dataset);
  const digest = TABLE.exec(obj.val.rows)?.[1];
  if (digest === undefined)
    throw new TemperError('BadConfig', `${what} of Weave must be a Dataset with a table of rows; name another object`);
  for (let offset = 0; ; offset += ROWS_AT_ONCE) {
    const body = { project_id: projectId, digest, limit: ROWS_AT_ONCE, offset };
    const { rows } = await askService(service, { what, path: '/table/query', body }, Table);
    for (const [index, row] of rows.entries())
      yield { value: { id: row.digest, ...row.val }, number: offset + index + 1 };
    if (rows.length < ROWS_AT_ONCE) return;
  }
}
