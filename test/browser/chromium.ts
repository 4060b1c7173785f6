/** The browser of the tests: a Chromium of this machine, or one from npm, which carries the libraries that it needs. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress } from 'node:zlib';
import { TemperError } from '../../core/contract/failures.ts';
import { installOnce, isComplete } from '../../workers/install/install.ts';
import { runCommand } from '../../workers/process/command.ts';
import { cacheFolder } from '../../workers/project/folders.ts';

const VERSION = '153.0.0';
const PACKAGE = `@sparticuz/chromium@${VERSION}`;
const INTEGRITY = 'jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==';
const ANSWERS_WITHIN_MS = 60_000;
const KNOWN = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome-stable',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Arguments for Playwright: containers have no user namespaces and no GPU. */
export const CHROMIUM_ARGUMENTS = ['--no-sandbox', '--disable-gpu'] as const;

/** TEMPER_CHROMIUM, one of this machine, the one in the cache, or the one of npm; null where there is none for this machine. */
export async function findChromium(env: NodeJS.ProcessEnv = process.env): Promise<string | null> {
  if (env['TEMPER_CHROMIUM']) return required(env['TEMPER_CHROMIUM'], env);
  for (const path of KNOWN) if (await runs(path, env)) return path;
  return installChromium(env);
}

/** Null where npm has none for this machine. */
export async function installChromium(env: NodeJS.ProcessEnv = process.env): Promise<string | null> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return null;
  const folder = join(cacheFolder(env), 'chromium', VERSION);
  if (!isComplete(folder)) await installOnce(folder, (partial) => unpack(partial, env), { onWait: () => undefined });
  const program = join(folder, 'chromium.sh');
  if (await runs(program, env)) return program;
  throw new TemperError('BadConfig', `${program} cannot be run; point TEMPER_CHROMIUM to a Chromium of this machine`);
}

async function required(path: string, env: NodeJS.ProcessEnv): Promise<string> {
  if (await runs(path, env)) return path;
  throw new TemperError(
    'BadConfig',
    `TEMPER_CHROMIUM must be a Chromium, but ${path} cannot be run; correct or unset it`,
  );
}

async function runs(path: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  return (await runCommand(path, ['--version'], { env, timeoutMs: ANSWERS_WITHIN_MS })).code === 0;
}

async function unpack(folder: string, env: NodeJS.ProcessEnv): Promise<void> {
  const place = { env, cwd: folder };
  await must(`downloading ${PACKAGE}`, runCommand('npm', ['pack', PACKAGE, '--silent'], place));
  const archive = join(folder, `sparticuz-chromium-${VERSION}.tgz`);
  const found = createHash('sha512')
    .update(await readFile(archive))
    .digest('base64');
  if (found !== INTEGRITY)
    throw new TemperError('BadConfig', `${PACKAGE} must have the hash sha512-${INTEGRITY}, it has sha512-${found}`);
  await must('unpacking it', runCommand('tar', ['-xzf', archive, '--strip-components=2', 'package/bin'], place));
  await decompress(join(folder, 'chromium.br'), join(folder, 'chromium'));
  for (const name of ['al2023', 'swiftshader', 'fonts']) {
    const tar = join(folder, `${name}.tar`);
    await decompress(`${tar}.br`, tar);
    await must(`unpacking ${name}`, runCommand('tar', ['-xf', tar], place));
    await rm(tar);
  }
  await rm(archive);
  await writeFile(join(folder, 'fonts.conf'), FONTS);
  await writeFile(join(folder, 'chromium.sh'), STARTER);
  for (const name of ['chromium', 'chromium.sh']) await chmod(join(folder, name), 0o755);
}

const STARTER = `#!/bin/sh
folder=$(dirname "$(readlink -f "$0")")
export LD_LIBRARY_PATH="\${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder/lib:$folder"
export FONTCONFIG_FILE="\${FONTCONFIG_FILE:-$folder/fonts.conf}"
exec "$folder/chromium" "$@"
`;

/** The package's own names folders that only its home, a cloud function, has. */
const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
`;

async function decompress(from: string, to: string): Promise<void> {
  await pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to));
  await rm(from);
}

async function must(what: string, running: ReturnType<typeof runCommand>): Promise<void> {
  const { code, output } = await running;
  if (code === 0) return;
  throw new TemperError(
    'BadConfig',
    `${what} failed: ${output.trim().split('\n').at(-1)}; check the network, or point TEMPER_CHROMIUM to a Chromium`,
  );
}
