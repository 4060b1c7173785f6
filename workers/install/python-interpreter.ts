/** Finds a Python that can carry the GPU worker. */
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { runCommand } from '../process/command.ts';

export interface Interpreter {
  /** Absolute path, as it says itself. */
  readonly executable: string;
  readonly version: string;
  /** Whether it can make virtual environments: Debian packages that apart. */
  readonly hasVenv: boolean;
}

const OLDEST_MINOR = 11;
const NEWEST_MINOR = 13;
const ANSWER_WITHIN_MS = 15_000;
/** Free-threaded and 32-bit builds have no wheels to install. */
const QUESTION = `
import importlib.util, json, sys, sysconfig
usable = sys.maxsize > 2**32 and not sysconfig.get_config_var("Py_GIL_DISABLED")
venv = all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))
print(json.dumps({"executable": sys.executable, "version": ".".join(map(str, sys.version_info[:3])), "hasVenv": venv, "usable": usable}))
`;
const REMEDY = `install Python 3.${NEWEST_MINOR} (or set TEMPER_PYTHON to a Python that has everything installed)`;

function candidates(): string[][] {
  const named = [13, 12, 11].map((minor) => [`python3.${minor}`]);
  return [...named, ['python3'], ['python']];
}

/** `needsVenv`: false if uv makes the environment. */
export async function findInterpreter(env: NodeJS.ProcessEnv, needsVenv: boolean): Promise<Interpreter> {
  const rejected = new Map<string, string>();
  let withoutVenv: Interpreter | null = null;
  for (const command of candidates()) {
    const found = await askInterpreter(command, env);
    if (found === null) continue;
    if (!fits(found)) rejected.set(found.executable, found.version);
    else if (needsVenv && !found.hasVenv) withoutVenv ??= found;
    else return found;
  }
  if (withoutVenv !== null) throw withoutVenvError(withoutVenv);
  throw badConfig(`Python 3.${OLDEST_MINOR} to 3.${NEWEST_MINOR} is needed, found ${describe(rejected)}; ${REMEDY}`);
}

async function askInterpreter(
  [file = '', ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<(Interpreter & { usable: boolean }) | null> {
  const { code, output } = await runCommand(file, [...args, '-c', QUESTION], { env, timeoutMs: ANSWER_WITHIN_MS });
  const answer = output.split('\n').find((line) => line.startsWith('{'));
  return code === 0 && answer !== undefined
    ? (JSON.parse(answer) as Interpreter & { usable: boolean })
    : tooOldToAsk(file, output);
}

/** Python 2 and the first 3.x lack what the question uses; what they are is said all the same. */
function tooOldToAsk(file: string, output: string): (Interpreter & { usable: boolean }) | null {
  const isPython = /SyntaxError|ImportError|AttributeError/.test(output);
  return isPython ? { executable: file, version: 'an older version', hasVenv: false, usable: false } : null;
}

function fits({ version, usable }: { version: string; usable: boolean }): boolean {
  const [major, minor] = version.split('.').map(Number);
  return usable && major === 3 && minor !== undefined && minor >= OLDEST_MINOR && minor <= NEWEST_MINOR;
}

function describe(rejected: ReadonlyMap<string, string>): string {
  return rejected.size === 0
    ? 'none on PATH'
    : [...rejected].map(([executable, version]) => `${version} (${executable})`).join(', ');
}

function withoutVenvError({ executable, version }: Interpreter): TemperError {
  const minor = version.split('.').slice(0, 2).join('.');
  return badConfig(
    `${executable} (Python ${version}) lacks venv and ensurepip, which Debian and Ubuntu package separately; run apt install python${minor}-venv, or install uv`,
  );
}
