import type { UpstreamPlay } from './upstream-process.ts'

/** One situation in which all subjects are measured. */
export interface Scenario {
  name: string
  about: string
  play: UpstreamPlay
  connections: number
  /** Left out of a quick run. */
  isLong?: boolean
  bounds: Bound[]
}

/** What a ratio or figure of the gateway may be at most, or at least. */
export interface Bound {
  what: string
  figure: Figure
  /** The gateway's figure is divided by this one's, or (`minus`) this one's is taken from it; undefined: as it is. */
  against?: 'direct' | 'naive'
  minus?: boolean
  max?: number
  min?: number
}

export type Figure = 'cpu' | 'callsPerSecond' | 'p50Ms' | 'p99Ms' | 'wirePerCall'

/**
 * Bounds are wide: on a shared machine they tell a broken path from a slow one, no more. Bodies of 1 KB unless said
 * otherwise; the upstream answers at once unless said otherwise.
 */
export const SCENARIOS: Scenario[] = [
  {
    name: 'busy',
    about: '64 connections, 1 KB',
    play: { bodyBytes: 1_024, delayMs: 0 },
    connections: 64,
    bounds: [
      { what: 'CPU of the queue against none', figure: 'cpu', against: 'direct', max: 11 },
      { what: 'calls a second against no queue', figure: 'callsPerSecond', against: 'direct', min: 0.08 },
      { what: 'CPU against the usual queue', figure: 'cpu', against: 'naive', max: 1.9 },
      { what: 'calls a second against the usual queue', figure: 'callsPerSecond', against: 'naive', min: 0.4 },
      { what: 'commands to Redis a call', figure: 'wirePerCall', max: 11 },
    ],
  },
  {
    name: 'alone',
    about: '1 connection, 1 KB',
    play: { bodyBytes: 1_024, delayMs: 0 },
    connections: 1,
    bounds: [
      { what: 'median added by the queue, ms', figure: 'p50Ms', against: 'direct', minus: true, max: 3 },
      { what: 'commands to Redis a call', figure: 'wirePerCall', max: 20 },
    ],
  },
  {
    name: 'slow',
    about: '64 connections, 1 KB after 50 ms',
    play: { bodyBytes: 1_024, delayMs: 50 },
    connections: 64,
    isLong: true,
    bounds: [{ what: 'median against no queue', figure: 'p50Ms', against: 'direct', max: 1.3 }],
  },
  {
    name: 'large',
    about: '64 connections, 50 KB',
    play: { bodyBytes: 50 * 1_024, delayMs: 0 },
    connections: 64,
    isLong: true,
    bounds: [{ what: 'CPU against the usual queue', figure: 'cpu', against: 'naive', max: 1 }],
  },
  {
    name: 'huge',
    about: '16 connections, 1 MB',
    play: { bodyBytes: 1_024 * 1_024, delayMs: 0 },
    connections: 16,
    isLong: true,
    bounds: [{ what: 'CPU against the usual queue', figure: 'cpu', against: 'naive', max: 0.7 }],
  },
]
