/** Compares a command's options with the running local stack, and refuses those that it does not fulfil. */
import type { EngineOverrides } from '../../core/rules/engine-rules.ts';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import type { TemperConfig } from '../config/config.ts';
import type { TemporalTarget } from '../connection/target.ts';
import { version } from '../version.ts';
import { storeUri, type ProjectFolders } from '../project/folders.ts';
import type { LocalStackOptions } from './options.ts';
import type { StackDescription } from './protocol/protocol.ts';

const OWN_ENGINE = /^http:\/\/127\.0\.0\.1:\d+$/;

type Asked = Pick<LocalStackOptions, 'uiPort' | 'enginePort' | 'metricsPort' | 'overrides'>;

/** Flags of the GPU worker, by what they override; for switches, what the stack has without. */
const GPU_WORKER_FLAGS = [
  ['device', '--device'],
  ['dtype', '--dtype'],
  ['devices', '--devices'],
  ['kind', '--engine'],
  ['shardBaseModel', '--shard-base-model', 'a whole base model on each device'],
  ['loadIn4bit', '--load-in-4bit', 'a base model that is not in 4 bits'],
] as const;

/** Before anything is started: ports and numbers of what this stack does not start. */
export function checkPorts(asked: Asked, hasServer: boolean, { engine }: TemperConfig): void {
  const { uiPort, enginePort, overrides = {} } = asked;
  const [, idle] = GPU_WORKER_FLAGS.find(([name]) => isGiven(overrides[name])) ?? [];
  if (idle !== undefined && engine.url !== null)
    throw withoutEffect(idle, `the engine is configured (${engine.url}), so Temper starts no GPU worker`);
  if (uiPort != null && !hasServer)
    throw withoutEffect(
      '--ui-port',
      'the Temporal server is configured (TEMPORAL_ADDRESS or temporal.toml), so none is started',
    );
  if (enginePort != null && engine.url !== null)
    throw withoutEffect('--engine-port', `the engine is configured (${engine.url}), so none is started`);
}

/** A stack that was joined keeps the ports, the store and the engine that it was started with. */
export function checkJoined(
  stack: Pick<StackDescription, 'uiUrl' | 'engineUrl' | 'metricsUrl' | 'storeUri' | 'engine'>,
  asked: Asked,
  config: TemperConfig,
  folders: ProjectFolders,
): void {
  checkGpuWorker(stack, asked.overrides ?? {});
  const ports = [
    ['--ui-port', asked.uiPort, stack.uiUrl, 'UI'],
    ['--engine-port', asked.enginePort, stack.engineUrl, 'engine'],
    ['--metrics-port', asked.metricsPort, stack.metricsUrl ?? null, 'metrics'],
  ] as const;
  for (const [flag, port, url, what] of ports)
    if (port != null && (url === null || new URL(url).port !== String(port)))
      throw runsAlready(flag, url === null ? `without ${what}` : `with its ${what} at ${url}`);
  const wanted = { store: storeUri(config.store, folders), engine: config.engine.url ?? stack.engineUrl };
  if (stack.storeUri !== wanted.store) throw otherStack('store', stack.storeUri, wanted.store);
  if (stack.engineUrl !== wanted.engine) throw otherStack('engine', stack.engineUrl, wanted.engine);
}

function checkGpuWorker({ engine }: Pick<StackDescription, 'engine'>, overrides: EngineOverrides): void {
  for (const [name, flag, without] of GPU_WORKER_FLAGS)
    if (isGiven(overrides[name]) && overrides[name] !== engine[name])
      throw runsAlready(flag, `with ${without ?? `${flag} ${engine[name]}`}`);
}

function isGiven(value: EngineOverrides[keyof EngineOverrides]): boolean {
  return value != null && value !== false;
}

/** Its workers, and the words that it understands, are those of the version that started it. */
export function checkVersion({ version: theirs }: Pick<StackDescription, 'version'>): void {
  const [starter, mine] = [theirs ?? 'of an earlier version', version()];
  if (starter === mine) return;
  throw badConfig(
    `the local stack of this project was started by Temper ${starter}, this command is Temper ${mine}; end the commands that use that stack (Ctrl-C in temper dev, train or serve), then repeat this one: runs continue where they are`,
  );
}

/** Before anything is sent there: keys go to the addresses that the configuration names, and to this machine. */
export function checkAddresses(stack: StackDescription, { engine }: TemperConfig, server: TemporalTarget | null): void {
  if (engine.url === null && !OWN_ENGINE.test(stack.engineUrl))
    throw otherStack('engine', stack.engineUrl, 'one of its own');
  if (!stack.ownsServer && stack.temporalAddress !== server?.address)
    throw badConfig(
      `the local stack of this project runs with the Temporal server ${stack.temporalAddress}, this command needs ${server?.address ?? 'one of its own'} (TEMPORAL_ADDRESS or temporal.toml); stop that stack first, or use its server`,
    );
}

function runsAlready(flag: string, where: string): TemperError {
  return withoutEffect(flag, `the local stack of this project runs already, ${where}`);
}

function withoutEffect(flag: string, because: string): TemperError {
  return badConfig(`${flag} has no effect here: ${because}; leave the flag out, or change that first`);
}

function otherStack(what: string, runs: string, wanted: string): TemperError {
  return badConfig(
    `the local stack of this project runs with the ${what} ${runs}, this command needs ${wanted} (temporal.config.ts, TEMPER_${what === 'store' ? 'STORE' : 'ENGINE_URL'}); stop that stack first, or use its ${what}`,
  );
}
