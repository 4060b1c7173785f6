/** Examples against their base model, before anything is started: a GPU worker elsewhere does it when the run begins. */
import { BUILT_IN_MODELS } from '../../core/wire-constants.ts';
import { planRendering } from '../../core/supervised.ts';
import { loadConfig } from '../../workers/config.ts';
import { cacheFolder } from '../../workers/folders.ts';
import { knownModels } from '../../workers/local-stack/known-models.ts';
import { checkExamples } from '../../workers/python/check-examples.ts';
import type { Surroundings } from '../command-line/command.ts';
import { plural } from '../terminal/format.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import type { PlannedRun } from './read-planned-run.ts';

/** Refuses one that cannot be written, by its line, and tells how many are above the limit. The tokens of the longest; null: not known. */
export async function proveExamples(
  { config, examples, models, template }: PlannedRun,
  { project, env, output, signal }: Surroundings,
): Promise<number | null> {
  const { baseModel, supervised } = config;
  if (supervised === undefined || examples === null) return null;
  const known = await loadConfig(project, env);
  const source = { ...knownModels(project, known), ...models }[baseModel] ?? null;
  const isBuiltIn = (BUILT_IN_MODELS as readonly string[]).includes(baseModel);
  if (known.engine.url !== null || (source === null && !isBuiltIn)) return null;
  const onEvent = createEventPrinter((line) => output.errorLine(line));
  const rendering = planRendering(config, supervised);
  const tried = { baseModel, source, templateFile: template?.file ?? null, rendering, bytes: examples };
  const facts = await checkExamples(tried, { env, cache: cacheFolder(env), signal, onEvent });
  const { trainedTokens, tokens, longest, overlong } = facts;
  output.line(
    `${plural(facts.examples, 'example')}: ${trainedTokens} of ${tokens} tokens are trained, the longest has ${longest}`,
  );
  const becomes = supervised.overlong === 'mask' ? 'left out' : 'cut';
  if (overlong > 0) output.line(`note: ${plural(overlong, 'example')} above the limit of tokens will be ${becomes}`);
  return longest;
}
