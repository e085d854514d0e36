const BUNDLES = `--import=${new URL('use-package-bundles.ts', import.meta.url).href}`

/**
 * Flags of Node for the many short processes of a test run. Threads for garbage collection would
 * only compete, because every processor is busy. Room for the young objects of a start saves a
 * tenth of its time, and packages bundled into one file each save half of it. No package here is
 * reached through a link.
 */
export const SPARING_FLAGS = ['--single-threaded-gc', '--min-semi-space-size=16', '--preserve-symlinks', BUNDLES]

/**
 * The same for processes that a started process starts, if Node accepts the flag from its
 * environment.
 */
export const SPARING_ENVIRONMENT = { NODE_OPTIONS: `--preserve-symlinks ${BUNDLES}` }
