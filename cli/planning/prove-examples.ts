/** Checks examples against the base model before anything is started. A remote GPU worker does it when the run begins. */
import type { SupervisedConfig } from '../../core/contract.ts';
import { BUILT_IN_MODELS } from '../../core/wire-constants.ts';
import { planRendering } from '../../core/supervised.ts';
import { loadConfig } from '../../workers/config.ts';
import { cacheFolder } from '../../workers/folders.ts';
import { knownModels } from '../../workers/local-stack/known-models.ts';
import { checkExamples, type ExampleFacts } from '../../workers/python/check-examples.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { plural } from '../terminal/format.ts';
import type { Output } from '../terminal/output.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import type { PlannedRun } from './plan-run.ts';

/** Refuses an example that cannot be rendered, by its line. Returns the tokens of the longest one; null if unknown. */
export async function proveExamples(plan: PlannedRun, context: CommandEnvironment): Promise<number | null> {
  const { config, examples, models, template } = plan;
  const { baseModel, supervised } = config;
  if (supervised === undefined || examples === null || isTemplateElsewhere(plan)) return null;
  const { project, env, output, signal } = context;
  const known = await loadConfig(project, env);
  const source = { ...knownModels(project, known), ...models }[baseModel] ?? null;
  const isBuiltIn = (BUILT_IN_MODELS as readonly string[]).includes(baseModel);
  if (known.engine.url !== null || (source === null && !isBuiltIn)) return null;
  const onEvent = createEventPrinter((line) => output.errorLine(line));
  const rendering = planRendering(config, supervised);
  const tried = { baseModel, source, templateFile: template?.file ?? null, rendering, bytes: examples };
  const facts = await checkExamples(tried, { env, cache: cacheFolder(env), signal, onEvent });
  tell(output, facts, supervised);
  return facts.longest;
}

/** The template of a parent is only in the store: the GPU worker makes the same check when the run begins. */
function isTemplateElsewhere({ config, template }: PlannedRun): boolean {
  return template === null && config.rollout.chatTemplateSha256 !== undefined;
}

function tell(output: Output, facts: ExampleFacts, supervised: SupervisedConfig): void {
  const { trainedTokens, tokens, longest, overlong } = facts;
  output.line(
    `${plural(facts.examples, 'example')}: ${trainedTokens} of ${tokens} tokens are trained, the longest has ${longest}`,
  );
  if (overlong === 0) return;
  const becomes = supervised.overlong === 'mask' ? 'left out' : 'cut';
  output.line(`note: ${plural(overlong, 'example')} above the limit of tokens will be ${becomes}`);
}
