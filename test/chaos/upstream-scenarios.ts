import { setTimeout as delay } from 'node:timers/promises'
import { atLeast, atMost } from '../soak/scenario.ts'
import { lastAnswered, othersOf, percentile, recovery, shareAnswered, weatherOf } from './measures.ts'
import { type ChaosScenario, USUAL } from './scenario.ts'

/** Upstreams that hang, flap, refuse or cannot keep up. */
export const UPSTREAM_SCENARIOS: ChaosScenario[] = [
  {
    name: 'upstream-hang-impatient',
    about: 'an upstream that hangs for 12 seconds while callers leave within a second',
    // The first half-open attempt comes 30 seconds after the breaker opened.
    seconds: 48,
    perSecond: { weather: 10, 'air-quality': 1 },
    patienceMs: 900,
    faults: async ({ upstream }) => {
      upstream.behave({ flow: 'weather', kind: 'hang' })
      await delay(12_000)
      upstream.behave({ flow: 'weather', kind: 'ok' })
    },
    allow: { callersLeave: true, sentTwiceMax: 10 },
    claims: (records) => [
      // The upstream hangs for 120 calls. Five seconds pass until a probe notices.
      atMost(
        'callers that left without an answer',
        weatherOf(records).filter(({ outcome }) => outcome === 'left').length,
        90,
      ),
      atLeast('calls answered in the last second', lastAnswered(weatherOf(records)), 7),
    ],
  },
  {
    name: 'upstream-errors',
    about: 'an upstream that answers 500 for 8 seconds',
    // Long enough for the first half-open attempt, as above.
    seconds: 42,
    perSecond: USUAL,
    faults: async ({ upstream }) => {
      upstream.behave({ flow: 'weather', kind: 'error' })
      await delay(8_000)
      upstream.behave({ flow: 'weather', kind: 'ok' })
    },
    allow: { sentTwiceMax: 1_000 },
    claims: (records) => [recovery(weatherOf(records), 36)],
  },
  {
    name: 'upstream-blip',
    about: 'an upstream that resets its connections for half a second',
    seconds: 12,
    perSecond: USUAL,
    faults: async ({ upstream }) => {
      upstream.behave({ flow: 'weather', kind: 'reset' })
      await delay(500)
      upstream.behave({ flow: 'weather', kind: 'ok' })
    },
    allow: { sentTwiceMax: 1_000 },
    claims: (records) => [recovery(weatherOf(records), 2.5)],
  },
  {
    name: 'upstream-hang',
    about: 'an upstream that hangs for 12 seconds beside a healthy one',
    seconds: 26,
    perSecond: { weather: 10, 'air-quality': 1 },
    faults: async ({ upstream }) => {
      upstream.behave({ flow: 'weather', kind: 'hang' })
      await delay(12_000)
      upstream.behave({ flow: 'weather', kind: 'ok' })
    },
    allow: { sentTwiceMax: 1_000 },
    claims: (records) => [
      atMost(
        'answers of 503 for what the upstream did',
        weatherOf(records).filter(({ outcome }) => outcome.startsWith('503')).length,
        0,
      ),
      atMost('longest answer, seconds', Math.max(...weatherOf(records).map(({ tookMs }) => tookMs)) / 1_000, 22),
      atMost('p99 of the healthy upstream, ms', percentile(othersOf(records), 0.99), 12_000),
    ],
  },
  {
    name: 'upstream-half',
    about: 'an upstream that fails every other request for 8 seconds',
    seconds: 14,
    perSecond: USUAL,
    faults: async ({ upstream }) => {
      upstream.behave({ flow: 'weather', kind: 'half' })
      await delay(8_000)
      upstream.behave({ flow: 'weather', kind: 'ok' })
    },
    allow: { sentTwiceMax: 1_000 },
    claims: (records) => [atLeast('share answered', shareAnswered(weatherOf(records)), 0.5)],
  },
  {
    name: 'upstream-429',
    about: 'an upstream that answers 429 with Retry-After: 5 for 6 seconds',
    seconds: 18,
    perSecond: { weather: 10, 'air-quality': 1 },
    faults: async ({ upstream }) => {
      upstream.behave({ flow: 'weather', kind: 'limited-5s' })
      await delay(6_000)
      upstream.behave({ flow: 'weather', kind: 'ok' })
    },
    allow: { sentTwiceMax: 100 },
    claims: (records) => [recovery(weatherOf(records), 14)],
  },
  {
    name: 'overload',
    about: 'ten times as many calls as the upstream can serve',
    seconds: 12,
    perSecond: { weather: 200, 'air-quality': 1 },
    environment: { UPSTREAM_WEATHER_CAPS: 'concurrency=4,1000000/60' },
    faults: async ({ upstream }) => upstream.behave({ flow: 'weather', kind: 'ok', delayMs: 200 }),
    allow: {},
    claims: (records) => [
      atLeast('calls answered a second', records.filter(({ outcome }) => outcome === '200').length / 12, 16),
      atMost(
        'median refusal, ms',
        percentile(
          records.filter(({ outcome }) => outcome.startsWith('503')),
          0.5,
        ),
        250,
      ),
    ],
  },
  {
    name: 'leaving',
    about: 'callers that leave after one second while the upstream is slow',
    seconds: 14,
    // Five times the nine calls a second that the slow upstream can take, and less than a busy
    // machine can send.
    perSecond: { weather: 45 },
    patienceMs: 1_000,
    environment: { UPSTREAM_WEATHER_CAPS: 'concurrency=8,1000000/60' },
    faults: async ({ upstream }) => {
      upstream.behave({ flow: 'weather', kind: 'ok', delayMs: 900 })
      await delay(5_000)
      upstream.behave({ flow: 'weather', kind: 'ok' })
    },
    allow: { callersLeave: true },
    claims: (records) => [atLeast('calls answered in the last second', lastAnswered(records), 30)],
  },
]
