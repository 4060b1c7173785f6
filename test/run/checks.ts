/** The checks: what can be known without running the product. */
import type { Step } from './command.ts';

/** Without a Python, those of TypeScript alone. */
export function checks(python: string | null): Step[] {
  return [...CHECKS_OF_TYPESCRIPT, ...(python === null ? [] : checksOfPython(python))];
}

const CHECKS_OF_TYPESCRIPT: readonly Step[] = [
  { title: 'lint', command: ['oxlint'] },
  { title: 'format', command: ['oxfmt', '--check'] },
  { title: 'types', command: ['tsc', '-p', 'tsconfig.json'] },
  { title: 'types of workflows', command: ['tsc', '-p', 'workflows/tsconfig.json'] },
  { title: 'types of pages', command: ['tsc', '-p', 'browser/tsconfig.json'] },
  { title: 'unused code and dependencies', command: ['knip'] },
];

function checksOfPython(python: string): Step[] {
  const gpuWorker = { cwd: 'gpu-worker' };
  return [
    { title: 'lint of Python', command: [python, '-m', 'ruff', 'check', '.', '../bench', '../test'], ...gpuWorker },
    {
      title: 'format of Python',
      command: [python, '-m', 'ruff', 'format', '--check', '.', '../bench', '../test'],
      ...gpuWorker,
    },
    {
      title: 'types of Python',
      command: [python, '-m', 'pyrefly', 'check', '--min-severity', 'error', '--python-interpreter-path', python],
      ...gpuWorker,
    },
  ];
}
