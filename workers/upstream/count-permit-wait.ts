import type { CallTimes } from '../../src/queue/reply-head.ts'

/** Counts a wait for a permit until it ends, or its call does, which is answered before its request ends. @returns ends it */
export function countPermitWait(times: CallTimes, callSignal: AbortSignal): () => void {
  const startedAt = performance.now()
  let isCounted = false
  const end = (): void => {
    callSignal.removeEventListener('abort', end)
    if (!isCounted) times.permitMs += performance.now() - startedAt
    isCounted = true
  }
  callSignal.addEventListener('abort', end)
  return end
}
