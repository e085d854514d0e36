import type { CallTimes } from '../../src/queue/reply-head.ts'

/** Counts a wait for a permit until it ends, or its call does, which may be answered before the request that it shares. */
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
  // Without one of its own, the call's end is that of the wait.
  if (callSignal !== signal) callSignal?.addEventListener('abort', end)
  return end
}
