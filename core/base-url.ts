/** An address to which paths are added, as people write it: often with a slash at its end. */
export function withoutSlash(url: string): string {
  return url.replace(/(?<!\/)\/+$/, '');
}
