/** Broken lines of the pages. */
import { breaking, type Mutant } from './mutant.ts';

export const BROWSER: readonly Mutant[] = [
  ...breaking('browser/bundle.ts', 'test/browser/frame.test.ts', [
    ['a browser without a language shows no page', '    banner: { js: VALID_LANGUAGE },\n', ''],
  ]),
  ...breaking('browser/attempt/curl.ts', 'test/browser/attempt/parts.test.ts', [
    [
      'a recorded request runs commands of its own in the terminal',
      "return `'${text.replaceAll(\"'\", `'\\\\''`)}'`;",
      "return `'${text}'`;",
    ],
  ]),
  ...breaking('browser/attempt/token-text.ts', 'test/browser/attempt/parts.test.ts', [
    ['control characters of a token are invisible', '.replace(/(?!\\n)[\\p{Cc}\\p{Cf}]/gu, codeOf)', ''],
  ]),
  ...breaking('browser/parts/action-buttons.tsx', 'test/browser/acting.test.ts', [
    ['a double click confirms what nobody has read', 'isOff={isOff || !isSeen}', 'isOff={isOff}'],
  ]),
  ...breaking('browser/parts/action-dialog.tsx', 'test/browser/acting.test.ts', [
    [
      'an action that is sent again after a lost answer is another one',
      'requestId: requestId.current, isConfirmed',
      'requestId: crypto.randomUUID(), isConfirmed',
    ],
    [
      'the run is acted on before anybody has confirmed',
      'plan: await send(false), problem: null',
      'plan: await send(true), problem: null',
    ],
  ]),
  ...breaking('browser/parts/keys.ts', 'test/browser/frame.test.ts', [
    ['keys of the page act while somebody types', 'return isTyping(event.target) || ', 'return '],
  ]),
  ...breaking('browser/parts/keys.ts', 'test/browser/acting.test.ts', [
    ['keys of the page act below a dialog', " || document.querySelector('dialog[open]') !== null", ''],
  ]),
  ...breaking('views/api/attempt-query.ts', 'test/browser/export.test.ts', [
    [
      'the filter of an export keeps rows below the least reward',
      'reward !== null && reward >= minReward',
      'reward !== null && reward <= minReward',
    ],
  ]),
  ...breaking('browser/attempt/align.ts', 'test/browser/attempt/parts.test.ts', [
    [
      'a message of the other conversation stands beside one of another role',
      'index >= at && role === block.role',
      'index >= at && role !== ""',
    ],
  ]),
];
