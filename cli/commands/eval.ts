import type { Command, CommandContext } from '../command.ts';
import { JSON_OPTION } from '../command.ts';
import { CommandFailed, EXIT } from '../errors.ts';
import type { PlannedEval } from '../eval/plan-eval.ts';
import { printJson } from '../output.ts';

export const evaluate: Command = {
  name: 'eval',
  summary: 'play held-out scenarios without training, with any model or checkpoint',
  usage: 'eval AGENT --model MODEL [--scenarios N] [--base-url URL] [--json]',
  details: [
    'MODEL is run@step, a run (its last step) or a base model on the local stack; with --base-url any model',
    'of an OpenAI-compatible server. Prints mean reward and metrics with 95 % intervals.',
  ],
  examples: [
    'temper eval examples/tic-tac-toe/agent.ts --model demo',
    'temper eval agent.ts --model gpt-5 --base-url https://api.openai.com/v1 --key-env OPENAI_API_KEY',
  ],
  positionals: ['AGENT'],
  options: {
    model: { type: 'string', placeholder: 'MODEL', description: 'what plays' },
    scenarios: {
      type: 'string',
      placeholder: 'N',
      description: 'at most so many scenarios; absent: those of the run, or 200',
    },
    'base-url': {
      type: 'string',
      placeholder: 'URL',
      description: 'an OpenAI-compatible server, instead of the local stack',
    },
    'key-env': { type: 'string', placeholder: 'NAME', description: 'environment variable that holds its key' },
    temperature: { type: 'string', placeholder: 'X', description: "absent: the run's, or 1" },
    seed: { type: 'string', placeholder: 'N', description: "absent: the run's, or 1" },
    concurrency: { type: 'string', placeholder: 'N', description: 'scenarios played at once; absent: 64' },
    json: JSON_OPTION,
  },
  async run(context) {
    const { planEval } = await import('../eval/plan-eval.ts');
    const { evalLines, summariseEval } = await import('../eval/summarise.ts');
    const plan = await planEval(context);
    const summary = summariseEval(
      plan.model,
      plan.elsewhere === null ? await playLocally(plan, context) : await play(plan, plan.elsewhere, 'text', context),
    );
    if (context.flags['json'] === true) printJson(context.output, summary);
    else for (const line of evalLines(summary)) context.output.line(line);
    if (summary.failed < summary.attempts) return EXIT.ok;
    throw new CommandFailed(
      `all ${summary.attempts} attempts failed, the first with: ${summary.failures[0] ?? 'no message'}`,
    );
  },
};

async function playLocally(plan: PlannedEval, context: CommandContext) {
  const { openLocalStack } = await import('../../workers/local-stack/client.ts');
  const { createEventPrinter } = await import('../view/stack-events.ts');
  const { project, output, signal, env } = context;
  const stack = await openLocalStack({
    project,
    agentFile: null,
    models: plan.models,
    // Progress is not the result: it goes where pipes do not see it.
    onEvent: createEventPrinter((line) => output.errorLine(line)),
    signal,
    env,
  });
  try {
    return await play(plan, { url: stack.engineUrl, key: stack.engineKey }, 'eval', context);
  } finally {
    await stack.close();
  }
}

async function play(
  plan: PlannedEval,
  engine: { url: string; key: string | null },
  mode: 'eval' | 'text',
  { signal, output }: CommandContext,
) {
  const { playScenarios } = await import('../eval/play.ts');
  const onProgress = (done: number, of: number, waitingFor: string | null) =>
    output.errorLine(`played ${done} of ${of}${waitingFor === null ? '' : `, waiting for the engine: ${waitingFor}`}`);
  return playScenarios({ plan, engine, mode, signal, onProgress });
}
