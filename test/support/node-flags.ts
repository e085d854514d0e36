const BUNDLES = `--import=${new URL('use-package-bundles.ts', import.meta.url).href}`

/**
 * Flags of Node for the many short processes of a test run. Threads for garbage collection would
 * only compete, because every processor is busy. Room for the young objects of a start saves a
 * tenth of its time, and packages that are bundled into a file each save half of it.
 * `--preserve-symlinks` saves look-ups on the disk, because no package here is a symbolic link.
 */
export const SPARING_FLAGS = ['--single-threaded-gc', '--min-semi-space-size=16', '--preserve-symlinks', BUNDLES]

/**
 * The flags that Node accepts from its environment too, for processes that a started process
 * starts.
 */
export const SPARING_ENVIRONMENT = { NODE_OPTIONS: `--preserve-symlinks ${BUNDLES}` }
