import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** Upper bounds of time histograms, seconds. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** What one process measures. Labels hold names of the catalog and codes of the error table, never what callers sent. */
export type Metrics = ReturnType<typeof createMetrics>

/** Metrics of one process, event-loop lag and memory included. `process` names its kind, `inFlight` and `busy` are its load now. */
export function createMetrics(process: string, { inFlight, busy }: { inFlight: () => number; busy: () => number }) {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    calls: new Counter({
      name: 'agw_calls_total',
      help: 'Calls answered, by API, HTTP status and error code (OK for none)',
      labelNames: ['slug', 'status', 'code'] as const,
      registers,
    }),
    callSeconds: new Histogram({
      name: 'agw_call_duration_seconds',
      help: 'From request to answer',
      labelNames: ['slug'] as const,
      buckets: SECONDS,
      registers,
    }),
    queueSeconds: new Histogram({
      name: 'agw_queue_wait_seconds',
      help: 'From the queue to a worker',
      labelNames: ['slug'] as const,
      buckets: SECONDS,
      registers,
    }),
    permitSeconds: new Histogram({
      name: 'agw_permit_wait_seconds',
      help: "Wait for a permit of the upstream's cap",
      labelNames: ['slug'] as const,
      buckets: SECONDS,
      registers,
    }),
    upstreamSeconds: new Histogram({
      name: 'agw_upstream_seconds',
      help: 'Time of a call spent in attempts at the upstream',
      labelNames: ['slug'] as const,
      buckets: SECONDS,
      registers,
    }),
    cache: new Counter({
      name: 'agw_cache_results_total',
      help: 'Look-ups in the cache, by result: hit, stale or miss',
      labelNames: ['slug', 'result'] as const,
      registers,
    }),
    attempts: new Counter({
      name: 'agw_attempts_total',
      help: 'Attempts at the upstream that count for its health, by result and source',
      labelNames: ['slug', 'result', 'source'] as const,
      registers,
    }),
    retries: new Counter({
      name: 'agw_retries_total',
      help: 'Attempts after the first of a call',
      labelNames: ['slug'] as const,
      registers,
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

/** Gauges of the whole fleet, shown by the operator console alone so that they are there once. */
export function createFleetMetrics(registry: Registry) {
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] })
  return {
    score: gauge('agw_health_score', 'Health score, 0 to 100', 'slug'),
    breaker: gauge('agw_breaker_open', '1 while the breaker of the API is open', 'slug'),
    waiting: gauge('agw_queue_waiting', 'Jobs that wait', 'slug'),
    active: gauge('agw_queue_active', 'Jobs that workers have', 'slug'),
    oldest: gauge('agw_queue_oldest_seconds', 'How long the oldest call has waited', 'slug'),
    paused: gauge('agw_queue_paused', '1 while the API is paused', 'slug'),
    capLeft: gauge('agw_cap_left', 'Requests left of a cap now', 'slug', 'window'),
    capMax: gauge('agw_cap_max', 'Requests that a cap allows in its window', 'slug', 'window'),
    capNext: gauge('agw_cap_next_slot_seconds', 'Until the next request may be sent; 0: now', 'slug'),
    processes: gauge('agw_processes', 'Processes that are alive', 'kind'),
    redisUp: gauge('agw_redis_up', '1 while Redis answers'),
    postgresUp: gauge('agw_postgres_up', '1 while Postgres answers'),
    redisBytesMax: gauge('agw_redis_memory_max_bytes', 'Memory that Redis may use; 0: no limit of its own'),
    redisBytes: gauge('agw_redis_memory_bytes', 'Memory used by Redis'),
    redisSeconds: gauge('agw_redis_latency_seconds', 'Round trip to Redis'),
    postgresSeconds: gauge('agw_postgres_latency_seconds', 'Round trip to Postgres'),
  }
}
