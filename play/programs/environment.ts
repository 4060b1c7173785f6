/** Environments of the processes that Temper starts: never with a key that is not theirs. */
import { LOOPBACK_NAMES } from '../../core/names/addresses.ts';

/** How a program finds its files, its language, the network and the system's libraries. */
const SYSTEM =
  /^(PATH|HOME|USER|LOGNAME|SHELL|PWD|TERM|LANG|LANGUAGE|LC_.*|TZ|TMPDIR|TEMP|TMP|XDG_.*|LD_.*|DYLD_.*|SSL_CERT_.*|(https?|all|no)_proxy)$/i;
/** How the languages of programs find what is installed. */
const LANGUAGES =
  /^(VIRTUAL_ENV|CONDA_PREFIX|CONDA_DEFAULT_ENV|PYTHON(PATH|HOME|UTF8|IOENCODING|UNBUFFERED)|JAVA_HOME|GOPATH|GEM_(HOME|PATH)|(REQUESTS|CURL)_CA_BUNDLE|NODE_EXTRA_CA_CERTS)$/;

/** The variables of the system's own, and those that are `allowed` besides. */
export function systemEnvironment(env: NodeJS.ProcessEnv, ...allowed: readonly RegExp[]): NodeJS.ProcessEnv {
  const names = [SYSTEM, ...allowed];
  return Object.fromEntries(Object.entries(env).filter(([name]) => names.some((pattern) => pattern.test(name))));
}

/**
 * Environment of a program, besides its attempt's variables: no key of an engine, a store or a hosted model, and no
 * password of a proxy.
 */
export function programEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own = Object.entries(systemEnvironment(env, LANGUAGES)).map(([name, value]) => [
    name,
    /_proxy$/i.test(name) ? value?.replace(/^([\w+.-]+:\/\/)?.*@/, '$1') : value,
  ]);
  return withoutLoopbackProxy(Object.fromEntries(own) as NodeJS.ProcessEnv);
}

/** A proxy is for other hosts: programs send even requests to this machine there unless they are told not to. */
export function withoutLoopbackProxy(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (!Object.keys(env).some((name) => /^(https?|all|grpc)_proxy$/i.test(name))) return env;
  const direct = (env['no_proxy'] ?? env['NO_PROXY'] ?? '').split(',').map((host) => host.trim());
  const hosts = [...new Set([...direct, ...LOOPBACK_NAMES])].filter(Boolean).join(',');
  return { ...env, no_proxy: hosts, NO_PROXY: hosts };
}
