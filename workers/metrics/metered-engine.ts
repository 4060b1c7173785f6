/** Connections to the engine whose calls are counted and timed, each try by itself. */
import type { EngineConnection } from '../../play/connections/engine-connection.ts';
import type { Histogram } from './instruments.ts';

/** Status of a call without a complete answer: refused, cut, out of time, or aborted. */
const NO_ANSWER = 'none';

export function meteredEngine(engine: EngineConnection, agent: string, seconds: Histogram): EngineConnection {
  return {
    url: engine.url,
    keyVariable: engine.keyVariable,
    async post(body, options) {
      const startedAt = performance.now();
      let status = NO_ANSWER;
      try {
        const answer = await engine.post(body, options);
        status = String(answer.status);
        return answer;
      } finally {
        seconds.observe([agent, status], (performance.now() - startedAt) / 1000);
      }
    },
    close: () => engine.close(),
  };
}
