/** Temporal's CLI, whose dev server is the local stack's: found, downloaded, or built; always one that fits the project's database. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import { runCommand } from '../process/command.ts';
import { isComplete, type InstallOptions } from './install.ts';
import { installTemporalCli, TEMPORAL_CLI_VERSION } from './temporal-cli-install.ts';

export interface TemporalCli {
  readonly path: string;
  readonly serverVersion: string;
}

/** Updates with start, typed search attributes and activity pause work from here on. */
const OLDEST_SERVER = '1.28.0';
const VERSION_WITHIN_MS = 20_000;
const PROGRAM = 'temporal';

export interface CliWanted {
  readonly env: NodeJS.ProcessEnv;
  readonly cache: string;
  /** Version that wrote the project's database: there are no migrations, so only this version may open it. */
  readonly databaseServer: string | null;
}

export async function findTemporalCli(options: InstallOptions & CliWanted): Promise<TemporalCli> {
  const found = await findInstalledCli(options);
  if (found !== null) return found;
  const { path, folder } = cachedCli(options.cache);
  await installTemporalCli(folder, PROGRAM, options);
  return fitting(await askVersion(path, options.env), path, options.databaseServer);
}

/** Null if it must be installed first. */
export async function findInstalledCli({ env, cache, databaseServer }: CliWanted): Promise<TemporalCli | null> {
  if (env.TEMPER_TEMPORAL_CLI) return explicitCli(env.TEMPER_TEMPORAL_CLI, databaseServer);
  const cached = cachedCli(cache);
  const onPath = await askVersion('temporal', env);
  if (onPath && misfit(onPath, databaseServer) === null) return onPath;
  return isComplete(cached.folder) ? fitting(await askVersion(cached.path, env), cached.path, databaseServer) : null;
}

function cachedCli(cache: string): { folder: string; path: string } {
  const folder = join(cache, 'temporal', TEMPORAL_CLI_VERSION);
  return { folder, path: join(folder, PROGRAM) };
}

async function explicitCli(path: string, databaseServer: string | null): Promise<TemporalCli> {
  return fitting(await askVersion(path, process.env), `TEMPER_TEMPORAL_CLI (${path})`, databaseServer);
}

function fitting(cli: TemporalCli | null, what: string, databaseServer: string | null): TemporalCli {
  if (cli === null)
    throw badConfig(
      `${what} must be Temporal's CLI, but it cannot be run; point TEMPER_TEMPORAL_CLI to one or unset it`,
    );
  const reason = misfit(cli, databaseServer);
  if (reason === null) return cli;
  throw badConfig(`${what} contains server ${cli.serverVersion}, ${reason}`);
}

function misfit(cli: TemporalCli, databaseServer: string | null): string | null {
  if (isOlder(cli.serverVersion, OLDEST_SERVER))
    return `but ${OLDEST_SERVER} or newer is needed; update it or unset TEMPER_TEMPORAL_CLI`;
  if (databaseServer === null || cli.serverVersion === databaseServer) return null;
  return `but the project's .temper/temporal.db was written by server ${databaseServer}; point TEMPER_TEMPORAL_CLI to a CLI with that server, or remove the file (finished runs stay in the store)`;
}

/** Null if it cannot be run or does not say which server it brings. */
async function askVersion(path: string, env: NodeJS.ProcessEnv): Promise<TemporalCli | null> {
  const { code, output } = await runCommand(path, ['--version'], { env, timeoutMs: VERSION_WITHIN_MS });
  const serverVersion = /Server (\d+\.\d+\.\d+)/.exec(output)?.[1];
  return code === 0 && serverVersion !== undefined ? { path, serverVersion } : null;
}

function isOlder(version: string, than: string): boolean {
  return version.localeCompare(than, 'en', { numeric: true }) < 0;
}

/** The server version recorded beside the database; null for a new one. */
export function readDatabaseServer(versionFile: string, database: string): string | null {
  return existsSync(database) && existsSync(versionFile) ? readFileSync(versionFile, 'utf8').trim() : null;
}

export function recordDatabaseServer(versionFile: string, cli: TemporalCli): void {
  writeFileSync(versionFile, `${cli.serverVersion}\n`);
}
