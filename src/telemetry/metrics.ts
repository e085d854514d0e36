import { readFileSync } from 'node:fs'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { memoize } from '../async/memoize.ts'

/** The version of the gateway. */
export const { version: VERSION }: { version: string } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
)

/** Upper bounds of time histograms, seconds. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/**
 * Gauges of prom-client that end in `_total`, a suffix that Prometheus reserves for counters. They
 * are removed; each is the sum of the gauge without the suffix, which stays.
 */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

/**
 * Processor time, memory, garbage collection and event-loop lag of this process. They are made
 * once, because prom-client never stops its observer of garbage collections and a timer that runs
 * 100 times a second. Both would keep the registry of a closed gateway in memory.
 */
const processMetrics = memoize(
  () => '',
  () => {
    const registry = new Registry()
    collectDefaultMetrics({ register: registry })
    for (const name of MISNAMED) registry.removeSingleMetric(name)
    return registry
  },
)

/**
 * The metrics of one process. Labels contain names of the catalog and codes of the error table,
 * never text from callers.
 */
export type Metrics = ReturnType<typeof createMetrics>

/**
 * Creates the metrics of one process, including event-loop lag and memory. `process` is its kind;
 * `inFlight` and `busy` return its present load.
 */
export function createMetrics(process: string, { inFlight, busy }: { inFlight: () => number; busy: () => number }) {
  const registry = Registry.merge([processMetrics()])
  registry.setDefaultLabels({ process })
  const registers = [registry]
  const beforeRead: (() => void)[] = []
  const callMetrics = createCallMetrics(registry, () => {
    for (const prepare of beforeRead) prepare()
  })
  return {
    registry,
    /** Calls `prepare` before the metrics of calls are read. */
    beforeRead: (prepare: () => void) => void beforeRead.push(prepare),
    ...callMetrics,
    buildInfo: new Gauge({
      name: 'agw_build_info',
      help: 'Always 1; the version of the gateway and of Node',
      labelNames: ['version', 'node'] as const,
      registers,
      collect() {
        this.set({ version: VERSION, node: globalThis.process.versions.node }, 1)
      },
    }),
    inFlight: new Gauge({
      name: 'agw_in_flight',
      help: 'Calls waiting for their reply (web) or jobs under way (worker)',
      registers,
      collect() {
        this.set(inFlight())
      },
    }),
    eventLoopBusy: new Gauge({
      name: 'agw_event_loop_busy',
      help: 'Share of time the event loop was busy in the last two seconds, 0 to 1',
      registers,
      collect() {
        this.set(busy())
      },
    }),
  }
}

function createCallMetrics(registry: Registry, collect: () => void) {
  const registers = [registry]
  const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers, collect })
  const seconds = (name: string, help: string) =>
    new Histogram({ name, help, labelNames: ['slug'] as const, buckets: SECONDS, registers, collect })
  return {
    calls: counter(
      'agw_calls_total',
      'Calls that ended, by API, mode (live, test; - if the credential is not known), HTTP status and error code (OK for none); asynchronous ones at the worker',
      ...(['slug', 'mode', 'status', 'code'] as const),
    ),
    callSeconds: seconds(
      'agw_call_duration_seconds',
      'Time from the request to the answer, without calls with test keys and refused calls of a batch',
    ),
    queueSeconds: seconds('agw_queue_wait_seconds', 'Time from queueing until a worker has the call'),
    permitSeconds: seconds(
      'agw_permit_wait_seconds',
      "Wait for a permit of the upstream's cap, and until an operator resumes a paused API",
    ),
    upstreamSeconds: seconds(
      'agw_upstream_seconds',
      'Time of a call spent in attempts at the upstream, if a request was sent to it',
    ),
    cache: counter(
      'agw_cache_results_total',
      'Look-ups in the cache, by result: hit, stale (a stored answer past its lifetime) or miss',
      ...(['slug', 'result'] as const),
    ),
    attempts: counter(
      'agw_attempts_total',
      'Attempts at the upstream that count for its health, by result and source',
      ...(['slug', 'result', 'source'] as const),
    ),
    lacking: counter(
      'agw_lacking_answers_total',
      'Answers of the upstream that lack a member which its recorded answers have and which it does not often leave out',
      'slug',
    ),
    retries: counter('agw_retries_total', 'Attempts after the first attempt of a call', 'slug'),
    callLogDropped: counter(
      'agw_call_log_dropped_total',
      'Ended calls without a row in the log of calls: Postgres was slow or unreachable (postgres), the account had too many refused calls (account), the day had too many rows (size)',
      'reason',
    ),
  }
}

/** Gauges of the whole fleet. Only the operator console exports them, so that each exists once. */
export function createFleetMetrics(registry: Registry) {
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] })
  return {
    score: gauge('agw_health_score', 'Health score, 0 to 100', 'slug'),
    breaker: gauge('agw_breaker_open', '1 while the breaker of the API is open', 'slug'),
    waiting: gauge('agw_queue_waiting', 'Calls that wait', 'slug'),
    active: gauge('agw_queue_active', 'Calls that workers are running', 'slug'),
    oldest: gauge('agw_queue_oldest_seconds', 'How long the oldest call has waited', 'slug'),
    paused: gauge('agw_queue_paused', '1 while the API is paused and no operator has disabled it', 'slug'),
    capLeft: gauge('agw_cap_left', 'Requests left in the window of a cap now', 'slug', 'window'),
    capMax: gauge('agw_cap_max', 'Requests that a cap allows in its window', 'slug', 'window'),
    capNext: gauge('agw_cap_next_slot_seconds', 'Time until the next request may be sent; 0: now', 'slug'),
    problems: gauge(
      'agw_problems',
      'Problems that the console lists, by rank (0: callers get errors now) and label',
      'rank',
      'label',
    ),
    processes: gauge('agw_processes', 'Processes that are alive', 'kind'),
    redisUp: gauge('agw_redis_up', '1 while Redis answers'),
    postgresUp: gauge('agw_postgres_up', '1 while Postgres answers'),
    redisBytesMax: gauge('agw_redis_memory_max_bytes', 'Memory that Redis may use; 0: Redis has no limit'),
    redisBytes: gauge('agw_redis_memory_bytes', 'Memory used by Redis'),
    redisSeconds: gauge('agw_redis_latency_seconds', 'Round trip to Redis'),
    postgresSeconds: gauge('agw_postgres_latency_seconds', 'Round trip to Postgres'),
  }
}
