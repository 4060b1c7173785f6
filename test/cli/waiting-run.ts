/** A run that waits for rewards from outside, as workers leave it behind. */
import type { ExternalConfig } from '../../core/contract.ts';
import { EXTERNAL } from '../../core/external-rewards.ts';
import { defaultRunConfig } from '../../core/run-defaults.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { groupTimesKey, rolloutsKey } from '../../store/layout.ts';
import { publishRun } from '../../store/records/publish-run.ts';
import { encodeRollouts, type AttemptRecord } from '../../store/records/trajectories.ts';
import type { Store } from '../../store/store.ts';
import { playedAttempt, QUESTION } from './review/awaited-run.ts';

const SHA = 'a'.repeat(64);
const PLAYED = Date.parse('2026-11-22T08:00:00Z');

/** Two groups of three attempts; the last attempt of the second group failed. */
export async function writeWaitingRun(store: Store, external: ExternalConfig = {}): Promise<void> {
  const config = defaultRunConfig({ run: 'demo', agent: 'support', baseModel: 'pocket', judge: EXTERNAL, external });
  await publishRun(store, { config, agentCodeSha256: SHA });
  for (const group of [0, 1]) {
    const place = { run: 'demo', branch: 0, step: 1, group };
    const attempts = [0, 1, 2].map((attempt) => attemptOf(attempt, group === 1 && attempt === 2));
    const header = { schema: 1, inputsSha256: SHA, branch: 0, step: 1, group, scenarioId: `ticket-${group}` } as const;
    const rollouts = { header: { ...header, scenario: group, adapterSha256: SHA, attempts: 3 }, attempts };
    await store.publish(rolloutsKey(place), await encodeRollouts(rollouts));
    await store.replace(groupTimesKey(place), encodeJson({ endedAt: PLAYED + group * 1000 }));
  }
}

function attemptOf(attempt: number, hasFailed: boolean): AttemptRecord {
  const answer = `It is\non its way, says answer ${attempt}. ${'Thank you. '.repeat(20)}`;
  return playedAttempt(attempt, { messages: [QUESTION], answer, hasFailed });
}
