/** A terminal's screen, as `tmux capture-pane -e` gives it, as HTML: the few attributes that the live view uses. */
interface Style {
  readonly bold: boolean;
  readonly dim: boolean;
  readonly inverse: boolean;
  readonly color: number | null;
}

const PLAIN: Style = { bold: false, dim: false, inverse: false, color: null };
const PALETTE = ['#1b1f24', '#ff7b72', '#56d364', '#e3b341', '#79c0ff', '#d2a8ff', '#39c5cf', '#c9d1d9'];
const ESCAPE = new RegExp(`(${String.fromCodePoint(27)}\\[[\\d;]*m)`);
const PAPER = '#0d1117';
const INK = '#d5dbe2';

export function terminalPage(title: string, screen: string): string {
  return `<!doctype html><meta charset="utf-8"><style>
body { margin: 0; padding: 20px; background: #d8dde3; width: max-content; }
section { border-radius: 10px; overflow: hidden; background: ${PAPER}; box-shadow: 0 8px 24px #0004; }
header { padding: 9px 14px; background: #21262d; color: #9aa4af; font: 13px system-ui, sans-serif; text-align: center; }
header i { float: left; width: 12px; height: 12px; margin: 2px 7px 0 0; border-radius: 50%; background: #484f58; }
pre { margin: 0; padding: 16px 20px 20px; color: ${INK}; font: 15px/1.3 'DejaVu Sans Mono', monospace; }
b { font-weight: 700; }
svg { width: 1ch; height: 1.3em; vertical-align: top; fill: currentcolor; }
</style><section><header><i></i><i></i><i></i>${escape(title)}</header><pre>${toHtml(screen)}</pre></section>`;
}

function toHtml(screen: string): string {
  let style = PLAIN;
  return screen
    .trimEnd()
    .split(ESCAPE)
    .map((part) => {
      if (!part.startsWith('\u001B')) return part === '' ? '' : `<font style="${css(style)}">${cells(part)}</font>`;
      style = part.slice(2, -1).split(';').map(Number).reduce(apply, style);
      return '';
    })
    .join('');
}

/** Braille is drawn as dots on the terminal's own grid: fonts that have it differ in width. */
function cells(text: string): string {
  return escape(text).replaceAll(/[\u2800-\u28FF]/g, (glyph) => braille(glyph.charCodeAt(0) - 0x2800));
}

/** Bit of each dot, by column and row. */
const DOTS = [
  [0x01, 0x02, 0x04, 0x40],
  [0x08, 0x10, 0x20, 0x80],
] as const;

function braille(bits: number): string {
  const dots = DOTS.flatMap((column, x) =>
    column.map((bit, y) => ((bits & bit) === 0 ? '' : `<circle cx="${2.5 + 5 * x}" cy="${2.5 + 5 * y}" r="1.7"/>`)),
  );
  return `<svg viewBox="0 0 10 20">${dots.join('')}</svg>`;
}

function apply(style: Style, code: number): Style {
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 7) return { ...style, inverse: true };
  if (code === 22) return { ...style, bold: false, dim: false };
  if (code === 27) return { ...style, inverse: false };
  if (code >= 30 && code <= 37) return { ...style, color: code - 30 };
  if (code === 39) return { ...style, color: null };
  return code === 0 ? PLAIN : style;
}

function css({ bold, dim, inverse, color }: Style): string {
  const ink = color === null ? INK : (PALETTE[color] ?? INK);
  const colors = inverse ? `color:${PAPER};background:${ink}` : `color:${ink}`;
  return `${colors}${bold ? ';font-weight:700' : ''}${dim ? ';opacity:.55' : ''}`;
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
