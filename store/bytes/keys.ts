/** Keys of the store: relative, `/` between names, none of which leads anywhere else. */
import { badConfig } from '../../core/contract/failures.ts';

/** Names of branches, runs and blobs; a leading dot is for temporary files alone. */
const NAME = /^[A-Za-z0-9_~@-][A-Za-z0-9._~@-]*$/;

export const isKey = (key: string): boolean => key.split('/').every((name) => NAME.test(name));

export function checkKey(key: string): string {
  if (isKey(key)) return key;
  const rule = 'must be names of letters, digits and ._~@- with / between them, none beginning with a dot';
  throw badConfig(`the store's key ${JSON.stringify(key)} ${rule}; take keys from store/layout.ts`);
}
