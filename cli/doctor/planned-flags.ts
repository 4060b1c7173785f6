/** Flags of `temper doctor --model` that change the memory of a run: those of `temper train`. */
import type { TrainConfig } from '../../core/contract.ts';
import { loadConfig } from '../../workers/config.ts';
import type { CommandContext } from '../command-line/command.ts';
import { parseCommandLine } from '../command-line/parse.ts';
import { flagWords } from '../planning/project-flags.ts';
import { RUN_FLAGS } from '../planning/run-flag-table.ts';
import { applyRunFlags, fieldsOf } from '../planning/run-flags.ts';
import { doctorCommand } from './command.ts';

const TRAINED = [
  'full-fine-tuning',
  'lora-rank',
  'lora-target-modules',
  'lora-layers',
  'lora-dora',
  'lora-dropout',
  'optimizer',
  'entropy-coefficient',
  'micro-batch-tokens',
] as const;
export const PLANNED_FLAGS = ['chat-template', ...TRAINED] as const;

type PlannedFlags = Pick<CommandContext<typeof doctorCommand>['flags'], (typeof PLANNED_FLAGS)[number]>;

/** Flags of the command line; the missing ones from `train` of temporal.config.ts. */
export async function readPlannedFlags(context: CommandContext<typeof doctorCommand>): Promise<PlannedFlags> {
  const { flags, project, env } = context;
  const words = flagWords(await loadConfig(project, env));
  const line = parseCommandLine({ ...doctorCommand, flags: RUN_FLAGS }, words);
  const usual = line.isHelp ? flags : line.flags;
  const chosen = PLANNED_FLAGS.map((name) => [name, flags[name] ?? usual[name]]);
  return Object.fromEntries(chosen) as PlannedFlags;
}

/** Same checks as in `temper train`. */
export function trainOf(planned: PlannedFlags): TrainConfig {
  const values = fieldsOf(Object.fromEntries(TRAINED.map((name) => [name, planned[name]])), null);
  return applyRunFlags({ run: 'any', agent: 'any', baseModel: 'any' }, values).train;
}
