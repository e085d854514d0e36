import fc, { type Parameters } from 'fast-check'

/**
 * How many times the usual histories a property runs, such as ten times: `PROPERTY_RUNS_FACTOR=10
 * npm test -- test/caps/model.test.ts`.
 */
const FACTOR = Number(process.env.PROPERTY_RUNS_FACTOR ?? 1)

/**
 * Seed and path that fast-check printed for a history that failed; with them a property runs only
 * this history.
 */
const { PROPERTY_SEED, PROPERTY_PATH, PROPERTY_SHRINK } = process.env

/**
 * How many histories a property runs, and where it begins. A failure is shrunk and prints its seed.
 */
export function propertyRuns<T>(numRuns: number): Parameters<T> {
  return {
    numRuns: numRuns * FACTOR,
    ...(PROPERTY_SEED === undefined ? {} : { seed: Number(PROPERTY_SEED) }),
    ...(PROPERTY_PATH === undefined ? {} : { path: PROPERTY_PATH }),
    // With `PROPERTY_SHRINK=off` a failure is not shrunk, because that takes longer than to find
    // the failure.
    ...(PROPERTY_SHRINK === 'off' ? { endOnFailure: true } : {}),
  }
}

export { fc }
