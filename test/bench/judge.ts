import type { Measurement } from './measure.ts'
import type { Bound, Figure, Scenario } from './scenario.ts'
import type { SubjectName } from './subject.ts'

/** All measurements of one scenario, by subject and round. */
export type Rounds = Record<SubjectName, Measurement[]>

/** What a bound came to. */
export interface Judgement {
  what: string
  value: number
  /** Such as `<= 2.7`. */
  bound: string
  verdict: 'held' | 'exceeded' | 'not judged'
}

/** Largest spread of the base's CPU over the rounds, (max - min) / median: past it the machine was too busy to tell. */
const SPREAD_MAX = 0.25

/** Calls that a measurement needs to say something. */
const CALLS_LEAST = 20

/** Whether the machine was quiet enough. */
export function spreadOf(rounds: Rounds): number {
  const sums = rounds.direct.map(({ cpu }) => cpu.sum)
  return (Math.max(...sums) - Math.min(...sums)) / median(sums)
}

/** Judges a scenario by the medians of ratios within a round, so that a slow minute weighs on both sides. */
export function judge({ bounds }: Scenario, rounds: Rounds): Judgement[] {
  const isQuiet = spreadOf(rounds) <= SPREAD_MAX
  const isEnough = Object.values(rounds).every((all) => all.every(({ calls }) => calls >= CALLS_LEAST))
  return bounds.map((bound) => {
    const value = median(rounds.gateway.map((gateway, round) => compare(bound, gateway, rounds, round)))
    const isHeld = value <= (bound.max ?? Number.POSITIVE_INFINITY) && value >= (bound.min ?? Number.NEGATIVE_INFINITY)
    // How many commands a call takes does not hang on how busy the machine is.
    const isJudged = isEnough && (isQuiet || bound.figure === 'wirePerCall')
    return {
      what: bound.what,
      value,
      bound: bound.max === undefined ? `>= ${bound.min}` : `<= ${bound.max}`,
      verdict: isJudged ? (isHeld ? 'held' : 'exceeded') : 'not judged',
    }
  })
}

function compare({ figure, against, minus }: Bound, gateway: Measurement, rounds: Rounds, round: number): number {
  const own = figureOf(gateway, figure)
  const base = against && rounds[against][round]
  if (!base) return own
  return minus ? own - figureOf(base, figure) : own / figureOf(base, figure)
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
