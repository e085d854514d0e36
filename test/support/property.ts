import fc, { type Parameters } from 'fast-check'

/**
 * Ten times the histories of `npm test`, print:
 * `PROPERTY_RUNS_FACTOR=10 npm test -- test/caps/model.test.ts`.
 */
const FACTOR = Number(process.env.PROPERTY_RUNS_FACTOR ?? 1)

/** Repeats one history that failed, from the seed and path that fast-check printed. */
const { PROPERTY_SEED, PROPERTY_PATH, PROPERTY_SHRINK } = process.env

/**
 * How many runs of a property `npm test` makes, and where to begin. Failures print their seed and
 * are shrunk.
 */
export function propertyRuns<T>(numRuns: number): Parameters<T> {
  return {
    numRuns: numRuns * FACTOR,
    ...(PROPERTY_SEED === undefined ? {} : { seed: Number(PROPERTY_SEED) }),
    ...(PROPERTY_PATH === undefined ? {} : { path: PROPERTY_PATH }),
    // The search for the smallest history that fails takes longer than finding a history that
    // fails.
    ...(PROPERTY_SHRINK === 'off' ? { endOnFailure: true } : {}),
  }
}

export { fc }
