/** Tools of the checks and tests: the Python environment with its packages, Temporal's CLI, an S3 server and a browser, installed where they are not. */
import { existsSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { cacheFolder } from '../../workers/project/folders.ts';
import type { StackEvent } from '../../workers/events.ts';
import type { InstallOptions } from '../../workers/install/install.ts';
import { installDevTools, openPythonEnvironment } from '../../workers/install/python-environment.ts';
import { findTemporalCli } from '../../workers/install/temporal-cli.ts';
import { findChromium } from '../browser/chromium.ts';
import { findVersitygw } from './versitygw.ts';

export interface Tools {
  readonly python: string;
  readonly temporalCli: string;
  /** Only some jobs need it, and it may have to be built first: rejects where that fails. */
  readonly versitygw: Promise<string>;
  /** Null where no Chromium can be had. */
  readonly chromium: string | null;
}

export async function openTools(): Promise<Tools> {
  const options = installOptions();
  const versitygw = findVersitygw().then(absolute);
  // Whoever waits for it gets the error, however early it comes.
  versitygw.catch(() => undefined);
  const [python, { path }, chromium] = await Promise.all([
    openTestPython(options),
    findTemporalCli({ ...options, databaseServer: null }),
    findChromium(),
  ]);
  return { python, temporalCli: absolute(path), versitygw, chromium };
}

/** How processes of tests find the tools; the S3 server, which may not be there yet, apart. */
export function variablesOf({ python, temporalCli, chromium }: Tools): Record<string, string> {
  const browser = chromium === null ? {} : { TEMPER_CHROMIUM: chromium };
  return { TEMPER_PYTHON: python, TEMPER_TEMPORAL_CLI: temporalCli, ...browser };
}

/** The GPU worker's, with what its tests need. */
export async function openTestPython(options = installOptions()): Promise<string> {
  const environment = await openPythonEnvironment(options);
  await installDevTools(environment, options);
  return environment.python;
}

function installOptions(): InstallOptions {
  return { env: process.env, cache: cacheFolder(), onEvent: printer() };
}

/** Tests that take the PATH away still need the servers. */
function absolute(program: string): string {
  if (isAbsolute(program)) return program;
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.map((folder) => join(folder, program)).find((file) => existsSync(file)) ?? program;
}

/** A line whenever the message changes: logs of CI are read, not watched. */
function printer(): (event: StackEvent) => void {
  const last = new Map<string, string>();
  return (event) => {
    if (event.kind === 'notice') console.log(event.message);
    if (event.kind !== 'progress' || event.message === last.get(event.task)) return;
    last.set(event.task, event.message);
    console.log(`${event.task}: ${event.message} (${event.elapsedSeconds} s)`);
  };
}
