/** Lines that `temper ui` prints. Links are for a terminal alone: each of them opens the pages once. */
import { UI_KEY_VARIABLE } from '../../core/door-keys.ts';
import { bearerWords, originOf, type KeyedPlace } from '../command-line/keyed-place.ts';

const BEARER = bearerWords(UI_KEY_VARIABLE);

type UiPlace = Pick<KeyedPlace, 'host' | 'port' | 'isNewKey'>;

interface Shown {
  readonly store: string;
  readonly isReadOnly: boolean;
  /** Path of a link; null without a terminal. */
  readonly link: string | null;
}

export function uiLines(place: UiPlace, { store, isReadOnly, link }: Shown): string[] {
  const url = originOf(place);
  return [
    ...(link === null ? [`temper ui listens at ${url}; Ctrl-C stops it`] : [`open ${url}${link}`, '']),
    `store   ${store}${isReadOnly ? ', read-only' : ''}`,
    ...(link === null ? [] : ['link    works once; after that the next one is shown here. Ctrl-C stops the server']),
    ...(place.isNewKey
      ? [`key     scripts need one: set ${UI_KEY_VARIABLE}`]
      : [`key     in ${UI_KEY_VARIABLE}`, '', `curl ${url}/api/runs ${BEARER}`]),
    ...(link === null
      ? ['', 'for a browser, this makes a link that works once:', `curl ${url}/api/links ${BEARER} --json '{}'`]
      : []),
  ];
}

export function nextLinkLine(place: UiPlace, link: string): string {
  return `opened; for another browser: ${originOf(place)}${link}`;
}

export function uiJson(place: UiPlace, store: string): object {
  return { url: originOf(place), keyVariable: UI_KEY_VARIABLE, store };
}
