import { readConversation } from '../../store/records/recorded-conversations.ts';
import type { FeedbackRow } from '../../store/records/feedback.ts';
import type { Recording } from '../../core/contract-records.ts';
import { requireRun } from '../../store/records/run-reader.ts';
import type { ChatMessage } from '../../store/records/trajectories.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { formatNumber } from '../../core/format.ts';
import { printJson } from '../terminal/output.ts';
import type { ProductionContext } from './command.ts';

export async function showConversation(
  { flags, project, env, output }: ProductionContext,
  run: string,
  id: string,
): Promise<number> {
  const store = await openProjectStore(project, env);
  await requireRun(store, run);
  const found = await readConversation(store, run, id);
  if (found === null)
    throw new UsageError(
      `CONVERSATION must be recorded under ${run}, got ${JSON.stringify(id)}; temper production ${run} --json lists those with feedback`,
    );
  const { conversation, recordings, rated } = found;
  const rows = rated?.rows ?? [];
  const trainedBy = rated?.trainedBy ?? null;
  if (flags.json) printJson(output, { run, conversation, trainedBy, feedback: rows, answers: recordings });
  else for (const line of linesOf(conversation, recordings, rows, trainedBy)) output.line(line);
  return EXIT.ok;
}

function* linesOf(
  conversation: string,
  recordings: readonly Recording[],
  rows: readonly FeedbackRow[],
  trainedBy: string | null,
): Generator<string> {
  yield trainedBy === null ? conversation : `${conversation}, trained by ${trainedBy}`;
  const shown = new Set<string>();
  for (const { id, at, policy, untrainable, call } of recordings) {
    yield '';
    yield `${id}  ${at}  ${policy}${untrainable === null ? '' : `  not trained: ${untrainable}`}`;
    for (const message of [...call.request.messages, call.message]) {
      const text = textOf(message);
      // Later turns repeat the messages before them.
      if (!shown.has(text) || message === call.message) yield text;
      shown.add(text);
    }
    for (const row of rows) if (row.answer === id) yield feedbackLine(row);
  }
  for (const row of rows) if (row.answer === null) yield `\n${feedbackLine(row)}`;
}

function textOf({ role, content, tool_calls: calls }: ChatMessage): string {
  const said = typeof content === 'string' ? content : content == null ? '' : JSON.stringify(content);
  return [`  ${role}: ${said}`, ...(calls === undefined ? [] : [`  ${role} calls ${JSON.stringify(calls)}`])].join(
    '\n',
  );
}

function feedbackLine({ reward, label, comment, at }: FeedbackRow): string {
  const named = label === null ? '' : ` (${label})`;
  return `  feedback ${formatNumber(reward)}${named} ${at}${comment === null ? '' : `: ${comment}`}`;
}
