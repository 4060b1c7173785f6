import { CHECKPOINT_ARGUMENT, defineCommand } from '../command-line/command.ts';

export const distillCommand = defineCommand({
  name: 'distill',
  summary: 'write the best attempts as a file of chats for temper sft',
  details: [
    'CHECKPOINT is RUN for all attempts that the run trained on or left out, or RUN@STEP, RUN@latest or RUN@best for those',
    'that this checkpoint played. With roles, those of the policy main are taken, or those of RUN:POLICY.',
    '--attempts takes those that temper try --save wrote in place of a run, of a hosted model, say. Failed and truncated',
    'attempts and held-out scenarios are never taken. Needs no server.',
  ],
  examples: [
    'temper distill demo --top 25% --out best.jsonl',
    'temper distill demo@40 --top 10% --out best.jsonl',
    'temper distill --attempts teacher --top 50% --out best.jsonl',
  ],
  arguments: { checkpoint: { ...CHECKPOINT_ARGUMENT, optional: true } },
  flags: {
    top: {
      kind: 'text',
      placeholder: 'P%',
      description: 'share of the attempts to take, by reward',
      form: { pattern: /^(?:100|[1-9]?\d(?:\.\d+)?)%$/, rule: 'a percentage up to 100%', example: '25%' },
      required: 'pass --top 25%',
    },
    attempts: { kind: 'text', placeholder: 'FOLDER', description: 'take attempts that temper try --save wrote there' },
    out: { kind: 'text', placeholder: 'FILE', description: 'output file', required: 'pass --out best.jsonl' },
  },
  run: async (context): Promise<number> => (await import('./distill.ts')).distillRun(context),
});
