import { nameCheckpoint } from '../../store/records/find-checkpoint.ts';
import { rewardOfConversation, type RatedConversation } from '../../store/records/feedback.ts';
import {
  readProduction,
  type PolicyTally,
  type ProductionSummary,
} from '../../store/records/recorded-conversations.ts';
import { findPromoted } from '../../store/records/promotions.ts';
import { requireRun } from '../../store/records/run-reader.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { EXIT } from '../command-line/errors.ts';
import { formatNumber, plural } from '../../core/format.ts';
import { printJson } from '../terminal/output.ts';
import { createTable } from '../terminal/table.ts';
import type { ProductionContext } from './command.ts';

const MOST_SHOWN = 10;

export async function showProduction({ flags, project, env, output }: ProductionContext, run: string): Promise<number> {
  const store = await openProjectStore(project, env);
  await requireRun(store, run);
  const summary = await readProduction(store, run);
  const promoted = await findPromoted(store, run);
  const production = promoted && (await nameCheckpoint(store, promoted.checkpoint));
  if (flags.json) printJson(output, toJson(run, production, summary));
  else for (const line of linesOf(run, production, summary)) output.line(line);
  return EXIT.ok;
}

function toJson(run: string, production: string | null, { rated, ...counts }: ProductionSummary): object {
  return { run, production, ...counts, rated: rated.map(ratedJson) };
}

function ratedJson(rated: RatedConversation): object {
  const { conversation, turns, rows, trainedBy } = rated;
  return { conversation, answers: turns.length, reward: rewardOfConversation(rated), trainedBy, feedback: rows };
}

function* linesOf(run: string, production: string | null, summary: ProductionSummary): Generator<string> {
  const { damaged, answers, conversations, policies, rated } = summary;
  yield production === null ? `nothing of ${run} was promoted` : `${run}@production is ${production}`;
  for (const [chunk, bytes] of Object.entries(damaged))
    yield `the recordings in ${chunk} are damaged: ${plural(bytes, 'byte')} are left out; restore the folder from a copy`;
  if (answers === 0) {
    yield `nothing is recorded; record with temper serve ${run} --record`;
    return;
  }
  const trained = rated.filter(({ trainedBy }) => trainedBy !== null).length;
  yield `${plural(answers, 'answer')} of ${plural(conversations, 'conversation')}, ${rated.length} with feedback, ${trained} trained`;
  yield createTable(
    ['answered by', 'answers', 'conversations', 'rated', 'reward', 'redacted', 'other parameters'],
    policies.map(cellsOf),
  );
  if (rated.length > 0)
    yield createTable(
      ['conversation', 'answers', 'reward', 'last feedback', 'trained by'],
      rated.slice(-MOST_SHOWN).map(ratedCells),
    );
}

function cellsOf({ policy, answers, conversations, rated, reward, untrainable }: PolicyTally): string[] {
  const counts = [answers, conversations, rated].map(String);
  return [policy, ...counts, formatNumber(reward), String(untrainable.redacted), String(untrainable.parameters)];
}

function ratedCells(rated: RatedConversation): string[] {
  const { conversation, turns, rows, trainedBy } = rated;
  const reward = formatNumber(rewardOfConversation(rated));
  return [conversation, String(turns.length), reward, rows.at(-1)?.at ?? '–', trainedBy ?? '–'];
}
