/** The package `temper-rl`: the SDK, and the backend with which a script trains on this machine. */
export * from './sdk/index.ts';
export { LocalBackend, type ForkOptions } from './workers/local-backend/local-backend.ts';
export type { LocalBackendOptions } from './workers/local-backend/options.ts';
