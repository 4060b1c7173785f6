/** Prepares a run's namespace: a year of history, and the search attributes that its workflow writes. */
import { msToTs, tsToMs } from '@temporalio/common/lib/time.js';
import proto from '@temporalio/proto';
import { SEARCH_ATTRIBUTES } from '../../workflows/search-attributes.ts';
import { patiently, type TemporalClient } from './connection.ts';

const RETENTION_MS = 365 * 24 * 60 * 60 * 1000;
const READY_WITHIN_MS = 20_000;

const { IndexedValueType } = proto.temporal.api.enums.v1;
const TYPES = {
  Keyword: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
  Int: IndexedValueType.INDEXED_VALUE_TYPE_INT,
  Double: IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
} as const;

/** The dev server keeps finished runs for a day by default. */
export function keepHistoryForAYear({ connection: { workflowService }, namespace }: TemporalClient): Promise<void> {
  const raise = async () => {
    const retention = (await workflowService.describeNamespace({ namespace })).config?.workflowExecutionRetentionTtl;
    if (retention && tsToMs(retention) >= RETENTION_MS) return;
    await workflowService.updateNamespace({
      namespace,
      config: { workflowExecutionRetentionTtl: msToTs(RETENTION_MS) },
    });
  };
  return patiently(raise, { limitMs: READY_WITHIN_MS });
}

/** The names that the namespace does not know yet. */
export async function missingSearchAttributes({ connection, namespace }: TemporalClient): Promise<AttributeName[]> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  return (Object.keys(SEARCH_ATTRIBUTES) as AttributeName[]).filter((name) => !(name in customAttributes));
}

type AttributeName = keyof typeof SEARCH_ATTRIBUTES;

/** Safe to repeat; two starts at once both succeed. */
export function registerSearchAttributes(temporal: TemporalClient): Promise<void> {
  const register = async () => {
    const missing = await missingSearchAttributes(temporal);
    if (missing.length === 0) return;
    const searchAttributes = Object.fromEntries(missing.map((name) => [name, TYPES[SEARCH_ATTRIBUTES[name]]]));
    await temporal.connection.operatorService.addSearchAttributes({ namespace: temporal.namespace, searchAttributes });
  };
  return patiently(register, { limitMs: READY_WITHIN_MS });
}
