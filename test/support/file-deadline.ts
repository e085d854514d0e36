/**
 * Longest duration of a test file, milliseconds. At this time a hanging file is ended. On a busy
 * machine no file takes so long.
 */
export const FILE_MS_MAX = 240_000

/** When the process is ended by force, milliseconds after the start of its latest file. */
const PROCESS_MS_MAX = FILE_MS_MAX + 30_000

/**
 * When the process is ended by force after the end of its last file, milliseconds. Until then
 * connections may still be closing.
 */
const CLOSING_MS_MAX = 10_000

let deadline: NodeJS.Timeout | undefined

/**
 * If a test takes too long, node:test cancels it, but not what a hook has left open. Without a
 * deadline the process would stay, and the whole run with it.
 */
function endAfter(ms: number): void {
  clearTimeout(deadline)
  deadline = setTimeout(() => {
    const kept = process.getActiveResourcesInfo()
    console.error(`a process of test files has not ended after ${ms} ms; it is kept by ${kept}`)
    process.exit(1)
  }, ms).unref()
}

/** Called when a file begins. */
export const onFileStart = (): void => endAfter(PROCESS_MS_MAX)

/** Called when a file has ended. A spare process may wait for its next file without a limit. */
export const onFileEnd = (): void => clearTimeout(deadline)

/** Called when all files of the process have ended. */
export const onFilesEnd = (): void => endAfter(CLOSING_MS_MAX)
