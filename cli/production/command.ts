import { defineCommand, JSON_FLAG, RUN_ARGUMENT, type CommandContext } from '../command-line/command.ts';

export const productionCommand = defineCommand({
  name: 'production',
  summary: 'show what temper serve --record kept of a run, with its feedback, or one conversation',
  usage: 'RUN [CONVERSATION] [--json]',
  details: [
    'Counts answers, conversations and feedback by the checkpoint that answered, and lists the newest conversations with',
    'feedback. CONVERSATION is its name (conv_…, or the one that its client gave it), or the id of one of its answers.',
    'Needs no server.',
  ],
  examples: ['temper production demo', 'temper production demo chatcmpl-01a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6'],
  arguments: { run: RUN_ARGUMENT, conversation: { placeholder: 'CONVERSATION', optional: true } },
  flags: { json: JSON_FLAG },
  async run(context): Promise<number> {
    const { run, conversation } = context.args;
    if (conversation === null) return (await import('./production.ts')).showProduction(context, run);
    return (await import('./conversation.ts')).showConversation(context, run, conversation);
  },
});

export type ProductionContext = CommandContext<typeof productionCommand>;
