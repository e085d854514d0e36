import type { CallTimes } from '../../src/queue/reply-head.ts'

/**
 * Adds a wait for a permit to `times`, up to the call's end: the request that it shares may wait
 * longer.
 */
export function countPermitWait(
  times: CallTimes,
  { signal, callSignal }: { signal: AbortSignal; callSignal?: AbortSignal },
): () => void {
  const startedAt = performance.now()
  let isCounted = false
  const end = (): void => {
    callSignal?.removeEventListener('abort', end)
    if (!isCounted) times.permitMs += performance.now() - startedAt
    isCounted = true
  }
  // If both signals are one, its abort ends the wait as well.
  if (callSignal !== signal) callSignal?.addEventListener('abort', end)
  return end
}
