/** Runs work with the local stack's engine; starts no stack if all players are hosted. */
import { badConfig } from '../../core/contract/failures.ts';
import type { EngineAddress } from '../../play/connections/engine-connection.ts';
import { checkTrainedWeights } from '../../core/rules/engine-rules.ts';
import { loadConfig, type EngineConfig } from '../../workers/config/config.ts';
import { ANY_USE } from '../../workers/local-stack/decide-engine.ts';
import { findDevices } from '../../workers/devices/devices.ts';
import { describeBase, isSameBase, loadedBase, type LoadedBase } from '../../workers/config/loaded-base.ts';
import { openLocalStack } from '../../workers/local-stack/client.ts';
import type { LocalStackOptions } from '../../workers/local-stack/options.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { proveChatTemplate } from '../planning/chat-template.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import type { PlayedBase } from './target.ts';
import type { Players } from './players.ts';

/** `work` gets null if all players are hosted. */
export async function withEngine<T>(
  { players, models, template, base }: Players,
  environment: CommandEnvironment,
  work: (engine: EngineAddress | null) => Promise<T>,
): Promise<T> {
  const { project, output, signal, env } = environment;
  const played = players.filter(({ hosted }) => hosted === null);
  if (played.length === 0) return work(null);
  const required = await requireBase(base, environment);
  if (template !== null) {
    const baseModels = new Set(played.map(({ checkpoint, model }) => checkpoint?.config.baseModel ?? model));
    for (const baseModel of baseModels)
      await proveChatTemplate({ template, isInherited: false, baseModel, models }, environment);
    // The engine reads the template from the store.
    await (await openProjectStore(project, env)).putBlob(template.bytes);
  }
  const stack = await openLocalStack({
    project,
    agentFile: null,
    models,
    // Progress goes to stderr, so that pipes only see the result.
    onEvent: createEventPrinter((line) => output.errorLine(line)),
    signal,
    env,
    use: {
      ...ANY_USE,
      trained: played.flatMap(({ checkpoint }) => (checkpoint ? [checkpoint.config.train.lora] : [])),
    },
    ...required,
  });
  try {
    return await work({ url: stack.engineUrl, key: stack.engineKey });
  } finally {
    await stack.close();
  }
}

/** Engine settings for the checkpoints' base model. A remote engine refuses checkpoints of another base model itself. */
async function requireBase(
  base: Players['base'],
  { project, env }: CommandEnvironment,
): Promise<Pick<LocalStackOptions, 'config' | 'checkJoined'>> {
  const config = await loadConfig(project, env);
  if (base === null || config.engine.url !== null) return {};
  const { gpus } = await findDevices(config.engine, env);
  return {
    config: { ...config, engine: engineFor(base, config.engine) },
    checkJoined: (stack) => checkPlayedBase(base, loadedBase(stack.engine, gpus.length > 0)),
  };
}

/** Engine settings for the local stack. */
export function engineFor(played: PlayedBase, engine: EngineConfig): EngineConfig {
  const { dtype, loadIn4bit, checkpoint } = played;
  checkTrainedWeights(`${checkpoint} must be played`, { ...engine, loadIn4bit });
  // Parts of packed weights are not supported.
  const ofWholeWeights = loadIn4bit ? { shardBaseModel: false } : {};
  return { ...engine, dtype, loadIn4bit, ...ofWholeWeights };
}

/** Checks a local stack that another command started. */
export function checkPlayedBase(played: PlayedBase, loaded: LoadedBase): void {
  if (isSameBase(played, loaded)) return;
  throw badConfig(
    `${played.checkpoint} must be played with its base model as it was trained, in ${describeBase(played)}, but the local stack of this project runs already and loads base models in ${describeBase(loaded)}; stop that stack first`,
  );
}
