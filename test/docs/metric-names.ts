/** Names of metrics as the pages list them. */
import { readPage } from './markdown.ts';

const ROW = /^\| (`[a-z0-9_:`, ]+`) \|/gm;

/** Names in the tables of a page. */
export function namesOfPage(page: string): string[] {
  return [...readPage(page).matchAll(ROW)].flatMap(([, names = '']) =>
    [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name!),
  );
}
