/** Environment of the local stack's children: only the variables that each of them needs. */
import { withoutDoorKeys } from '../../core/names/door-keys.ts';
import { systemEnvironment } from '../../play/programs/environment.ts';

/** Settings of Go's runtime. */
const TEMPORAL_SERVER = /^GO(DEBUG|GC|MAXPROCS|MEMLIMIT|TRACEBACK)$/;
/** Temper's own, the store's, the model hub's, and those of Python, PyTorch and the libraries below it. */
const GPU_WORKER =
  /^((TEMPER|TEMPORAL|AWS|HF|HUGGINGFACE|TRANSFORMERS|TOKENIZERS|SAFETENSORS|CONDA|TORCH|TORCHINDUCTOR|PYTORCH|ATEN|OMP|KMP|GOMP|MKL|OPENBLAS|NUMEXPR|DNNL|ONEDNN|CUDA|CUBLAS|CUDNN|NVIDIA|NCCL|TRITON|HIP|HSA|ROCR|ROCM|VLLM|MALLOC)_.*|PYTHON.*|VIRTUAL_ENV|GLIBC_TUNABLES|(REQUESTS|CURL)_CA_BUNDLE)$/;

/** It ends where it finds neither name nor home of its user, as in a container with a user that is a number alone. */
export function serverEnvironment(env: NodeJS.ProcessEnv, home: string): NodeJS.ProcessEnv {
  return { USER: 'temper', HOME: home, ...systemEnvironment(env, TEMPORAL_SERVER) };
}

/** Without the keys of hosted models: its weights are its only model. */
export function gpuWorkerEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return withoutDoorKeys(systemEnvironment(env, GPU_WORKER));
}

/** Environment with the stack's own server instead of that of the user's profile. */
export function forOwnServer(env: NodeJS.ProcessEnv, address: string, namespace: string): NodeJS.ProcessEnv {
  return { ...withoutProfile(env), TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace };
}

/** An environment in which only the local stack's own server is found: a profile of the user's may name another one. */
export function withoutProfile(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own = Object.entries(env).filter(([name]) => !name.startsWith('TEMPORAL_'));
  return { ...Object.fromEntries(own), TEMPORAL_TLS: 'false' };
}
