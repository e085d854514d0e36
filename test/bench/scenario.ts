import type { UpstreamPlay } from './upstream-process.ts'

/** The kind of answer, or of refusal, that a scenario's calls get. */
export type Target = 'call' | 'hit' | 'miss' | 'test-key' | 'spread' | 'spread-hit' | 'unknown-key' | 'tier' | 'limited'

/** A situation in which all subjects are measured. */
export interface Scenario {
  name: string
  about: string
  play: UpstreamPlay
  connections: number
  /** Default: call. Any other kind is also compared with the gateway's own plain call. */
  target?: Target
  /** Sizes of the gateway that are measured instead of the peers. */
  sizes?: { name: string; webNodes: number; workers: number }[]
  /** True if a quick run leaves it out. */
  isLong?: boolean
  bounds: Bound[]
}

/** The most, or the least, that a ratio or figure of the gateway may be. */
export interface Bound {
  what: string
  figure: Figure
  /** The subject of the figure. Default: gateway. */
  of?: string
  /**
   * The figure is divided by the figure of this subject; with `minus` the figure of this subject is
   * subtracted. Undefined: the figure itself counts.
   */
  against?: string
  minus?: boolean
  max?: number
  min?: number
}

export type Figure = 'cpu' | 'callsPerSecond' | 'p50Ms' | 'p99Ms' | 'wirePerCall' | 'commandsPerCall'

/**
 * Bounds are the goals plus a tenth, because the machine may differ that much between two quiet
 * runs.
 */
const TENTH = 1.1

const atMost = (goal: number) => ({ max: Math.round(goal * TENTH * 1_000) / 1_000 })
const atLeast = (goal: number) => ({ min: Math.round((goal / TENTH) * 1_000) / 1_000 })

const KB = { bodyBytes: 1_024, delayMs: 0 }

/**
 * All scenarios. If a scenario says nothing else, bodies have 1 KB and the upstream answers at
 * once.
 */
export const SCENARIOS: Scenario[] = [
  {
    name: 'busy',
    about: '64 connections, 1 KB',
    play: KB,
    connections: 64,
    bounds: [
      { what: 'CPU against no queue', figure: 'cpu', against: 'direct', ...atMost(2.5) },
      { what: 'CPU against the usual queue', figure: 'cpu', against: 'naive', ...atMost(0.45) },
      { what: 'calls a second against no queue', figure: 'callsPerSecond', against: 'direct', ...atLeast(0.4) },
      { what: 'calls a second against the usual queue', figure: 'callsPerSecond', against: 'naive', ...atLeast(2) },
      { what: 'commands over the wire a call', figure: 'wirePerCall', ...atMost(3) },
      { what: 'all commands a call', figure: 'commandsPerCall', ...atMost(12) },
    ],
  },
  {
    name: 'crowd',
    about: '512 connections, 1 KB',
    play: KB,
    connections: 512,
    isLong: true,
    bounds: [{ what: 'CPU against no queue', figure: 'cpu', against: 'direct', ...atMost(2.5) }],
  },
  {
    name: 'alone',
    about: '1 connection, 1 KB',
    play: KB,
    connections: 1,
    bounds: [
      { what: 'median added by the queue, ms', figure: 'p50Ms', against: 'direct', minus: true, ...atMost(0.8) },
    ],
  },
  {
    name: 'hits',
    about: '64 connections, fresh stored answers',
    play: KB,
    connections: 64,
    target: 'hit',
    bounds: [{ what: 'CPU against a call to the upstream', figure: 'cpu', against: 'call', ...atMost(0.6) }],
  },
  {
    name: 'miss',
    about: '64 connections, cacheable, never stored before',
    play: KB,
    connections: 64,
    target: 'miss',
    isLong: true,
    bounds: [{ what: 'CPU against a call that is not cacheable', figure: 'cpu', against: 'call', ...atMost(1.5) }],
  },
  {
    name: 'test-key',
    about: '64 connections, a test key',
    play: KB,
    connections: 64,
    target: 'test-key',
    isLong: true,
    bounds: [{ what: 'CPU against a call to the upstream', figure: 'cpu', against: 'call', ...atMost(0.8) }],
  },
  {
    name: 'spread',
    about: '64 connections over all upstreams at once',
    play: KB,
    connections: 64,
    target: 'spread',
    isLong: true,
    bounds: [{ what: 'CPU against one upstream', figure: 'cpu', against: 'call', ...atMost(1.3) }],
  },
  {
    name: 'spread-hits',
    about: '64 connections over all upstreams with stored answers',
    play: KB,
    connections: 64,
    target: 'spread-hit',
    isLong: true,
    bounds: [{ what: 'CPU against a call to the upstream', figure: 'cpu', against: 'call', ...atMost(0.6) }],
  },
  {
    name: 'refused-401',
    about: '64 connections, an unknown key',
    play: KB,
    connections: 64,
    target: 'unknown-key',
    isLong: true,
    bounds: [{ what: 'CPU against a refusal without a queue', figure: 'cpu', against: 'direct', ...atMost(1.2) }],
  },
  {
    name: 'refused-402',
    about: '64 connections, an API above the plan',
    play: KB,
    connections: 64,
    target: 'tier',
    isLong: true,
    bounds: [{ what: 'CPU against a refusal without a queue', figure: 'cpu', against: 'direct', ...atMost(1.2) }],
  },
  {
    name: 'refused-429',
    about: '64 connections over the rate limit',
    play: KB,
    connections: 64,
    target: 'limited',
    isLong: true,
    bounds: [{ what: 'CPU against a refusal without a queue', figure: 'cpu', against: 'direct', ...atMost(1.2) }],
  },
  {
    name: 'slow',
    about: '64 connections, 1 KB after 50 ms',
    play: { bodyBytes: 1_024, delayMs: 50 },
    connections: 64,
    isLong: true,
    bounds: [{ what: 'median against no queue', figure: 'p50Ms', against: 'direct', ...atMost(1.1) }],
  },
  {
    name: 'large',
    about: '64 connections, 50 KB',
    play: { bodyBytes: 50 * 1_024, delayMs: 0 },
    connections: 64,
    isLong: true,
    bounds: [{ what: 'CPU against the usual queue', figure: 'cpu', against: 'naive', ...atMost(0.5) }],
  },
  {
    name: 'huge',
    about: '16 connections, 1 MB',
    play: { bodyBytes: 1_024 * 1_024, delayMs: 0 },
    connections: 16,
    isLong: true,
    bounds: [{ what: 'CPU against the usual queue', figure: 'cpu', against: 'naive', ...atMost(0.5) }],
  },
  {
    name: 'nodes',
    about: '64 connections, 1, 2 and 4 API nodes',
    play: KB,
    connections: 64,
    isLong: true,
    sizes: [1, 2, 4].map((count) => ({ name: `${count} nodes`, webNodes: count, workers: 1 })),
    bounds: [{ what: 'CPU of 4 nodes against 1', figure: 'cpu', of: '4 nodes', against: '1 nodes', ...atMost(1.25) }],
  },
  {
    name: 'workers',
    about: '64 connections, 1, 2 and 4 workers',
    play: KB,
    connections: 64,
    isLong: true,
    sizes: [1, 2, 4].map((count) => ({ name: `${count} workers`, webNodes: 1, workers: count })),
    bounds: [
      { what: 'CPU of 4 workers against 1', figure: 'cpu', of: '4 workers', against: '1 workers', ...atMost(1.25) },
    ],
  },
]
