/** Names by which a machine reaches itself. */
export const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '::1'] as const;

/** Takes a host without its port; an IPv6 address may be in brackets. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/.test(host);
}
