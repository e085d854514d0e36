/**
 * Calls back once an attempt has taken `limitMs()`, which is read after `firstMs` and may grow.
 *
 * @returns how to stop
 */
export function onHanging(
  { firstMs, limitMs }: { firstMs: number; limitMs: () => number },
  callBack: () => void,
): () => void {
  let tookMs = 0
  const wait = (forMs: number): NodeJS.Timeout =>
    setTimeout(() => {
      tookMs += forMs
      const leftMs = limitMs() - tookMs
      if (leftMs > 0) timer = wait(leftMs)
      else callBack()
    }, forMs)
  let timer = wait(firstMs)
  return () => clearTimeout(timer)
}
