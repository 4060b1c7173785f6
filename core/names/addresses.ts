/** Addresses of servers, and names by which a machine reaches itself. */

/** An address to which paths are added, as people write it: often with a slash at its end. */
export function withoutSlash(url: string): string {
  return url.replace(/(?<!\/)\/+$/, '');
}

export const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '::1'] as const;

/** Takes a host without its port; an IPv6 address may be in brackets. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/.test(host);
}
