import { join, relative, resolve } from 'node:path';
import { PROVIDER_NAMES } from '../../play/connections/providers.ts';
import type { Command, CommandContext } from '../command-line/command.ts';
import { JSON_OPTION, stringFlag } from '../command-line/command.ts';
import { WorkFailed, EXIT } from '../command-line/errors.ts';
import type { EvalSummary } from './summarise.ts';
import { printJson } from '../terminal/output.ts';

export const evaluate: Command = {
  name: 'eval',
  summary: 'compare models and checkpoints on held-out scenarios, without training',
  usage: 'eval AGENT --model MODEL… [--scenarios N] [--json]',
  details: [
    'MODEL is run@step, a run (its last step) or a base model on the local stack, or a hosted model: provider/model',
    `(${PROVIDER_NAMES.join(', ')}; its key is in`,
    'PROVIDER_API_KEY), or URL#MODEL for any OpenAI-compatible server. If you pass several, all play the same',
    'scenarios. Prints reward, metrics, tokens, cost and latency with 95 % intervals, and writes an HTML page.',
  ],
  examples: [
    'temper eval examples/tic-tac-toe/agent.ts --model demo --model demo@0 --model pocket',
    'temper eval agent.ts --model demo --model openai/gpt-5 --price openai/gpt-5=1.25/10 --max-tokens 2000',
    'temper eval agent.ts --model my-model --base-url http://127.0.0.1:8000/v1 --key-env MY_KEY',
  ],
  positionals: ['AGENT'],
  options: {
    model: {
      type: 'string',
      multiple: true,
      placeholder: 'MODEL',
      description: 'model or checkpoint to evaluate; repeatable',
    },
    scenarios: {
      type: 'string',
      placeholder: 'N',
      description: "maximum number of scenarios; default: the run's, or 200",
    },
    'base-url': {
      type: 'string',
      placeholder: 'URL',
      description: 'OpenAI-compatible server that serves every MODEL, instead of the local stack',
    },
    'key-env': {
      type: 'string',
      placeholder: 'NAME',
      description: 'environment variable that holds the key of --base-url or URL#MODEL',
    },
    price: {
      type: 'string',
      multiple: true,
      placeholder: 'MODEL=IN/OUT',
      description: 'US dollars per million input and output tokens',
    },
    temperature: {
      type: 'string',
      placeholder: 'X',
      description: "sampling temperature; default: the run's, or 1; for a hosted model its own",
    },
    'max-tokens': {
      type: 'string',
      placeholder: 'N',
      description: 'token limit of each hosted call, whatever the agent sets; for reasoning models',
    },
    seed: {
      type: 'string',
      placeholder: 'N',
      description:
        "seed of the engine's sampling and of the agent's random, but not of a hosted model; default: the run's, or 1",
    },
    concurrency: { type: 'string', placeholder: 'N', description: 'scenarios played at once; default: 64' },
    out: {
      type: 'string',
      placeholder: 'FILE',
      description: 'output file; default: .temper/reports/eval-AGENT.html',
    },
    json: JSON_OPTION,
  },
  async run(context) {
    const { readPlannedEval } = await import('./read-planned-eval.ts');
    const { playAll } = await import('./play-all.ts');
    const { summariseOutcomes } = await import('./summarise.ts');
    const plan = await readPlannedEval(context);
    const outcomes = await playAll(plan, context);
    const { agentFile, scenarios, notes } = plan;
    const summary = summariseOutcomes(agentFile.agent.name, scenarios, notes, outcomes);
    const { renderEvalReport } = await import('./eval-page.ts');
    const { writePage } = await import('../report/shell.ts');
    const { version } = await import('../command-line/version.ts');
    const file = reportFile(context, summary.agent);
    const scenarioIds = scenarios.map(({ id }) => id);
    await writePage(file, renderEvalReport({ summary, outcomes, scenarioIds, version: version() }));
    await tell(context, summary, file);
    return checkPlayed(summary);
  },
};

function reportFile({ flags, cwd, project }: CommandContext, agent: string): string {
  const out = stringFlag(flags, 'out');
  return out === null ? join(project, '.temper', 'reports', `eval-${agent}.html`) : resolve(cwd, out);
}

async function tell({ flags, output, cwd }: CommandContext, summary: EvalSummary, file: string): Promise<void> {
  const { evalLines } = await import('./lines.ts');
  if (flags['json'] === true) printJson(output, summary);
  else for (const line of [...evalLines(summary), `report: ${relative(cwd, file) || file}`]) output.line(line);
}

/** A model of which nothing came is no baseline. */
function checkPlayed({ models }: EvalSummary): number {
  const bad = models.filter(({ error, failed, attempts }) => error !== null || failed === attempts);
  const [first] = bad;
  if (first === undefined) return EXIT.ok;
  const reason =
    first.error ?? `all ${first.attempts} attempts failed, the first with: ${first.failures[0] ?? 'no message'}`;
  throw new WorkFailed(models.length === 1 ? reason : `${first.model}: ${reason}`);
}
