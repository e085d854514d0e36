/**
 * Loaded before each test file. If a test takes too long, node:test cancels it, but not what a hook
 * has left open. Without a deadline the file's process would stay, and the whole run with it.
 */
const FILE_MS_MAX = 180_000

const end = (): void => {
  console.error(`a test file has not ended after ${FILE_MS_MAX} ms; it is kept by ${process.getActiveResourcesInfo()}`)
  process.exit(1)
}
setTimeout(end, FILE_MS_MAX).unref()
