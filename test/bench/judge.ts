import type { Measurement } from './measure.ts'
import type { Bound, Figure, Scenario } from './scenario.ts'

/** All measurements of a scenario, by subject and round. */
export type Rounds = Record<string, Measurement[]>

/** Whether a bound was met. */
export interface Judgement {
  what: string
  value: number
  /** Such as `<= 2.7`. */
  bound: string
  verdict: 'held' | 'exceeded' | 'not judged'
}

/**
 * Largest spread of the base's CPU over the rounds, (max - min) / median. If the spread is larger,
 * the machine was too busy for a judgement.
 */
const SPREAD_MAX = 0.25

/** A measurement with fewer calls says nothing. */
const CALLS_LEAST = 20

/** How much the base's CPU differed over the rounds. The base is the first subject. */
export function spreadOf(rounds: Rounds): number {
  const sums = (Object.values(rounds)[0] ?? []).map(({ cpu }) => cpu.sum)
  return (Math.max(...sums) - Math.min(...sums)) / median(sums)
}

/**
 * Judges a scenario by the medians of ratios within a round. A slow minute of the machine then
 * slows both sides of a ratio.
 */
export function judge({ bounds }: Pick<Scenario, 'bounds'>, rounds: Rounds): Judgement[] {
  const isQuiet = spreadOf(rounds) <= SPREAD_MAX
  const isEnough = Object.values(rounds).every((all) => all.every(({ calls }) => calls >= CALLS_LEAST))
  return bounds.map((bound) => {
    const value = ratioOf(bound, rounds)
    const isHeld = value <= (bound.max ?? Number.POSITIVE_INFINITY) && value >= (bound.min ?? Number.NEGATIVE_INFINITY)
    // A count of commands does not depend on how busy the machine is.
    const isCount = bound.figure === 'wirePerCall' || bound.figure === 'commandsPerCall'
    return {
      what: bound.what,
      value,
      bound: bound.max === undefined ? `>= ${bound.min}` : `<= ${bound.max}`,
      verdict: isEnough && (isQuiet || isCount) ? (isHeld ? 'held' : 'exceeded') : 'not judged',
    }
  })
}

/**
 * The median of a figure over the rounds, or of its ratio to another subject's figure in the same
 * round.
 */
export function ratioOf({ figure, of = 'gateway', against, minus }: Omit<Bound, 'what'>, rounds: Rounds): number {
  return median(
    (rounds[of] ?? []).map((measurement, round) => {
      const own = figureOf(measurement, figure)
      const base = against === undefined ? undefined : rounds[against]?.[round]
      if (!base) return against === undefined ? own : Number.NaN
      return minus ? own - figureOf(base, figure) : own / figureOf(base, figure)
    }),
  )
}

/** The figures by which scenarios are compared from one commit to the next. */
export interface Ratios {
  cpuVsDirect: number
  cpuVsNaive: number
  rpsVsDirect: number
  rpsVsNaive: number
  p50OverDirectMs: number
  wirePerCall: number
  allCommandsPerCall: number
  spread: number
}

export function ratiosOf(rounds: Rounds): Ratios {
  return {
    cpuVsDirect: ratioOf({ figure: 'cpu', against: 'direct' }, rounds),
    cpuVsNaive: ratioOf({ figure: 'cpu', against: 'naive' }, rounds),
    rpsVsDirect: ratioOf({ figure: 'callsPerSecond', against: 'direct' }, rounds),
    rpsVsNaive: ratioOf({ figure: 'callsPerSecond', against: 'naive' }, rounds),
    p50OverDirectMs: ratioOf({ figure: 'p50Ms', against: 'direct', minus: true }, rounds),
    wirePerCall: ratioOf({ figure: 'wirePerCall' }, rounds),
    allCommandsPerCall: ratioOf({ figure: 'commandsPerCall' }, rounds),
    spread: spreadOf(rounds),
  }
}

export function figureOf(measurement: Measurement, figure: Figure): number {
  return figure === 'cpu' ? measurement.cpu.sum : measurement[figure]
}

export function median(values: number[]): number {
  const sorted = values.toSorted((left, right) => left - right)
  const middle = sorted.length / 2
  const upper = sorted[Math.floor(middle)] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
}
