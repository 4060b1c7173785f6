/** What Temporal's sandbox has beside ECMAScript and core uses; the workflows' tsconfig knows no DOM and no Node. */
declare class TextEncoder {
  encode(text: string): Uint8Array;
}
