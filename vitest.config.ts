import { defineConfig } from 'vitest/config';
import { OWN_PROJECTS } from './test/run/projects.ts';

/**
 * Projects by what they need: nothing · a browser · a Temporal server · local stacks of their own, one after the other · one that all
 * share and disturb · one of the packed package in a user's project.
 */
const withGlobalSetup = ['crash', 'installation'];

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          // A project that `temper init` writes has tests of its own.
          include: [
            `test/!(${OWN_PROJECTS.join('|')})/**/*.test.ts`,
            'cli/init/templates/{plain,tools,ruler,imperative}/*.test.ts',
          ],
          // A process for each of 345 files was two fifths of their processor time.
          isolate: false,
          setupFiles: ['test/one-process.ts'],
          // Tests that start processes take a tenth of it on a quiet machine.
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          globalSetup: ['test/browser/global-setup.ts'],
          // In one process, which imports what the pages come from once.
          isolate: false,
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'workflows',
          include: ['test/workflows/**/*.test.ts'],
          globalSetup: ['test/workflows/global-setup.ts'],
          // Imports of Temporal's worker take as long as most files; none of them changes what others import.
          isolate: false,
          testTimeout: 900_000,
          hookTimeout: 900_000,
        },
      },
      ...['e2e', ...withGlobalSetup].map((name) => ({
        extends: true as const,
        test: {
          name,
          include: [`test/${name}/**/*.test.ts`],
          ...(withGlobalSetup.includes(name) ? { globalSetup: [`test/${name}/global-setup.ts`] } : {}),
          fileParallelism: false,
          testTimeout: 900_000,
          hookTimeout: 900_000,
        },
      })),
    ],
  },
});
