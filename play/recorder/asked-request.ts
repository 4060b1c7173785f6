import { TemperError } from '../../core/failures.ts';
import type { ChatMessage } from '../../store/records/trajectories.ts';

/** What an agent asks, in the terms of chat completions; dialects translate into them. */
export interface AskedRequest {
  messages: ChatMessage[];
  [parameter: string]: unknown;
}

export function badParameter(name: string, value: unknown, rule: string, remedy: string): TemperError {
  const shown = (JSON.stringify(value) ?? 'nothing').slice(0, 100);
  return new TemperError('BadConfig', `${name} ${rule}, got ${shown}; ${remedy}`);
}
