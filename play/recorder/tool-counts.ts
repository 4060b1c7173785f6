import type { Metrics } from '../../core/numbers/statistics.ts';
import type { CallRequest } from '../../store/records/groups/trajectories.ts';
import type { Completion } from '../connections/completion.ts';

/** The tool calls of one attempt, as metrics; none where no tools were offered. */
export class ToolCounts {
  #offered = false;
  #calls = 0;
  #malformed = 0;

  add({ tools = [] }: CallRequest, { choices }: Completion): void {
    if (tools.length === 0) return;
    this.#offered = true;
    for (const { message, malformed_tool_calls: malformed = 0 } of choices) {
      this.#calls += Array.isArray(message.tool_calls) ? message.tool_calls.length : 0;
      this.#malformed += malformed;
    }
  }

  metrics(): Metrics {
    return this.#offered ? { toolCalls: this.#calls, malformedToolCalls: this.#malformed } : {};
  }
}
