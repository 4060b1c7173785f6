/** Items of a data set of Langfuse, page by page: https://api.reference.langfuse.com. */
import { z } from 'zod';

import { langfuseAccess } from '../../core/langfuse.ts';
import { RowSource, type Identified, type MapOptions, type Row } from './row-source.ts';
import { askService, type Service } from './service-client.ts';

/** A row: what an item holds, with its input at hand. */
export interface LangfuseItem {
  readonly id: string;
  readonly input: unknown;
  readonly expectedOutput: unknown;
  readonly metadata: unknown;
}

export interface LangfuseOptions<S> extends MapOptions<LangfuseItem, S> {
  /** The data set as it was at this time, ISO 8601; by default the newest. */
  version?: string;
}

const Page = z.object({
  data: z.array(
    z.looseObject({
      id: z.string(),
      status: z.string().optional(),
      input: z.unknown().optional(),
      expectedOutput: z.unknown().optional(),
      metadata: z.unknown().optional(),
    }),
  ),
  meta: z.object({ totalPages: z.int() }),
});

const ITEMS_AT_ONCE = 100;

export function langfuseService(env: NodeJS.ProcessEnv): Service {
  const { url, authorization } = langfuseAccess(env);
  return { name: 'Langfuse', url, headers: { authorization }, keys: 'LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY' };
}

export function langfuseSource<S extends Identified>(
  dataset: string,
  { map, version }: LangfuseOptions<S> = {},
  env: NodeJS.ProcessEnv = process.env,
): RowSource<S> {
  const name = `the data set ${dataset} of Langfuse`;
  const read = () => readItems(dataset, version, env);
  return new RowSource(() => ({ name, unit: 'row', isTable: true, read }), map);
}

/** Archived items are left out. */
async function* readItems(dataset: string, version: string | undefined, env: NodeJS.ProcessEnv): AsyncGenerator<Row> {
  const service = langfuseService(env);
  let number = 0;
  for (let page = 1; ; page++) {
    const query = {
      datasetName: dataset,
      page: String(page),
      limit: String(ITEMS_AT_ONCE),
      ...(version && { version }),
    };
    const question = { what: `the data set ${dataset}`, path: '/api/public/dataset-items', query };
    const { data, meta } = await askService(service, question, Page);
    for (const { id, status, input = null, expectedOutput = null, metadata = null } of data) {
      number += 1;
      if (status !== 'ARCHIVED') yield { value: { id, input, expectedOutput, metadata }, number };
    }
    if (page >= meta.totalPages) return;
  }
}
