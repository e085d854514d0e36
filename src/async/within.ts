/**
 * Waits for work, but not longer than `timeMs`. The work itself continues.
 *
 * @throws what the work throws if it fails in time
 */
export async function within<T>(timeMs: number, work: Promise<T>): Promise<T | 'late'> {
  const { promise, resolve } = Promise.withResolvers<'late'>()
  const timer = setTimeout(() => resolve('late'), timeMs)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
