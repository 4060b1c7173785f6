import pc from 'picocolors';
import { mergeEngineConfig } from '../../core/rules/engine-rules.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { ANY_USE, decideEngine } from '../../workers/local-stack/decide-engine.ts';
import { reportOnModel, type ModelReport } from '../../workers/doctor/model-report.ts';
import { readChatTemplate } from '../planning/chat-template.ts';
import type { CommandContext } from '../command-line/command.ts';
import { engineOverrides } from '../command-line/engine-flags.ts';
import { EXIT } from '../command-line/errors.ts';
import { printJson } from '../terminal/output.ts';
import { programContext } from '../terminal/stack-events.ts';
import { createTable } from '../terminal/table.ts';
import { doctorModelCommand, MEMORY_FLAGS } from './command.ts';
import type { TrainConfig } from '../../core/contract/contract.ts';
import { parseCommandLine } from '../command-line/parse.ts';
import { flagText } from '../planning/project-flags.ts';
import { RUN_FLAGS } from '../planning/run-flag-table.ts';
import { applyRunFlags, fieldsOf } from '../planning/run-flags.ts';

const PLANNED_FLAGS = ['chat-template', ...MEMORY_FLAGS] as const;

type PlannedFlags = Pick<CommandContext<typeof doctorModelCommand>['flags'], (typeof PLANNED_FLAGS)[number]>;
type Memory = NonNullable<ModelReport['memory']>;
type Device = Memory['devices'][number];

/** Exits with 1 if the model cannot be used or does not fit. */
export async function doctorModel(context: CommandContext<typeof doctorModelCommand>): Promise<number> {
  const { flags, args, project, cwd, env, output } = context;
  const planned = await readPlannedFlags(context);
  const place = { project, cwd, ...programContext(context) };
  const template = (await readChatTemplate(planned['chat-template'], cwd))?.file ?? null;
  const train = trainOf(planned);
  const { engine } = await loadConfig(project, env);
  const overrides = engineOverrides(flags);
  const decided = await decideEngine(engine, overrides, { ...ANY_USE, trained: [train.lora] }, place);
  const asked = { model: args.model, template, context: flags.context, train };
  const report = await reportOnModel({
    ...place,
    ...asked,
    engine: mergeEngineConfig(engine, overrides, decided.kind),
  });
  if (flags.json) printJson(output, report);
  else output.line(renderModel(report, decided.reason, output.isTerminal));
  const fits = report.memory?.devices.every((each) => each.fits !== false) ?? false;
  return fits ? EXIT.ok : EXIT.failed;
}

function renderModel(report: ModelReport, whyEngine: string | null, hasColors: boolean): string {
  const { model, commit, architecture, parameters, contextWindow, dtype, engine, refusal, templateGaps, memory } =
    report;
  const { green, red } = pc.createColors(hasColors);
  const facts = [
    ['model', commit === null ? model : `${model} at commit ${commit}`],
    ['architecture', architecture],
    [
      'parameters',
      parameters < 1e9 ? `${(parameters / 1e6).toFixed(1)} million` : `${(parameters / 1e9).toFixed(2)} billion`,
    ],
    ['context window', `${count(contextWindow)} tokens`],
    ...(whyEngine === null ? [] : [['engine', `${engine}, ${whyEngine}`]]),
    ['usable', refusal === null ? green(`yes, served by ${engine} and trained`) : red(`no: ${refusal}`)],
  ];
  if (memory === null) return createTable([], facts);
  const [first = 'writes all roles, names and tools', ...others] = templateGaps;
  facts.push(['chat template', first], ...others.map((gap) => ['', gap]));
  const sections = memory.devices.map((device) => renderDevice(device, dtype, memory, hasColors));
  return [createTable([], facts), ...sections].join('\n\n');
}

function renderDevice(device: Device, dtype: string, memory: Memory, hasColors: boolean): string {
  const { green, red, dim } = pc.createColors(hasColors);
  const rows = device.parts.map(({ phase, name, bytes, reason }) => [name, gib(bytes), WHEN[phase], dim(reason)]);
  const total = device.bytes === null ? 'memory not known' : `${gib(device.bytes)} in all`;
  const verdict =
    device.fits === null ? dim(total) : device.fits ? green(`fits: ${total}`) : red(`does not fit: ${total}`);
  return [
    `memory of ${device.device} in ${dtype}, for conversations of up to ${count(memory.context)} tokens`,
    createTable(['', 'size', 'when', ''], [...rows, ['worst moment', gib(device.needed), '', verdict]]),
    ...adviceOn(device, memory),
  ].join('\n');
}

const WHEN = { always: 'always', serving: 'sampling', training: 'training' } as const;

function adviceOn(device: Device, memory: Memory): string[] {
  const { context, longestRequest, requestsAtOnce } = memory;
  const advice: string[] = [];
  if (longestRequest !== null && longestRequest < context)
    advice.push(
      `the key-value cache holds a request of ${count(longestRequest)} tokens at most; raise engine.kvCacheBytes in temporal.config.ts`,
    );
  else if (requestsAtOnce !== null)
    advice.push(`${count(requestsAtOnce)} conversations of ${count(context)} tokens are sampled at once`);
  if (device.fits === false) advice.push(remedyOf(device, memory));
  return advice;
}

function remedyOf(device: Device, { context, microBatchTokens }: Memory): string {
  const of = (phase: string) =>
    device.parts.filter((part) => part.phase === phase).reduce((sum, { bytes }) => sum + bytes, 0);
  const longest = microBatchTokens > context ? '--micro-batch-tokens' : '--context';
  const ways =
    of('training') > of('serving')
      ? `pass a smaller ${longest} (now ${count(microBatchTokens)})`
      : 'lower engine.slots in temporal.config.ts';
  return `to make it fit: ${ways}, lower engine.kvCacheBytes, pass --dtype bfloat16 (with LoRA and the embedded engine also --load-in-4bit), or use a smaller model`;
}

const gib = (bytes: number) => `${(bytes / 1024 ** 3).toFixed(bytes < 1024 ** 3 / 10 ? 3 : 2)} GiB`;
const count = (value: number) => value.toLocaleString('en-US');

/** Flags of the command line; the missing ones from `train` of temporal.config.ts. */
async function readPlannedFlags(context: CommandContext<typeof doctorModelCommand>): Promise<PlannedFlags> {
  const { flags, project, env } = context;
  const words = flagText(await loadConfig(project, env));
  const line = parseCommandLine({ ...doctorModelCommand, arguments: {}, flags: RUN_FLAGS }, words);
  const usual = line.isHelp ? flags : line.flags;
  const chosen = PLANNED_FLAGS.map((name) => [name, flags[name] ?? usual[name]]);
  return Object.fromEntries(chosen) as PlannedFlags;
}

/** Same checks as in `temper train`. */
function trainOf(planned: PlannedFlags): TrainConfig {
  const values = fieldsOf(Object.fromEntries(MEMORY_FLAGS.map((name) => [name, planned[name]])), null);
  return applyRunFlags({ run: 'any', agent: 'any', baseModel: 'any' }, values).train;
}
