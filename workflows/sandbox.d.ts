/** Globals of Temporal's sandbox beside ECMAScript that core uses; the workflows' tsconfig knows no DOM and no Node. */
declare class TextEncoder {
  encode(text: string): Uint8Array;
}
