/** A run's held-out scenarios as a data set of Langfuse, and each evaluation of them as an experiment on it. */
import { hash } from 'node:crypto';

import { policyName } from '../../core/policy-name.ts';
import { readPrepared, streamStoredScenarios } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { LangfuseApi } from './langfuse-api.ts';
import type { Attributes } from './otlp/span.ts';
import type { TracedGroup } from './traced.ts';

/** A data set is for people: those of a very large run are its first ones. */
const MOST_ITEMS = 1000;

/** The id of the data set. */
export async function putHeldOut(api: LangfuseApi, store: Store, run: string, dataset: string): Promise<string> {
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

export function experimentAttributes(
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
