/** Attempts that `temper try --save` wrote, mostly of a hosted teacher. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import { MAIN_POLICY } from '../../core/contract/wire-constants.ts';
import { rolePartsOf, recordedCall, type RatedAttempt } from './chats/distilled-chats.ts';
import { parseSavedAttempt, type SavedAttempt } from '../../play/replay/saved-attempt.ts';
import type { ChatMessage } from '../../store/records/groups/trajectories.ts';

/** Members of a message that a chat template renders; hosted models return more. */
const TAUGHT = new Set(['role', 'content', 'tool_calls', 'reasoning_content']);

/** Attempts with a reward, not truncated and not on held-out scenarios, by scenario and attempt. */
export async function readSavedAttempts(folder: string): Promise<RatedAttempt[]> {
  const files = (await namesIn(folder)).filter((name) => name.endsWith('.json'));
  if (files.length === 0)
    throw badConfig(`--attempts must name a folder that temper try --save has written to, ${folder} has no attempts`);
  const read = async (name: string) => parseSavedAttempt(await readFile(join(folder, name), 'utf8'), name);
  const saved = await Promise.all(files.map(read));
  const inOrder = saved.toSorted((a, b) => a.scenarioIndex - b.scenarioIndex || a.attempt - b.attempt);
  return inOrder.flatMap(rate);
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw badConfig(`--attempts must name a folder that can be read, got ${folder} (${code}); see temper try --save`);
  }
}

function rate(saved: SavedAttempt): RatedAttempt[] {
  const { reward, failure, scenarioIndex: scenario, attempt, isHeldOut, truncated, players } = saved;
  if (reward === null || failure !== null || isHeldOut || truncated) return [];
  const parts = rolePartsOf({ ...saved, reward }, players?.trained, MAIN_POLICY);
  return parts.map(({ role, ...part }) => ({
    reward: part.reward,
    place: { scenario, attempt, ...(role !== undefined && { role }) },
    calls: part.calls.flatMap(callsOf),
  }));
}

function callsOf({ request, answer }: SavedAttempt['calls'][number]): RatedAttempt['calls'] {
  const asked = { ...request, messages: request.messages.map(taught) };
  return answer.choices.map(({ message }) => recordedCall(asked, taught(message)));
}

function taught(message: ChatMessage): ChatMessage {
  if (message.role !== 'assistant') return message;
  return Object.fromEntries(Object.entries(message).filter(([name]) => TAUGHT.has(name))) as ChatMessage;
}
