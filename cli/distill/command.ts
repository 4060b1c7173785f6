import { CHECKPOINT_ARGUMENT } from '../../operations/flags.ts';
import { defineCommand } from '../command-line/command.ts';

export const distillCommand = defineCommand({
  name: 'distill',
  group: 'Make data',
  summary: 'write the best attempts as a file of chats for temper train',
  details: [
    'CHECKPOINT is RUN for all attempts that the run trained on or left out, or RUN@STEP, RUN@latest or RUN@best for those',
    'that this checkpoint played. With roles, those of the policy main are taken, or those of RUN:POLICY.',
    '--attempts takes those that temper try --save wrote in place of a run, of a hosted model, say. Failed and truncated',
    'attempts and held-out scenarios are never taken. Needs no server.',
    '',
    '--from-otlp and --from-langfuse take conversations that an application has recorded as traces, and say how many calls',
    'of models they leave out, and why. --scenarios writes how each began, for an agent to play. Without --top all are taken,',
    'with it those with a score. Keys of Langfuse are in LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY.',
  ],
  examples: [
    'temper distill demo --top 25% --out best.jsonl',
    'temper distill demo@40 --top 10% --out best.jsonl',
    'temper distill --attempts teacher --top 50% --out best.jsonl',
    'temper distill --from-otlp traces.jsonl --out chats.jsonl --scenarios scenarios.jsonl',
    'temper distill --from-langfuse --since 2026-11-20 --score helpful --top 25% --out best.jsonl',
  ],
  arguments: { checkpoint: { ...CHECKPOINT_ARGUMENT, optional: true } },
  flags: {
    top: {
      kind: 'text',
      placeholder: 'P%',
      description: 'share of the attempts to take, by reward; required but for traces',
      form: { pattern: /^(?:100|[1-9]?\d(?:\.\d+)?)%$/, rule: 'a percentage up to 100%', example: '25%' },
    },
    attempts: { kind: 'text', placeholder: 'FOLDER', description: 'take attempts that temper try --save wrote there' },
    'from-otlp': {
      kind: 'text',
      placeholder: 'FILE',
      description: 'take traces from a file of OTLP, JSON or protobuf',
    },
    'from-langfuse': { kind: 'boolean', description: 'take traces from Langfuse' },
    since: {
      kind: 'text',
      placeholder: 'TIME',
      description: 'calls from this time on',
      default: 'all',
      needs: ['from-langfuse'],
    },
    most: {
      kind: 'integer',
      minimum: 1,
      placeholder: 'N',
      description: 'newest calls to take',
      default: '10000',
      needs: ['from-langfuse'],
    },
    score: {
      kind: 'text',
      placeholder: 'NAME',
      description: 'score that ranks traces',
      default: 'reward',
      needs: ['from-otlp', 'from-langfuse'],
    },
    scenarios: {
      kind: 'text',
      placeholder: 'FILE',
      description: 'write how each trace began as scenarios',
      needs: ['from-otlp', 'from-langfuse'],
    },
    out: { kind: 'text', placeholder: 'FILE', description: 'output file', required: 'pass --out best.jsonl' },
  },
  run: async (context): Promise<number> => (await import('./distill.ts')).distillRun(context),
});
