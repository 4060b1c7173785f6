/** Signals by which a program ends itself: it would each time it is played again. */
const OWN_SIGNALS = new Set<string>([
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGILL',
  'SIGPIPE',
  'SIGSEGV',
  'SIGSYS',
  'SIGTRAP',
  'SIGXCPU',
  'SIGXFSZ',
]);

export function isOwnSignal(signal: string): boolean {
  return OWN_SIGNALS.has(signal);
}
