/** Files of examples, and the supervised steps that a command asks for. */
import { basename, resolve } from 'node:path';
import { encodeChatExamples, parseChatExamples } from '../../core/text/chat-examples.ts';
import type { SupervisedConfig } from '../../core/contract/contract.ts';
import { planRendering, SUPERVISED } from '../../core/rules/supervised.ts';
import { blobRef } from '../../store/bytes/sha256.ts';
import { readWhole, textIn } from '../command-line/files.ts';
import { checkExamples, type ExampleFacts } from '../../workers/python/check-inputs.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { plural } from '../../core/reports/format.ts';
import type { Output } from '../terminal/output.ts';
import { programContext } from '../terminal/stack-events.ts';
import { findLocalModel } from './base-model.ts';
import type { RunPlan } from './run-plan.ts';

export interface ExamplesFile {
  /** File name without folder and extension. */
  readonly name: string;
  readonly count: number;
  /** Content as stored. */
  readonly bytes: Uint8Array;
}

/** Size limit: all examples are in memory at once, here and in the GPU worker. */
const MAX_BYTES = 256 * 1024 ** 2;
const WHAT = 'the examples';
const EXAMPLES_PER_STEP = 16;
const HELD_OUT_SHARE = 0.1;
const MAX_HELD_OUT = 200;

export async function readExamplesFile(place: string, cwd: string): Promise<ExamplesFile> {
  const path = resolve(cwd, place);
  const name = basename(path).replace(/\.jsonl?$/, '');
  const text = textIn(WHAT, path, await readWhole(WHAT, path, MAX_BYTES));
  const examples = parseChatExamples(text, basename(path));
  return { name, count: examples.length, bytes: encodeChatExamples(examples) };
}

/** Given fields of `supervised`, by name. */
export type GivenFields = ReadonlyMap<string, unknown>;

export function planSupervisedSteps({ count, bytes }: ExamplesFile, given: GivenFields): SupervisedConfig {
  const usual = Math.min(MAX_HELD_OUT, Math.max(1, Math.floor(count * HELD_OUT_SHARE)));
  return {
    turns: 'all',
    overlong: 'mask',
    examplesPerStep: EXAMPLES_PER_STEP,
    heldOut: usual,
    ...Object.fromEntries(given),
    dataset: blobRef(bytes),
    examples: count,
  };
}

/** Steps for `epochs` passes over the examples that are not held out. */
export function stepsOfEpochs(supervised: SupervisedConfig, epochs: number): number {
  const { examples, heldOut, examplesPerStep } = supervised;
  return Math.max(1, Math.ceil((epochs * Math.max(1, examples - heldOut)) / examplesPerStep));
}

/** Fields of `supervised` among the given values. */
export function supervisedFields(values: ReadonlyMap<string, unknown>): Map<string, unknown> {
  const found = [...values].filter(([path]) => path.startsWith(SUPERVISED));
  return new Map(found.map(([path, value]) => [path.slice(SUPERVISED.length), value]));
}

/**
 * Refuses an example that cannot be rendered with the base model, by its line. Returns the tokens of the longest one; null
 * if unknown: a remote GPU worker checks them when the run begins.
 */
export async function proveExamples(plan: RunPlan, context: CommandEnvironment): Promise<number | null> {
  const { config, examples, models, template } = plan;
  const { baseModel, supervised } = config;
  if (supervised === undefined || examples === null || isTemplateElsewhere(plan)) return null;
  const local = await findLocalModel(baseModel, models, context);
  if (local === null) return null;
  const rendering = planRendering(config, supervised);
  const tried = { model: baseModel, ...local, chatTemplate: template?.file ?? null, rendering };
  const facts = await checkExamples(tried, examples, programContext(context));
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
