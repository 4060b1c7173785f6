/**
 * Settings that a GPU worker is started with, as JSON on their command line. Paths may stand here,
 * secrets may not, and nothing of it enters a workflow.
 */
import { z } from 'zod';
import {
  DEFAULT_SLOTS,
  DEFAULT_THREADS,
  DEVICE_PATTERN,
  DEVICE_RULE,
  DTYPES,
  ENGINES,
  GPU_QUEUE,
  LEAST_KV_CACHE_BYTES,
  LEAST_SLOTS,
  MOST_DEVICES,
  MOST_SLOTS,
  MOST_THREADS,
  MOST_VLLM_POLICIES,
  VLLM_POLICIES,
} from './wire-constants.ts';

const absolute = z.string().regex(/^([A-Za-z]:)?[\\/]/, 'must be an absolute path');

/** Settings of sampling and training: `engine` of `temporal.config.ts` under the flags of a command. */
export const EngineSettings = z
  .strictObject({
    threads: z.int().min(1).max(MOST_THREADS).default(DEFAULT_THREADS),
    /** `auto`: a CUDA GPU if there is one, else the CPU. */
    device: z.string().regex(DEVICE_PATTERN, `must be ${DEVICE_RULE}`).default('auto'),
    /** Type of the base model's weights; `auto`: bfloat16 on a GPU, float32 on the CPU. */
    dtype: z.enum(DTYPES).default('auto'),
    /** How many devices train; sampling takes one. On the CPU, processes. */
    devices: z.int().min(1).max(MOST_DEVICES).default(1),
    /** Each device holds a part of the base model, and never all of it. */
    shardBaseModel: z.boolean().default(false),
    /** The linear layers of the base model take 4 bits per weight (NF4). */
    loadIn4bit: z.boolean().default(false),
    /** Memory that keys and values of requests may take; null: 4 GiB, on a GPU a quarter of its memory. */
    kvCacheBytes: z.int().min(LEAST_KV_CACHE_BYTES).nullable().default(null),
    /** The most of that memory for prompts that are kept for reuse; 0 keeps none, null: a quarter. */
    prefixCacheBytes: z.int().min(0).nullable().default(null),
    /** Requests that the engine decodes at once. */
    slots: z.int().min(LEAST_SLOTS).max(MOST_SLOTS).default(DEFAULT_SLOTS),
    /** The engine that samples: the GPU worker's own, or vLLM. */
    kind: z.enum(ENGINES).default('embedded'),
    vllm: z
      .strictObject({
        /** Further arguments for a vLLM that the GPU worker starts, and numbers of GPUs for it alone. */
        args: z.array(z.string()).default([]),
        devices: z.array(z.int().min(0)).default([]),
        /** Policies that stay loaded. One more drops another, whose next request loads and proves it again. */
        policies: z.int().min(1).max(MOST_VLLM_POLICIES).default(VLLM_POLICIES),
        /** The root of a server that runs already; null: the GPU worker starts one. */
        url: z
          .url()
          .refine(isRoot, 'must be a root like http://gpu-host:8000: no /v1, user, query or fragment')
          .nullable()
          .default(null),
        /** A folder that its host shares with the GPU worker's, here and there (null: the same path). */
        adapters: z
          .strictObject({ folder: absolute.nullable().default(null), as: absolute.nullable().default(null) })
          .prefault({}),
      })
      .prefault({}),
  })
  .meta({ id: 'EngineSettings' });
export type EngineSettings = z.infer<typeof EngineSettings>;
export type EngineKind = EngineSettings['kind'];

/** A root: paths of vLLM's API follow it. */
function isRoot(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || /\/v1\/?$/.test(url.pathname)) return false;
  return [url.username, url.password, url.search, url.hash].every((part) => part === '');
}

/** Settings of `python -m temper_gpu`. The key that clients send is in its environment. */
export const GpuWorkerSettings = z
  .strictObject({
    /** `file:///absolute/folder` or `s3://bucket/prefix`. */
    store: z.string(),
    /** A JSON file: what names of base models mean on this host. */
    models: z.string().nullable().default(null),
    host: z.string().default('127.0.0.1'),
    port: z.int().min(0).max(65_535).default(8017),
    /** Names that clients may use, besides `host` and those of loopback. */
    allowHost: z.array(z.string()).default([]),
    /** `sample` needs no Temporal. `sample-any-base`: also on a base model in another type than a policy was trained on. */
    role: z.enum(['train', 'sample', 'sample-any-base']).default('train'),
    /** Null: as the environment says, or Temporal's own default. */
    temporalAddress: z.string().nullable().default(null),
    namespace: z.string().nullable().default(null),
    queue: z.string().default(GPU_QUEUE),
    engine: EngineSettings.prefault({}),
    /** A Python that has vLLM; null if none is started. */
    vllmPython: z.string().nullable().default(null),
  })
  .meta({ id: 'GpuWorkerSettings' });
export type GpuWorkerSettings = z.infer<typeof GpuWorkerSettings>;
