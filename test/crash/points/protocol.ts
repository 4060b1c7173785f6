/** Messages of runner and processes to each other, through files of one folder. */

export type ProcessName =
  | 'temporal-server'
  | 'typescript-worker'
  | 'gpu-worker'
  | 'vllm'
  | 'rank'
  | 'cli'
  | 's3-server'
  | 'daemon';
export type Action = 'kill' | 'stop' | 'hold';

/** `aim-<process>.json`, taken away by the process that is hit. */
export interface Aim {
  readonly row: string;
  readonly point: string;
  /** The how-many-eth pass since the aim was taken, from 1. */
  readonly occurrence: number;
  readonly action: Action;
}

/** A line of `hits.jsonl`, on disk before the process is hit. */
export interface Hit extends Aim {
  readonly time: number;
  readonly process: string;
  readonly pid: number;
}

/** A line of `trace.jsonl`: each pass of each point. */
export interface Pass {
  readonly time: number;
  readonly process: string;
  readonly pid: number;
  readonly point: string;
}
