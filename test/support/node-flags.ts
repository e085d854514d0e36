const BUNDLES = `--import=${new URL('use-package-bundles.ts', import.meta.url).href}`

/**
 * Flags of Node for the many short processes of a test run: threads that help each collection would
 * only get in each other's way where every processor has work, room for what a start leaves behind
 * spares it a tenth of its time, packages in one file each half of it, and no package here is
 * reached by a link.
 */
export const SPARING_FLAGS = ['--single-threaded-gc', '--min-semi-space-size=16', '--preserve-symlinks', BUNDLES]

/**
 * The same for processes that a started process starts, if Node accepts the flag from its
 * environment.
 */
export const SPARING_ENVIRONMENT = { NODE_OPTIONS: `--preserve-symlinks ${BUNDLES}` }
