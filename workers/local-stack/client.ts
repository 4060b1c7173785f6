/** The local stack as a command line sees it: opened or adopted, waited for, held, let go. */
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { agentCodeSha256 } from '../user-code/agent-code.ts';
import { rememberAgent } from '../user-code/known-agents.ts';
import type { EngineSettings } from '../../core/contract/engine.ts';
import { checkLocalEngine, loadConfig, type TemperConfig } from '../config/config.ts';
import { connectClient } from '../connection/connection.ts';
import { configuredTarget, type TemporalTarget } from '../connection/target.ts';
import { cacheFolder, makeProjectFolders, type ProjectFolders } from '../project/folders.ts';
import { keepHistoryForAYear, registerSearchAttributes } from '../connection/namespace.ts';
import { checkAddresses, checkJoined, checkPorts } from './check-joined.ts';
import { engineKeyOf } from './daemon/engine-key.ts';
import {
  connectDaemon,
  DaemonExited,
  type HoldOptions,
  type DaemonConnection,
  type StackReleased,
} from './daemon-connection.ts';
import type { LocalStackOptions } from './options.ts';
import { absoluteModels } from '../base-models/known-models.ts';
import { specifyStack } from './specify.ts';
import { withoutProfile } from '../process/child-environment.ts';
import { waitForStack } from './wait.ts';

export interface LocalStack {
  readonly temporalAddress: string;
  readonly namespace: string;
  /** Temporal's web UI; null unless the server is the stack's. */
  readonly uiUrl: string | null;
  /** Null: it serves no metrics. */
  readonly metricsUrl: string | null;
  readonly engineUrl: string;
  readonly engineKey: string;
  readonly storeUri: string;
  /** Settings of the user's request. */
  readonly engine: Pick<EngineSettings, 'device' | 'dtype' | 'loadIn4bit'>;
  /** True if it joined a running stack. */
  readonly adopted: boolean;
  /** Lets go. The stack ends, unless another command holds it too; the agent's worker ends unless another plays it too. */
  close(): Promise<StackReleased>;
}

const RETRIES = 3;
const REOPEN_PAUSE_MS = 1000;

export async function openLocalStack(options: LocalStackOptions): Promise<LocalStack> {
  try {
    return await openAndHold(options);
  } catch (error) {
    // A failure after the request to end is not an error.
    options.signal?.throwIfAborted();
    throw error;
  }
}

async function openAndHold(given: LocalStackOptions): Promise<LocalStack> {
  // Other processes, in other folders, must mean the same.
  const agentFile = given.agentFile === null ? null : resolve(given.agentFile);
  const options = { ...given, project: resolve(given.project), agentFile };
  const folders = makeProjectFolders(options.project);
  const config = options.config ?? (await loadConfig(options.project, options.env ?? process.env));
  checkLocalEngine(config);
  const external = configuredTarget(options.env);
  const hold = await holdOptions(options, folders, config, external);
  checkPorts(options, external === null, config);
  const engineKey = engineKeyOf(config.engine, folders);
  if (external !== null) await checkReachable(external, options.env);
  const first = await open(
    {
      ...hold,
      check(stack, adopted) {
        hold.check(stack, adopted);
        if (!adopted) return;
        checkJoined(stack, options, config, folders);
        options.checkJoined?.(stack);
      },
    },
    options,
    config,
  );
  // A restart after a crash decides the daemon's settings: another command adopts them.
  const held = keepHeld(first, () => open(hold, options, config), options);
  const { stack } = first;
  return {
    temporalAddress: stack.temporalAddress,
    namespace: stack.namespace,
    uiUrl: stack.uiUrl,
    metricsUrl: stack.metricsUrl ?? null,
    engineUrl: stack.engineUrl,
    storeUri: stack.storeUri,
    engineKey,
    engine: stack.engine,
    adopted: first.adopted,
    close: () => held.close(),
  };
}

async function holdOptions(
  options: LocalStackOptions,
  folders: ProjectFolders,
  config: TemperConfig,
  external: TemporalTarget | null,
): Promise<HoldOptions> {
  const { agentFile, onEvent, signal } = options;
  const env = options.env ?? process.env;
  const install = { env, cache: cacheFolder(env), onEvent, signal };
  const agents = agentFile === null ? [] : [{ file: agentFile, codeSha256: await agentCodeSha256(agentFile) }];
  for (const agent of agents) rememberAgent(options.project, agent);
  return {
    folders,
    agents,
    models: absoluteModels(options.project, { ...config.models, ...options.models }),
    check: (stack) => checkAddresses(stack, config, external),
    makeSpec: () => specifyStack({ folders, config, install, options }),
    onEvent,
    signal,
  };
}

async function checkReachable(target: TemporalTarget, env?: NodeJS.ProcessEnv): Promise<void> {
  const client = await connectClient(target, env);
  await client.close();
}

/** A daemon that ends just now, or is killed while it starts, is replaced. */
async function open(hold: HoldOptions, options: LocalStackOptions, config: TemperConfig): Promise<DaemonConnection> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await openOnce(hold, options, config);
    } catch (error) {
      if (!(error instanceof DaemonExited) || tries >= RETRIES) throw error;
    }
  }
}

async function openOnce(
  hold: HoldOptions,
  options: LocalStackOptions,
  config: TemperConfig,
): Promise<DaemonConnection> {
  const { agentFile, onEvent, signal } = options;
  const connection = await connectDaemon(hold);
  const waits = { agentFile, hasGpuWorker: config.engine.url === null, onEvent, signal };
  try {
    await waitForStack(connection, waits, () => prepareNamespace(connection, options));
    return connection;
  } catch (error) {
    await connection.release();
    throw error;
  }
}

async function prepareNamespace({ stack }: DaemonConnection, options: LocalStackOptions): Promise<void> {
  const { temporalAddress: address, namespace } = stack;
  const env = stack.ownsServer ? withoutProfile(options.env ?? process.env) : options.env;
  const client = await connectClient({ address, namespace }, env);
  try {
    if (stack.ownsServer) await keepHistoryForAYear(client);
    await registerSearchAttributes(client);
  } catch (error) {
    if (stack.ownsServer) throw error;
    // Not everybody may change a shared namespace; `temper doctor` says what is missing.
    const reason = error instanceof Error ? error.message : String(error);
    options.onEvent({
      kind: 'notice',
      message: `search attributes could not be registered in ${namespace} (${reason}); ask its administrator, see temper doctor`,
    });
  } finally {
    await client.close();
  }
}

/** The daemon itself may be killed: its children end with it, and a new one takes up where it was, on the same ports. */
function keepHeld(first: DaemonConnection, reopen: () => Promise<DaemonConnection>, { onEvent }: LocalStackOptions) {
  const notice = (message: string) => onEvent({ kind: 'notice', message });
  const closing = new AbortController();
  let current = first;
  let reopening = Promise.resolve();
  const again = async () => {
    notice('the local stack ended unexpectedly; restarting it');
    while (!closing.signal.aborted) {
      try {
        hold(await reopen());
        return;
      } catch (error) {
        notice(`the local stack could not be started: ${error instanceof Error ? error.message : String(error)}`);
        await sleep(REOPEN_PAUSE_MS);
      }
    }
  };
  const hold = (connection: DaemonConnection) => {
    current = connection;
    connection.onLost(() => {
      reopening = again();
    });
  };
  hold(first);
  return {
    async close() {
      closing.abort();
      await reopening;
      return current.release();
    },
  };
}
