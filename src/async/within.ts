/**
 * Waits for work, but not for longer than this. The work itself goes on.
 *
 * @throws what the work throws in time
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
