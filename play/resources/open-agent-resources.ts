import { Leases } from '../../store/records/leases.ts';
import type { Store } from '../../store/store.ts';
import { AgentResources, type ResourceLogger } from './agent-resources.ts';
import type { Resources } from './resource.ts';

/** With leases in the store; null for an agent without resources. */
export function openAgentResources(
  { name, resources }: { readonly name: string; readonly resources?: Resources },
  store: Store,
  logger?: ResourceLogger,
): AgentResources | null {
  if (resources === undefined) return null;
  const leases = new Leases(store, name);
  return new AgentResources({ agent: name, resources, leases, ...(logger && { logger }) });
}
