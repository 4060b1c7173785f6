/**
 * Templates of projects; the files are in `templates/`, a folder for each. Imports nothing, because help shows the list.
 * Lint, the compiler and the unit tests leave `ai-sdk` and `langgraph` out: their SDKs are not installed here, but where
 * the package is tried (test/installation).
 */
export interface Template {
  readonly summary: string;
  /** Small model for the template's task. */
  readonly baseModel: string;
  /** Dependencies of the project besides `temper-rl`. */
  readonly dependencies: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
  /** Base template, for files that it does not have itself. */
  readonly extends: 'plain' | null;
}

const AGENT_SCRIPTS = { try: 'temper try', train: 'temper train', test: 'vitest run' };

export const TEMPLATES = {
  plain: {
    summary: 'one question and one answer: learns the multiplication table on this machine',
    baseModel: 'pocket',
    dependencies: {},
    scripts: AGENT_SCRIPTS,
    extends: null,
  },
  tools: {
    summary: 'two tools over several turns: learns to look words up on this machine',
    baseModel: 'pocket-tools',
    dependencies: { zod: '^4.2.0' },
    scripts: AGENT_SCRIPTS,
    extends: null,
  },
  ruler: {
    summary: 'no reward function: a large model judges the attempts (needs its key)',
    baseModel: 'pocket',
    dependencies: {},
    scripts: AGENT_SCRIPTS,
    extends: null,
  },
  'ai-sdk': {
    summary: 'plain with the Vercel AI SDK: generateText',
    baseModel: 'pocket',
    dependencies: { '@ai-sdk/openai-compatible': '^2.0.0', ai: '^6.0.0' },
    scripts: AGENT_SCRIPTS,
    extends: 'plain',
  },
  langgraph: {
    summary: 'plain with LangGraph.js: a graph that calls the model',
    baseModel: 'pocket',
    dependencies: { '@langchain/core': '^1.0.0', '@langchain/langgraph': '^1.0.0', '@langchain/openai': '^1.0.0' },
    scripts: AGENT_SCRIPTS,
    extends: 'plain',
  },
  imperative: {
    summary: 'a training loop of your own, in a script',
    baseModel: 'pocket',
    dependencies: {},
    scripts: { train: 'node --import temper-rl/typescript loop.mts', test: 'vitest run' },
    extends: null,
  },
} as const satisfies Readonly<Record<string, Template>>;

export type TemplateName = keyof typeof TEMPLATES;

export const TEMPLATE_NAMES = Object.keys(TEMPLATES) as readonly TemplateName[];
