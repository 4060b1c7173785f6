import { badConfig, type TemperError } from '../../core/failures.ts';
import type { ChatMessage } from '../../store/records/trajectories.ts';

/** An agent's request in the form of chat completions, into which dialects translate. */
export interface AskedRequest {
  messages: ChatMessage[];
  [parameter: string]: unknown;
}

export function badParameter(name: string, value: unknown, rule: string, remedy: string): TemperError {
  const shown = (JSON.stringify(value) ?? 'nothing').slice(0, 100);
  return badConfig(`${name} ${rule}, got ${shown}; ${remedy}`);
}
