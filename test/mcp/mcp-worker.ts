/** SECONDS: plays attempts that wait in a call of a shared and of an isolated server, until it is killed; see worker-death.test.ts. */
import { playWith, hostile } from './hostile.ts';

const use = async (call: (name: string, args?: object) => Promise<string>): Promise<void> => {
  await call('fork', { seconds: process.argv[2] });
  await call('hang');
};
await Promise.all([playWith(hostile(), use), playWith(hostile({ isolate: true }), use)]);
