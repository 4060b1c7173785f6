/** An environment in which only the local stack's own server is found: a profile of the user's may name another one. */
export function withoutProfile(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own = Object.entries(env).filter(([name]) => !name.startsWith('TEMPORAL_'));
  return { ...Object.fromEntries(own), TEMPORAL_TLS: 'false' };
}
