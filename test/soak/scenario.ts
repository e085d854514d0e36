/**
 * A long run that measures what the service claims from outside: as callers see it, and as the
 * upstream sees it.
 */
export interface SoakScenario {
  name: string
  about: string
  /** How long it takes, minutes. */
  minutes: number
  /** @returns its claims with what was measured */
  run: (print: (line: string) => void) => Promise<Claim[]>
}

/** A claim, and the figure that was measured. */
export interface Claim {
  what: string
  value: number
  /** Such as `<= 10`. */
  bound: string
  isHeld: boolean
}

export function atMost(what: string, value: number, max: number): Claim {
  return { what, value, bound: `<= ${max}`, isHeld: value <= max }
}

export function atLeast(what: string, value: number, min: number): Claim {
  return { what, value, bound: `>= ${min}`, isHeld: value >= min }
}

export function exactly(what: string, value: number, expected: number): Claim {
  return { what, value, bound: `= ${expected}`, isHeld: value === expected }
}

const WIDE = { perMinute: 10_000_000, perMonth: 100_000_000, inFlight: 1_000_000 }

/** Plan limits that no call reaches. */
export const UNLIMITED = JSON.stringify({ Free: WIDE, Pro: WIDE, Elite: WIDE })

export const FACT = '/v1/call/random-facts/random'

/** The upstream's answer to `FACT`. */
export const FACT_BODY = { id: 'a', text: 't', source: 's', source_url: 'u', language: 'en', permalink: 'p' }
