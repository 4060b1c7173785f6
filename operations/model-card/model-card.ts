/** `README.md` of an exported folder: what the model is, its origin, and how to load it. Unknown facts are left out. */
import type { EvalResult } from '../../core/contract/contract.ts';
import { CHAT_TEMPLATE_FILE } from '../../outbound/deploy/targets/files.ts';
import { describeHeldOut, formatNumber, metricLabel, sortMetrics } from '../../core/reports/format.ts';
import { printable } from '../../core/text/printable.ts';
import { loadGguf, loadMlx } from './local-formats.ts';

export interface CardFacts {
  /** `run@step`. */
  readonly policy: string;
  readonly run: string;
  readonly agent: string;
  readonly step: number;
  /** Number of steps in the configuration. */
  readonly steps: number;
  readonly base: BaseFacts;
  /** Null: the base model's own chat template. */
  readonly chatTemplateSha256: string | null;
  /** Null: all weights were trained. */
  readonly lora: { readonly rank: number; readonly alpha: number } | null;
  readonly adapterSha256: string;
  readonly manifestSha256: string;
  /** Version of Temper that started the run. */
  readonly temperVersion: string | null;
  /** Metrics of the step. */
  readonly metrics: Readonly<Record<string, number | null>>;
  readonly evaluation: EvalResult | null;
  /** Before training. */
  readonly evalBefore: EvalResult | null;
  /** Oldest first. */
  readonly lineage: readonly string[];
  readonly format: CardFormat;
  /** Null: the folder holds the adapter. */
  readonly merged: MergedFacts | null;
}

export type CardFormat = 'peft' | 'merged' | 'gguf' | 'mlx';

export interface BaseFacts {
  readonly name: string;
  readonly sha256: string;
  /** On the Hugging Face hub. */
  readonly hubId: string | null;
  readonly revision: string | null;
  /** Path below Temper's package, if it ships with Temper. */
  readonly packageFolder: string | null;
  /** Number type that packed weights were unpacked to in training; null if they were not packed. */
  readonly unpackedTo: string | null;
}

interface MergedFacts {
  readonly dtype: string;
  /** Share of the adapter's change that is left in this type. */
  readonly kept: number | null;
}

/** Ranks that vLLM supports. */
const VLLM_RANKS = [8, 16, 32, 64, 128, 256, 320, 512];
const UNKNOWN_BASE = 'PATH_OF_THE_BASE_MODEL';

export function renderModelCard(facts: CardFacts): string {
  const sections = [
    frontMatter(facts),
    `# ${escapeMarkdown(facts.policy)}`,
    introduction(facts),
    table(['', ''], identity(facts)),
    ...evaluationSection(facts),
    ...metricsSection(facts),
    `## Lineage\n\n${facts.lineage.map((line, index) => `${index + 1}. ${escapeMarkdown(line)}`).join('\n')}`,
    load(facts),
  ];
  return `${sections.join('\n\n')}\n`;
}

const LIBRARIES: Readonly<Record<CardFormat, string>> = {
  peft: 'peft',
  merged: 'transformers',
  gguf: 'llama.cpp',
  mlx: 'mlx',
};

/** Front matter for the Hugging Face hub. JSON strings are valid YAML. */
function frontMatter({ base, format, merged }: CardFacts): string {
  const fields = {
    ...(base.hubId !== null && { base_model: base.hubId }),
    library_name: LIBRARIES[format],
    pipeline_tag: 'text-generation',
    tags: ['reinforcement-learning', 'temper-rl', ...(merged === null ? ['lora'] : [])],
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return ['---', ...lines, '---'].join('\n');
}

function introduction({ agent, base, lora, merged }: CardFacts): string {
  const what = merged === null ? 'A LoRA adapter for' : 'A language model: ';
  const made = `trained with reinforcement learning by Temper (the npm package temper-rl) on the agent ${escapeMarkdown(agent)}`;
  return merged === null
    ? `${what} ${escapeMarkdown(base.name)}, ${made}.`
    : `${what}${escapeMarkdown(base.name)}, ${made}. ${lora === null ? 'All of its weights were trained.' : 'The adapter is merged into the weights.'}`;
}

function identity({ run, step, steps, base, lora, merged, ...facts }: CardFacts): string[][] {
  const rows: [string, string | null][] = [
    ['base model', base.name],
    ['base model on the hub', base.hubId],
    ['base model, revision', base.revision],
    ['base model, sha256 of its weights', base.sha256],
    ['base model in training', base.unpackedTo && 'linear layers in 4 bits (NF4, blocks of 64)'],
    ['run', run],
    ['step', `${step} of ${steps}`],
    ['agent', facts.agent],
    ['chat template', facts.chatTemplateSha256 && templateText(facts.chatTemplateSha256)],
    lora === null ? ['training', 'full fine-tuning'] : ['LoRA', `rank ${lora.rank}, alpha ${lora.alpha}`],
    [lora === null ? 'weights as committed, sha256' : 'adapter, sha256', facts.adapterSha256],
    ['manifest, sha256', facts.manifestSha256],
    ['weights', merged && mergedText(merged, lora)],
    ['Temper', facts.temperVersion],
  ];
  return rows.flatMap(([name, value]) => (value === null ? [] : [[name, escapeMarkdown(value)]]));
}

function templateText(sha256: string): string {
  return `${CHAT_TEMPLATE_FILE} in this folder, which it was trained with instead of the base model's own; sha256 ${sha256}`;
}

function mergedText({ dtype, kept }: MergedFacts, lora: CardFacts['lora']): string {
  if (kept === null || dtype === 'float32') return dtype;
  return `${dtype}; ${formatNumber(kept * 100)} % of what ${lora === null ? 'training' : 'the adapter'} changes is left after rounding`;
}

function evaluationSection({ evaluation, evalBefore, step }: CardFacts): string[] {
  if (evaluation === null) return [];
  const before = step === 0 ? null : evalBefore;
  const names = ['reward', ...sortMetrics(Object.keys(evaluation.metrics).filter((name) => name !== 'reward'))];
  const valueOf = (of: EvalResult, name: string) => (name === 'reward' ? of.reward : (of.metrics[name] ?? null));
  const rows = names.map((name) => [
    escapeMarkdown(metricLabel(name)),
    ...(before === null ? [] : [formatNumber(valueOf(before, name))]),
    formatNumber(valueOf(evaluation, name)),
  ]);
  const head = ['metric', ...(before === null ? [] : ['before training']), `step ${step}`];
  const failed = evaluation.failed === 0 ? '' : `; ${evaluation.failed} of them failed`;
  return [`## Evaluation\n\n${describeHeldOut(evaluation)}${failed}.\n\n${table(head, rows)}`];
}

function metricsSection({ metrics, step }: CardFacts): string[] {
  const known = Object.entries(metrics).filter(([, value]) => value !== null);
  if (known.length === 0) return [];
  const rows = known.map(([name, value]) => [
    escapeMarkdown(name),
    Number.isInteger(value) ? String(value) : formatNumber(value),
  ]);
  return [`## Metrics of step ${step}\n\n${table(['metric', 'value'], rows)}`];
}

function load(facts: CardFacts): string {
  const loaders: Readonly<Record<CardFormat, () => string>> = {
    peft: () => loadAdapter(facts),
    merged: () => loadMerged(facts),
    gguf: () => loadGguf(facts.run),
    mlx: () => loadMlx(sourceOf(facts.base)),
  };
  return loaders[facts.format]();
}

const sourceOf = (base: BaseFacts): string => base.hubId ?? base.packageFolder ?? UNKNOWN_BASE;

function loadAdapter({ base, policy, lora, chatTemplateSha256 }: CardFacts): string {
  const source = sourceOf(base);
  const least = lora?.rank ?? 1;
  const rank = VLLM_RANKS.find((each) => each >= least) ?? least;
  const name = policy.replaceAll(/[^\w.@-]/g, '-');
  const [line, flag] =
    chatTemplateSha256 === null
      ? ['', '']
      : [
          `tokenizer.chat_template = open("${CHAT_TEMPLATE_FILE}", encoding="utf-8").read()\n`,
          ` --chat-template ${CHAT_TEMPLATE_FILE}`,
        ];
  return `## Load it

With transformers and PEFT, from this folder${base.unpackedTo === null ? '' : ' (4 bits also need bitsandbytes)'}:

\`\`\`python
${loadingLines(base.unpackedTo, source, line)}
\`\`\`

With vLLM, as the model \`${name}\`:

\`\`\`sh
vllm serve ${source} --enable-lora --max-lora-rank ${rank} --lora-modules ${name}=.${flag}
\`\`\`

${base.unpackedTo === null ? 'Ollama needs merged weights' : UNROUNDED}: \`temper export ${policy} --to FOLDER --format ${base.unpackedTo === null ? 'gguf' : 'merged'}\`.`;
}

const UNROUNDED =
  'vLLM does not round the base model to 4 bits as in training, so its answers differ. Merged weights are those of training (for Ollama --format gguf)';

/** `unpackedTo`: that of the base model. */
function loadingLines(unpackedTo: string | null, source: string, templateLine: string): string {
  const tokenizer = `base = ${JSON.stringify(source)}
tokenizer = AutoTokenizer.from_pretrained(base)
${templateLine}`;
  if (unpackedTo === null)
    return `from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

${tokenizer}model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), ".")`;
  // Same options as Temper uses to pack it: others give another base model.
  return `import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

${tokenizer}in_4bit = BitsAndBytesConfig(
    load_in_4bit=True,
    bnb_4bit_quant_type="nf4",
    bnb_4bit_use_double_quant=False,
    bnb_4bit_compute_dtype=torch.${unpackedTo},
)
model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.${unpackedTo}, quantization_config=in_4bit)
model = PeftModel.from_pretrained(model, ".")`;
}

function loadMerged({ policy, run, lora }: CardFacts): string {
  const adapter = `With PEFT, export the adapter instead: \`temper export ${policy} --to FOLDER\`.\n\n`;
  return `## Load it

With transformers, from this folder:

\`\`\`python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
model = AutoModelForCausalLM.from_pretrained(".")
\`\`\`

${lora === null ? '' : adapter}With vLLM:

\`\`\`sh
vllm serve . --served-model-name ${run}
\`\`\`

Ollama needs one file: \`temper export ${policy} --to FOLDER --format gguf\`.`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Escapes names, which come from agents and other runs: text on one line. */
export function escapeMarkdown(text: string): string {
  return printable(text.replaceAll(/\s+/g, ' ')).replaceAll(/[\\`*_{}[\]<>|~&$#]/g, String.raw`\$&`);
}
