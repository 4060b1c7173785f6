/**
 * The reward of an attempt as a program tells it: JSON, a number or `{"reward": 0.5, "metrics": {"solved": true}}`, or
 * `{"rewards": {"correct": 1}}` by name. Whether these are the agent's names is checked with those of any rollout.
 */
import { ProgramError, type ProgramResult } from './program.ts';

const SHAPE = '{"reward": 0.5, "metrics": {"solved": true}}, or the reward alone';

/** `where` names what was read, for messages. */
export function parseResult(text: string, where: string): ProgramResult {
  const value = parseJson(text, where);
  const complaint = findProblem(value);
  if (complaint !== null) throw new ProgramError(`${where} ${complaint}, got ${clip(text)}; write ${SHAPE}`);
  return value as ProgramResult;
}

/** Whether a text says a reward or a metric, and not something else that a program printed or answered. */
export function isResult(text: string): boolean {
  try {
    const value = JSON.parse(text) as unknown;
    return findProblem(value) === null && (typeof value === 'number' || Object.keys(value as object).length > 0);
  } catch {
    return false;
  }
}

function findProblem(value: unknown): string | null {
  if (typeof value === 'number') return null;
  if (!isObject(value)) return 'must be a number or an object';
  const { reward, rewards = {}, metrics = {}, ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return `may have the members reward, rewards and metrics, not ${JSON.stringify(unknown)}`;
  // A judge may be who gives the reward.
  if (reward !== undefined && typeof reward !== 'number') return 'must have a number as reward';
  const wrong = Object.entries({ rewards, metrics }).find(([, member]) => !isObject(member));
  return wrong === undefined ? null : `must have an object as ${wrong[0]}`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parseJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new ProgramError(`${where} must be JSON, got ${clip(text)}; write ${SHAPE}`);
  }
}

function clip(text: string): string {
  return JSON.stringify(text.trim().slice(0, 100));
}

export function noResult(program: string): ProgramError {
  const ways =
    'print it as the last line of stdout, write it to the file TEMPER_RESULT_FILE, or POST it to /attempt/result unless others reward the attempts';
  return new ProgramError(`${program} gave no reward; give ${SHAPE}: ${ways}`);
}
