/** A network namespace: to this host as another machine, joined to it by a cable of two addresses. */
import { spawnSync } from 'node:child_process';

export interface Namespace {
  /** Address of the other machine, as this one reaches it. */
  readonly address: string;
  /** Address of this machine, as the other one reaches it. */
  readonly here: string;
  /** A command line that runs there. */
  run(command: readonly string[]): string[];
  remove(): void;
}

/** The reason why there can be none here, where it is not one. */
export function openNamespace(): Namespace | string {
  if (process.platform !== 'linux') return `no network namespaces on ${process.platform}`;
  const name = `temper-${process.pid}`;
  const [near, far] = [`tn${process.pid}`, `tf${process.pid}`];
  const subnet = `10.213.${process.pid % 250}`;
  const [here, address] = [`${subnet}.1`, `${subnet}.2`];
  const remove = () => void ip('netns', 'del', name);
  const failure = [
    ['netns', 'add', name],
    ['link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', name],
    ['addr', 'add', `${here}/30`, 'dev', near],
    ['link', 'set', near, 'up'],
    ['-n', name, 'addr', 'add', `${address}/30`, 'dev', far],
    ['-n', name, 'link', 'set', far, 'up'],
    ['-n', name, 'link', 'set', 'lo', 'up'],
  ].reduce<string | null>((failed, step) => failed ?? ip(...step), null);
  if (failure === null) return { address, here, run: (command) => ['ip', 'netns', 'exec', name, ...command], remove };
  remove();
  return `no network namespace can be made here (${failure})`;
}

/** The error of the command; null if there is none. */
function ip(...args: string[]): string | null {
  const { status, stderr, error } = spawnSync('ip', args, { encoding: 'utf8', timeout: 10_000 });
  return status === 0 ? null : `ip ${args.join(' ')}: ${error?.message ?? stderr.trim()}`;
}
