/**
 * Longest that a test file of several in one process may take, milliseconds. It bounds a file that
 * hangs, and a busy machine does not reach it.
 */
export const FILE_MS_MAX = 240_000

/** When the process ends by force, milliseconds after its latest file began. */
const PROCESS_MS_MAX = FILE_MS_MAX + 30_000

/**
 * Loaded before each test file. If a test takes too long, node:test cancels it, but not what a hook
 * has left open. Without a deadline the file's process would stay, and the whole run with it.
 */
const end = (): void => {
  const kept = process.getActiveResourcesInfo()
  console.error(`a test file has not ended after ${PROCESS_MS_MAX} ms; it is kept by ${kept}`)
  process.exit(1)
}
const deadline = setTimeout(end, PROCESS_MS_MAX).unref()

/** Called by a process that runs several test files when it begins the next file. */
export const restartDeadline = (): void => void deadline.refresh()
