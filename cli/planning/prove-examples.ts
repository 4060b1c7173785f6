/** Checks examples against the base model before anything is started. A remote GPU worker does it when the run begins. */
import type { SupervisedConfig } from '../../core/contract.ts';
import { planRendering } from '../../core/supervised.ts';
import { checkExamples, type ExampleFacts } from '../../workers/python/check-examples.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { plural } from '../../core/format.ts';
import type { Output } from '../terminal/output.ts';
import { programContext } from '../terminal/stack-events.ts';
import { findLocalModel } from './base-model.ts';
import type { RunPlan } from './run-plan.ts';

/** Refuses an example that cannot be rendered, by its line. Returns the tokens of the longest one; null if unknown. */
export async function proveExamples(plan: RunPlan, context: CommandEnvironment): Promise<number | null> {
  const { config, examples, models, template } = plan;
  const { baseModel, supervised } = config;
  if (supervised === undefined || examples === null || isTemplateElsewhere(plan)) return null;
  const local = await findLocalModel(baseModel, models, context);
  if (local === null) return null;
  const rendering = planRendering(config, supervised);
  const tried = { baseModel, ...local, templateFile: template?.file ?? null, rendering, bytes: examples };
  const facts = await checkExamples(tried, programContext(context));
  tell(context.output, facts, supervised);
  return facts.longest;
}

/** The template of a parent is only in the store: the GPU worker makes the same check when the run begins. */
function isTemplateElsewhere({ config, template }: RunPlan): boolean {
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
