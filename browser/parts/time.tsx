/** Times as people read them; the exact one is in the title. */
import { useEffect, useState } from 'preact/hooks';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TICK_MS = 15_000;

export function Ago({ at, since = false }: { at: string | null; since?: boolean }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  if (at === null) return <span class="dim">–</span>;
  const text = describeAge((now - Date.parse(at)) / 1000);
  return (
    <time dateTime={at} title={at}>
      {since ? text : text === 'now' ? 'just now' : `${text} ago`}
    </time>
  );
}

function describeAge(seconds: number): string {
  if (seconds < 20) return 'now';
  if (seconds < MINUTE) return `${Math.round(seconds)} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)} h`;
  return `${Math.floor(seconds / DAY)} d`;
}
