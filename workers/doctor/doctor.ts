/** Checks Temper's requirements one by one: each check has a result and a remedy. The command line prints them. */
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { mergeEngineConfig } from '../../core/rules/engine-rules.ts';
import { VLLM_KEY_VARIABLE } from '../../core/contract/wire-constants.ts';
import { configuredTarget } from '../connection/target.ts';
import { loadConfig } from '../config/config.ts';
import { ANY_USE, decideEngine } from '../local-stack/decide-engine.ts';
import { cacheFolder, projectFolders, storeUri } from '../project/folders.ts';
import { readStackFile } from '../local-stack/protocol/stack-file.ts';
import { checkServer } from './doctor-server.ts';
import { gpuChecks, readGpus } from './doctor-gpus.ts';
import { vllmServerState } from './doctor-vllm.ts';
import { attempt, failed, notRunning, passed, type DoctorCheck, type DoctorOptions, type Patient } from './check.ts';
import { runningTarget } from '../local-stack/running-stack.ts';
import { pythonState } from '../install/python-environment.ts';
import { vllmState } from '../install/vllm-environment.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { findInstalledCli, readDatabaseServer } from '../install/temporal-cli.ts';
import { findDevices, requireDevices, type AskedDevices } from '../devices/devices.ts';
import { checkDeployTarget, checkTarget } from '../../outbound/access/check-access.ts';
import { SERVICES, type ServiceName } from '../../outbound/deploy/targets/services.ts';

const ENGINE_WITHIN_MS = 5000;

export async function examine(options: DoctorOptions): Promise<DoctorCheck[]> {
  const folders = projectFolders(options.project);
  const patient: Patient = {
    ...options,
    folders,
    config: await loadConfig(options.project, options.env),
    target: runningTarget(options.project, options.env),
  };
  const own = await examineEngine(patient);
  const checks = await Promise.all([
    checkPython(patient),
    ...own,
    checkTemporalCli(patient),
    checkStore(patient),
    checkEngine(patient),
    checkServer(patient),
    checkTargets(patient),
  ]);
  // One that is too old does not come so far: cli/temper.js refuses it.
  return [passed('Node', process.versions.node), ...checks.flat(), ...checkStoreFolder(patient)];
}

function checkPython({ config, env }: Patient): Promise<DoctorCheck> {
  if (config.engine.url !== null)
    return Promise.resolve(passed('Python environment', `not needed: the engine is ${config.engine.url}`));
  return attempt('Python environment', () => pythonState({ env, cache: cacheFolder(env) }));
}

/** Checks the GPU worker that the local stack would start. */
async function examineEngine(patient: Patient): Promise<(DoctorCheck | Promise<DoctorCheck>)[]> {
  const { config, env } = patient;
  const { engine: configured } = config;
  if (configured.url !== null) return [];
  const found = configured.device === 'cpu' ? null : await readGpus(env);
  const decided = await decideEngine(configured, {}, ANY_USE, { env, cache: cacheFolder(env) }, found?.names);
  const engine = mergeEngineConfig(configured, {}, decided.kind);
  return [
    attempt('devices', () => devicesState(engine, env, found?.names)),
    ...(found === null ? [] : gpuChecks(found, decided)),
    ...(engine.kind === 'vllm' ? [checkVllm(patient)] : []),
  ];
}

function checkVllm({ config, env }: Patient): Promise<DoctorCheck> {
  const { url, adapters } = config.engine.vllm;
  if (url === null) return attempt('vLLM', () => vllmState({ env, cache: cacheFolder(env) }));
  return attempt('vLLM', () => vllmServerState(url, adapters.folder, env[VLLM_KEY_VARIABLE]));
}

function checkTemporalCli({ env, folders }: Patient): Promise<DoctorCheck> {
  const configured = configuredTarget(env);
  if (configured !== null)
    return Promise.resolve(passed('Temporal CLI', `not needed: the server is ${configured.address}`));
  return attempt('Temporal CLI', async () => {
    const databaseServer = readDatabaseServer(folders.temporalVersion, folders.database);
    const cli = await findInstalledCli({ env, cache: cacheFolder(env), databaseServer });
    return cli === null
      ? 'not installed yet; the first start downloads or builds it'
      : `${cli.path} (server ${cli.serverVersion})`;
  });
}

function checkStore({ config, folders }: Patient): Promise<DoctorCheck> {
  return attempt('store', async () => {
    const store = await openStore(storeUri(config.store, folders));
    try {
      await store.checkWritable();
      return store.uri;
    } finally {
      await store.close();
    }
  });
}

/** One in the project's state folder is closed to others by that. */
function checkStoreFolder({ config, folders }: Patient): DoctorCheck[] {
  const uri = storeUri(config.store, folders);
  const folder = uri.startsWith('file:') ? fileURLToPath(uri) : null;
  const mode = folder === null ? undefined : statSync(folder, { throwIfNoEntry: false })?.mode;
  if (folder === null || mode === undefined || folder.startsWith(folders.state) || (mode & 0o007) === 0) return [];
  return [failed('store folder', `every user of this machine can read ${folder}`, `chmod o= ${folder}`)];
}

async function checkEngine({ config, folders, target }: Patient): Promise<DoctorCheck> {
  const port = readStackFile(folders.stackFile)?.ports?.engine;
  const url = config.engine.url ?? (target === null || port === undefined ? null : `http://127.0.0.1:${port}`);
  if (url === null) return notRunning('engine');
  return attempt('engine', async () => {
    try {
      const response = await fetch(new URL('/health', url), { signal: AbortSignal.timeout(ENGINE_WITHIN_MS) });
      if (response.ok) return `${url} answers`;
      throw new Error(`status ${response.status}`);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(
        `${url} does not answer as expected (${reason}); see .temper/logs/gpu-worker.jsonl, or correct engine.url in temporal.config.ts (or TEMPER_ENGINE_URL, if set)`,
        { cause },
      );
    }
  });
}

/** Throws if the GPU worker would refuse to start. `known`: names of GPUs, if the caller has them. */
export async function devicesState(engine: AskedDevices, env: NodeJS.ProcessEnv, known?: readonly string[]) {
  await requireDevices(engine, env, known);
  const { gpus, cores, where } = await findDevices(engine, env, known);
  const here = `${gpus.length} ${gpus.length === 1 ? 'GPU' : 'GPUs'}${listed(gpus)}, ${cores} CPU cores`;
  const parts = engine.shardBaseModel ? ', each with a part of the base model (engine.shardBaseModel)' : '';
  return `${here}; ${engine.devices} of the ${where} (engine.devices)${parts}`;
}

function listed(gpus: readonly string[]): string {
  return gpus.length === 0 ? '' : ` (${[...new Set(gpus)].join(', ')})`;
}

const WITHIN_MS = 10_000;

/** Those that the project names, and targets of deployments whose key is set. */
export function checkTargets({ config, env }: Pick<Patient, 'config' | 'env'>): Promise<DoctorCheck[]> {
  const place = { env, fetch: globalThis.fetch, signal: AbortSignal.timeout(WITHIN_MS) };
  const told = [...config.track, ...config.trace].map((settings) =>
    attempt(settings.name, async () => (await checkTarget(settings, place)) ?? 'writes files of this host'),
  );
  const names = (Object.keys(SERVICES) as ServiceName[]).filter((name) => env[SERVICES[name].keyVariable]);
  const deployed = names.map((name) => attempt(name, () => checkDeployTarget(name, place)));
  return Promise.all([...told, ...deployed]);
}
