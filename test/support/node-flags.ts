const BUNDLES = `--import=${new URL('use-package-bundles.ts', import.meta.url).href}`

/**
 * Flags of Node for the many short processes of a test run. Threads for garbage collection would
 * only compete, because every processor is busy. A larger heap saves a tenth of a start's time, and
 * packages bundled into one file save half. No package here is reached through a link.
 */
export const SPARING_FLAGS = ['--single-threaded-gc', '--min-semi-space-size=16', '--preserve-symlinks', BUNDLES]

/**
 * The same for processes that a started process starts, if Node accepts the flag from its
 * environment.
 */
export const SPARING_ENVIRONMENT = { NODE_OPTIONS: `--preserve-symlinks ${BUNDLES}` }
