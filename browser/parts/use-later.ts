/** Something that is so only after a while. */
import { useEffect, useState } from 'preact/hooks';

/** False at first, true once the part was on the page for that long. */
export function useLater(afterMs: number): boolean {
  const [isLater, setLater] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLater(true), afterMs);
    return () => clearTimeout(timer);
  }, []);
  return isLater;
}
