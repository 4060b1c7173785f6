/** Script and style of the page, compressed once, and kept by browsers until they change. */
import { createHash } from 'node:crypto';
import type { PageFiles } from '../../pages/page-files.ts';
import { compress, type Body } from './compress.ts';

export interface Asset {
  readonly type: string;
  readonly etag: string;
  body(wanted: Body['encoding']): Promise<Body>;
}

/** Files of the page by path. */
export function pageAssets({ js, css }: PageFiles): ReadonlyMap<string, Asset> {
  return new Map([
    ['/page.js', asset('text/javascript; charset=utf-8', js)],
    ['/page.css', asset('text/css; charset=utf-8', css)],
  ]);
}

function asset(type: string, text: string): Asset {
  const bytes = Buffer.from(text);
  const kept = new Map<Body['encoding'], Promise<Body>>();
  return {
    type,
    etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
    body(wanted) {
      const body = kept.get(wanted) ?? compress(bytes, wanted);
      kept.set(wanted, body);
      return body;
    },
  };
}
