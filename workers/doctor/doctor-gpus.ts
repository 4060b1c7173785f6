/** Checks GPUs: driver, memory, processes that use it, and the engine that samples there. */
import { EMBEDDED_SPEED, type EngineDecision } from '../local-stack/decide-engine.ts';
import { askNvidiaSmi, visibleOf, type SmiAnswer } from '../devices/nvidia-smi.ts';
import { failed, passed, unknown, type DoctorCheck } from './check.ts';

/** Oldest driver for PyTorch's CUDA 13 build, and oldest GPUs that CUDA 13 supports. */
const LEAST_DRIVER = 580;
const LEAST_CAPABILITY = 7.5;
const GPU_QUERY = '--query-gpu=index,uuid,name,driver_version,compute_cap,memory.total,memory.free';
const PROCESS_QUERY = '--query-compute-apps=gpu_uuid,pid,process_name,used_memory';

interface Gpu {
  readonly index: string;
  readonly uuid: string;
  readonly name: string;
  readonly driver: string;
  readonly capability: string;
  /** In MiB; NaN if the driver does not report it. */
  readonly total: number;
  readonly free: number;
}

export interface FoundGpus {
  readonly gpus: readonly Gpu[];
  /** Names of those that a GPU worker sees. */
  readonly names: readonly string[];
  /** Processes that use memory: one line for each, by the GPU's uuid. */
  readonly holders: ReadonlyMap<string, readonly string[]>;
  /** Why nothing is known, though there is a driver. */
  readonly failure: string | null;
}

const NONE: FoundGpus = { gpus: [], names: [], holders: new Map(), failure: null };

/** Asks the driver twice. */
export async function readGpus(env: NodeJS.ProcessEnv): Promise<FoundGpus> {
  const [answer, processes] = await Promise.all([askNvidiaSmi(GPU_QUERY, env), askNvidiaSmi(PROCESS_QUERY, env)]);
  if (answer === null) return NONE;
  const gpus = answer.lines.map(parseGpu);
  const known = gpus.filter((gpu) => gpu !== null);
  if (answer.code !== 0 || known.length < gpus.length) return { ...NONE, failure: failureOf(answer) };
  const names = visibleOf(known, env).map(({ name }) => name);
  return { gpus: known, names, holders: holdersOf(processes), failure: null };
}

/** Nothing for a host without GPUs. */
export function gpuChecks({ gpus, holders, failure }: FoundGpus, decided: EngineDecision): DoctorCheck[] {
  // A host that may compute on its CPU all the same.
  if (failure !== null)
    return [unknown('GPU driver', failure, 'reload or install the NVIDIA driver if this machine has a GPU')];
  const [first] = gpus;
  if (first === undefined) return [];
  const each = gpus.map((gpu) => checkGpu(gpu, holders.get(gpu.uuid) ?? []));
  return [checkDriver(first.driver), ...each, checkSampling(decided)];
}

function checkDriver(driver: string): DoctorCheck {
  const rule = `PyTorch for CUDA 13 needs ${LEAST_DRIVER} or newer`;
  const isNew = Number.parseInt(driver, 10) >= LEAST_DRIVER;
  if (isNew) return passed('GPU driver', `${driver} (${rule})`);
  return failed('GPU driver', `${driver}, but ${rule}`, 'update the driver, or set engine.device to cpu');
}

function checkGpu({ index, name, capability, total, free }: Gpu, holders: readonly string[]): DoctorCheck {
  const memory = Number.isNaN(total) ? 'memory not known' : `${gib(free)} of ${gib(total)} GiB free`;
  const held = holders.length === 0 ? '' : `, held by ${holders.join(', ')}`;
  const detail = `${name}, compute capability ${capability}, ${memory}${held}`;
  if (!(Number(capability) < LEAST_CAPABILITY)) return passed(`GPU ${index}`, detail);
  const remedy = `CUDA 13 needs ${LEAST_CAPABILITY} or more: use another GPU, or set engine.device to cpu`;
  return failed(`GPU ${index}`, detail, remedy);
}

function checkSampling({ kind, reason }: EngineDecision): DoctorCheck {
  const detail = reason === null ? kind : `${kind}, ${reason}`;
  if (detail.includes(EMBEDDED_SPEED)) return passed('sampling', detail);
  const speed = kind === 'vllm' ? `${EMBEDDED_SPEED}; vLLM was not measured` : EMBEDDED_SPEED;
  return passed('sampling', `${detail}; ${speed}`);
}

function parseGpu(line: string): Gpu | null {
  const [index, uuid, name, driver, capability, total, free, ...others] = line.split(', ').map((part) => part.trim());
  if (!index || !uuid || !name || !driver || !capability || free === undefined || others.length > 0) return null;
  return { index, uuid, name, driver, capability, total: Number(total), free: Number(free) };
}

function failureOf({ code, lines }: SmiAnswer): string {
  const [first = 'no output'] = lines;
  if (code === null) return 'nvidia-smi did not answer in time';
  return code === 0 ? `nvidia-smi answers in another form: ${first}` : `nvidia-smi ended with code ${code}: ${first}`;
}

/** In a container, the driver may hide processes. */
function holdersOf(answer: SmiAnswer | null): Map<string, string[]> {
  const holders = new Map<string, string[]>();
  if (answer?.code !== 0) return holders;
  for (const line of answer.lines) {
    const [uuid = '', pid, name = '', used] = line.split(', ').map((part) => part.trim());
    if (pid === undefined || !/^\d+$/.test(pid)) continue;
    const size = Number.isNaN(Number(used)) ? '' : `, ${gib(Number(used))} GiB`;
    holders.set(uuid, [...(holders.get(uuid) ?? []), `${name.split(/[\\/]/).at(-1)} (pid ${pid}${size})`]);
  }
  return holders;
}

const gib = (mib: number) => (mib / 1024).toFixed(1);
