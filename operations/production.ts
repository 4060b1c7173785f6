/** Operations on the checkpoint of a run that production serves, and on what was recorded of it. */
import { formatNumber, plural } from '../core/reports/format.ts';
import { CHECKPOINT_ARGUMENT, REASON_FLAG, RUN_ARGUMENT, type Flags } from './flags.ts';
import { defineOperation } from './operation.ts';
import type { FoundConversation, FoundProduction } from './recorded.ts';

const work = () => import('./promote.ts');

const BY_FLAGS = {
  by: { kind: 'text', placeholder: 'NAME', description: 'who promotes', default: 'the user of this system' },
  reason: { ...REASON_FLAG, description: 'recorded with the promotion' },
} as const satisfies Flags;

export const productionPromote = defineOperation({
  name: 'production promote',
  summary: "make a checkpoint a run's production",
  details: [
    'RUN@production then names the checkpoint in every command. temper serve RUN@production follows within seconds: it loads',
    'the checkpoint first, and requests in flight end on the one before. Every promotion stays in the trail, with its time,',
    "its author and the checkpoint's evaluation. A checkpoint in production, and the one before, are never pruned.",
    'temper production back returns to the one before. Needs no server.',
  ],
  examples: [
    'temper production promote demo@best --reason "0.82 on held-out games"',
    'temper production promote nightly-3@20 --to demo',
  ],
  arguments: { checkpoint: CHECKPOINT_ARGUMENT },
  flags: {
    to: {
      kind: 'text',
      placeholder: 'RUN',
      description: 'run whose production it becomes',
      default: "the checkpoint's own run",
    },
    ...BY_FLAGS,
  },
  effect: 'changes',
  button: { label: 'Promote', on: 'checkpoint' },
  says: async (input, place) => (await work()).sayPromoted(place, input),
  run: async (input, place) => (await work()).promoteCheckpoint(place, input),
  lines: ({ run, checkpoint, created, at, before }) => {
    if (!created) return [`${checkpoint} is ${run}@production already, since ${at}`];
    return before === null
      ? [`${checkpoint} is ${run}@production now`, `serve it with temper serve ${run}@production`]
      : [`${checkpoint} is ${run}@production now, ${before} was before`];
  },
});

export const productionBack = defineOperation({
  name: 'production back',
  summary: 'return to the checkpoint that was production before',
  examples: ['temper production back demo --reason "it apologises too often"'],
  arguments: { run: RUN_ARGUMENT },
  flags: BY_FLAGS,
  effect: 'changes',
  button: { label: 'Return to the one before', on: 'production' },
  says: async ({ run }, place) => (await work()).sayBack(place, run),
  run: async (input, place) => (await work()).goBack(place, input),
  lines: ({ run, checkpoint, before }) => [`${checkpoint} is ${run}@production now, ${before} was before`],
});

export const productionList = defineOperation({
  name: 'production list',
  summary: 'list all promotions of a run, the newest last',
  arguments: { run: RUN_ARGUMENT },
  flags: {},
  effect: 'reads',
  run: async ({ run }, place) => (await work()).listPromotions(place, run),
  lines: (rows, { run }) => {
    if (rows.length === 0)
      return [`nothing of ${run} was promoted; promote a checkpoint: temper production promote ${run}@STEP`];
    const head = ['', 'time', 'what', 'checkpoint', 'held-out reward', 'by', 'reason'];
    const cells = rows.map(({ isProduction, at, kind, checkpoint, evaluation, comparison, by, reason }) => {
      const compared = Object.entries(comparison ?? {}).map(([name, value]) => `${name} ${formatNumber(value)}`);
      const told = [reason ?? [], compared].flat().join(', ');
      return [isProduction ? '*' : '', at, kind, checkpoint, formatNumber(evaluation?.reward), by ?? '–', told || '–'];
    });
    return [{ head, rows: cells }];
  },
});

export const production = defineOperation({
  name: 'production',
  group: 'Use what was trained',
  summary: 'show what temper serve --record kept of a run, with its feedback, or one conversation',
  details: [
    'Counts answers, conversations and feedback by the checkpoint that answered, and lists the newest conversations with',
    'feedback. CONVERSATION is its name (conv_…, or the one that its client gave it), or the id of one of its answers.',
    'Needs no server.',
  ],
  examples: ['temper production demo', 'temper production demo chatcmpl-01a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6'],
  arguments: { run: RUN_ARGUMENT, conversation: { placeholder: 'CONVERSATION', optional: true } },
  flags: {},
  effect: 'reads',
  run: async ({ run, conversation }, place): Promise<FoundProduction | FoundConversation> => {
    const { findConversation, findProduction } = await import('./recorded.ts');
    return conversation === null ? findProduction(place, run) : findConversation(place, run, conversation);
  },
  lines: (found) => ('conversation' in found ? conversationLines(found) : productionLines(found)),
});

const MOST_SHOWN = 10;

function productionLines({
  run,
  production: named,
  damaged,
  answers,
  conversations,
  policies,
  rated,
}: FoundProduction) {
  const lines = [
    named === null ? `nothing of ${run} was promoted` : `${run}@production is ${named}`,
    ...Object.entries(damaged).map(
      ([chunk, bytes]) =>
        `the recordings in ${chunk} are damaged: ${plural(bytes, 'byte')} are left out; restore the folder from a copy`,
    ),
  ];
  if (answers === 0) return [...lines, `nothing is recorded; record with temper serve ${run} --record`];
  const trained = rated.filter(({ trainedBy }) => trainedBy !== null).length;
  const byPolicy = {
    head: ['answered by', 'answers', 'conversations', 'rated', 'reward', 'redacted', 'other parameters'],
    rows: policies.map(({ policy, untrainable, reward, ...counts }) => [
      policy,
      ...[counts.answers, counts.conversations, counts.rated].map(String),
      formatNumber(reward),
      String(untrainable.redacted),
      String(untrainable.parameters),
    ]),
  };
  const newest = {
    head: ['conversation', 'answers', 'reward', 'last feedback', 'trained by'],
    rows: rated
      .slice(-MOST_SHOWN)
      .map(({ conversation, answers: count, reward, feedback, trainedBy }) => [
        conversation,
        String(count),
        formatNumber(reward),
        feedback.at(-1)?.at ?? '–',
        trainedBy ?? '–',
      ]),
  };
  return [
    ...lines,
    `${plural(answers, 'answer')} of ${plural(conversations, 'conversation')}, ${rated.length} with feedback, ${trained} trained`,
    byPolicy,
    ...(rated.length > 0 ? [newest] : []),
  ];
}

type Feedback = FoundConversation['feedback'][number];

function conversationLines({ conversation, trainedBy, feedback, answers }: FoundConversation): string[] {
  const lines = [trainedBy === null ? conversation : `${conversation}, trained by ${trainedBy}`];
  const shown = new Set<string>();
  for (const { id, at, policy, untrainable, call } of answers) {
    lines.push('', `${id}  ${at}  ${policy}${untrainable === null ? '' : `  not trained: ${untrainable}`}`);
    for (const message of [...call.request.messages, call.message]) {
      const text = textOf(message);
      // Later turns repeat the messages before them.
      if (!shown.has(text) || message === call.message) lines.push(text);
      shown.add(text);
    }
    lines.push(...feedback.filter(({ answer }) => answer === id).map(feedbackLine));
  }
  return [...lines, ...feedback.filter(({ answer }) => answer === null).map((row) => `\n${feedbackLine(row)}`)];
}

function textOf({ role, content, tool_calls: calls }: FoundConversation['answers'][number]['call']['message']): string {
  const said = typeof content === 'string' ? content : content == null ? '' : JSON.stringify(content);
  return [`  ${role}: ${said}`, ...(calls === undefined ? [] : [`  ${role} calls ${JSON.stringify(calls)}`])].join(
    '\n',
  );
}

function feedbackLine({ reward, label, comment, at }: Feedback): string {
  const named = label === null ? '' : ` (${label})`;
  return `  feedback ${formatNumber(reward)}${named} ${at}${comment === null ? '' : `: ${comment}`}`;
}
