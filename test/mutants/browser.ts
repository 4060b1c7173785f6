/** Broken lines of the pages. */
import type { Mutant } from './mutant.ts';

const ACTING_TEST = 'test/browser/acting.test.ts';
const PARTS_TEST = 'test/browser/attempt/parts.test.ts';

export const BROWSER: readonly Mutant[] = [
  {
    name: 'a recorded request runs commands of its own in the terminal',
    file: 'browser/attempt/curl.ts',
    find: "return `'${text.replaceAll(\"'\", `'\\\\''`)}'`;",
    replace: "return `'${text}'`;",
    test: PARTS_TEST,
  },
  {
    name: 'control characters of a token are invisible',
    file: 'browser/attempt/token-text.ts',
    find: '.replace(/(?!\\n)[\\p{Cc}\\p{Cf}]/gu, codeOf)',
    replace: '',
    test: PARTS_TEST,
  },
  {
    name: 'a double click confirms what nobody has read',
    file: 'browser/parts/action-buttons.tsx',
    find: 'isOff={isOff || !isSeen}',
    replace: 'isOff={isOff}',
    test: ACTING_TEST,
  },
  {
    name: 'an action that is sent again after a lost answer is another one',
    file: 'browser/parts/action-dialog.tsx',
    find: 'requestId: requestId.current, isConfirmed',
    replace: 'requestId: crypto.randomUUID(), isConfirmed',
    test: ACTING_TEST,
  },
  {
    name: 'the run is acted on before anybody has confirmed',
    file: 'browser/parts/action-dialog.tsx',
    find: 'plan: await send(false), problem: null',
    replace: 'plan: await send(true), problem: null',
    test: ACTING_TEST,
  },
  {
    name: 'keys of the page act while somebody types',
    file: 'browser/parts/keys.ts',
    find: 'return isTyping(event.target) || ',
    replace: 'return ',
    test: 'test/browser/frame.test.ts',
  },
  {
    name: 'keys of the page act below a dialog',
    file: 'browser/parts/keys.ts',
    find: " || document.querySelector('dialog[open]') !== null",
    replace: '',
    test: ACTING_TEST,
  },
  {
    name: 'the filter of an export keeps rows below the least reward',
    file: 'browser/exported.ts',
    find: 'reward !== null && reward >= Number(value)',
    replace: 'reward !== null && reward <= Number(value)',
    test: 'test/browser/export.test.ts',
  },
  {
    name: 'a message of the other conversation stands beside one of another role',
    file: 'browser/attempt/align.ts',
    find: 'index >= at && role === block.role',
    replace: 'index >= at && role !== ""',
    test: PARTS_TEST,
  },
];
