/** What `temper try --json` prints: everything but token ids and log-probabilities, which `--save` has. */
import { mean } from '../../core/statistics.ts';
import type { TriedAttempt, TriedGroup, TrySummary } from './tried.ts';

export function viewJson({ agent, model, groups, warnings, notes }: TrySummary): object {
  return { agent, model, scenarios: groups.map(viewGroup), warnings, notes };
}

function viewGroup({ scenarioId, attempts }: TriedGroup): object {
  const rewards = attempts.flatMap(({ record }) => record.reward ?? []);
  return { scenario: scenarioId, meanReward: mean(rewards), attempts: attempts.map(viewTried) };
}

function viewTried({ record, asked, seconds, promptTokens, completionTokens, thrownAt, replay }: TriedAttempt): object {
  const { attempt, reward, metrics, failure, logs, truncated, hostedCalls } = record;
  return {
    attempt,
    reward,
    metrics,
    failure: failure?.message ?? null,
    thrownAt,
    logs,
    truncated,
    promptTokens,
    completionTokens,
    seconds,
    replay,
    calls: asked.map(({ request, message, finishReason }) => ({ request, message, finishReason })),
    ...(hostedCalls && { hostedCalls }),
  };
}
