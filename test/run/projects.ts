/** Vitest projects that are named after their folder in test/; all other files belong to `unit`. */
export const OWN_PROJECTS = ['browser', 'workflows', 'crash', 'e2e', 'installation'] as const;

/** The Vitest project that plays a test file. */
export function projectOf(test: string): string {
  return OWN_PROJECTS.find((name) => test.startsWith(`test/${name}/`)) ?? 'unit';
}
