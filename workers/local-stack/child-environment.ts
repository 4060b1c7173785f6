/** What the children of the local stack find in their environment: only what each of them needs. */
import { withoutProfile } from '../temporal-environment.ts';

/** How a program finds its files, its language, the network and the system's libraries. */
const SYSTEM =
  /^(PATH|HOME|USER|LOGNAME|SHELL|PWD|TERM|LANG|LANGUAGE|LC_.*|TZ|TMPDIR|TEMP|TMP|XDG_.*|LD_.*|DYLD_.*|SSL_CERT_.*|(https?|all|no)_proxy|SYSTEM(ROOT|DRIVE)|WINDIR|COMSPEC|PATHEXT|APPDATA|LOCALAPPDATA|USERPROFILE|HOMEDRIVE|HOMEPATH|PROGRAM.*|NUMBER_OF_PROCESSORS|PROCESSOR_.*)$/i;
/** Settings of Go's runtime. */
const TEMPORAL_SERVER = /^GO(DEBUG|GC|MAXPROCS|MEMLIMIT|TRACEBACK)$/;
/** Temper's own, the store's, the model hub's, and those of Python, PyTorch and the libraries below it. */
const GPU_WORKER =
  /^((TEMPER|TEMPORAL|AWS|HF|HUGGINGFACE|TRANSFORMERS|TOKENIZERS|SAFETENSORS|CONDA|TORCH|TORCHINDUCTOR|PYTORCH|ATEN|OMP|KMP|GOMP|MKL|OPENBLAS|NUMEXPR|DNNL|ONEDNN|CUDA|CUBLAS|CUDNN|NVIDIA|NCCL|TRITON|HIP|HSA|ROCR|ROCM|VLLM|MALLOC)_.*|PYTHON.*|VIRTUAL_ENV|GLIBC_TUNABLES|(REQUESTS|CURL)_CA_BUNDLE)$/;

export function serverEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return pick(env, [SYSTEM, TEMPORAL_SERVER]);
}

/** Without the keys of hosted models: its weights are its only model. */
export function gpuWorkerEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return pick(env, [SYSTEM, GPU_WORKER]);
}

/** Where the stack has its own server, no profile of the user's may lead elsewhere. */
export function forOwnServer(env: NodeJS.ProcessEnv, address: string, namespace: string): NodeJS.ProcessEnv {
  return { ...withoutProfile(env), TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace };
}

const LOOPBACK = ['127.0.0.1', 'localhost', '::1'];

/** A proxy is for other hosts: programs send even requests to this machine there unless they are told not to. */
export function withoutLoopbackProxy(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (!Object.keys(env).some((name) => /^(https?|all|grpc)_proxy$/i.test(name))) return env;
  const direct = (env['no_proxy'] ?? env['NO_PROXY'] ?? '').split(',').map((host) => host.trim());
  const hosts = [...new Set([...direct, ...LOOPBACK])].filter(Boolean).join(',');
  return { ...env, no_proxy: hosts, NO_PROXY: hosts };
}

function pick(env: NodeJS.ProcessEnv, allowed: readonly RegExp[]): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => allowed.some((names) => names.test(name))));
}
