import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { echoOf, type Flow, pathOf } from './nonce.ts'

/** The outcome of one call. */
export interface CallRecord {
  nonce: number
  flow: Flow
  /** Milliseconds since the epoch. */
  sentAt: number
  tookMs: number
  /** `200`, `503 OVERLOADED`, or the connection's error code. */
  outcome: string
  /** True if a 200 carries the number of its call. */
  isEchoed: boolean
  retryAfterSeconds: number | undefined
}

export interface LoadOptions {
  /**
   * Addresses of the API nodes. A node whose /readyz does not answer 200 gets no calls, as behind a
   * load balancer.
   */
  urls: () => string[]
  /** Keys, used in turn. */
  keys: string[]
  perSecond: Partial<Record<Flow, number>>
  seconds: number
  /** Callers give up after this long, milliseconds. */
  patienceMs?: number
  /** A share of the callers, 0 to 1, gives up after this long instead, milliseconds. */
  impatient?: { share: number; patienceMs: number }
}

/** The address of a call, and how long its caller waits. */
export type CallOptions = Pick<LoadOptions, 'urls' | 'keys' | 'patienceMs' | 'impatient'>

const PATIENCE_MS = 35_000
const TICK_MS = 5
const READY_POLL_MS = 100

/**
 * Open-loop load: it sends a fixed number of calls a second, even if calls fail. Their numbers are
 * unique over the life of the process.
 */
export class Load {
  readonly #agent = new Agent({ connections: 4_000, pipelining: 1 })
  #nonce = 1_000

  async run(options: LoadOptions): Promise<CallRecord[]> {
    const ready = new Set(options.urls())
    const watching = new AbortController()
    const watch = this.#watchReadiness(options, { ready, signal: watching.signal })
    const flows = Object.entries(options.perSecond) as [Flow, number][]
    const calls: Promise<CallRecord>[] = []
    const sent = new Map<Flow, number>()
    const startedAt = performance.now()
    while (performance.now() - startedAt < options.seconds * 1_000) {
      for (const [flow, perSecond] of flows) {
        const due = Math.ceil(((performance.now() - startedAt) / 1_000) * perSecond)
        for (let count = sent.get(flow) ?? 0; count < due; count += 1) {
          calls.push(this.call(flow, options, [...ready]))
          sent.set(flow, count + 1)
        }
      }
      await delay(TICK_MS)
    }
    const records = await Promise.all(calls)
    watching.abort()
    await watch
    return records
  }

  async close(): Promise<void> {
    await this.#agent.destroy()
  }

  /** Makes one call. `ready` holds the nodes that take calls, or all nodes if none is known to. */
  async call(flow: Flow, options: CallOptions, ready: string[] = []): Promise<CallRecord> {
    this.#nonce += 1
    const nonce = this.#nonce
    const nodes = ready.length > 0 ? ready : options.urls()
    const base = nodes[nonce % nodes.length] ?? ''
    const key = options.keys[nonce % options.keys.length] ?? ''
    const record = { nonce, flow, sentAt: performance.timeOrigin + performance.now() }
    const startedAt = performance.now()
    const { patienceMs = PATIENCE_MS, impatient } = options
    // The last digits of the number choose node and key; other digits choose whether the caller is
    // impatient.
    const isImpatient = impatient !== undefined && Math.floor(nonce / 8) % 100 < impatient.share * 100
    const signal = AbortSignal.timeout(isImpatient ? impatient.patienceMs : patienceMs)
    try {
      const { statusCode, headers, body } = await request(base + pathOf(flow, nonce), {
        dispatcher: this.#agent,
        headers: { 'x-api-key': key },
        signal,
      })
      const answer = (await body.json()) as { data?: unknown; error?: { code?: string } }
      const retryAfter = headers['retry-after']
      return {
        ...record,
        tookMs: performance.now() - startedAt,
        outcome: statusCode === 200 ? '200' : `${statusCode} ${answer.error?.code}`,
        isEchoed: statusCode === 200 && echoOf(answer.data) === nonce,
        retryAfterSeconds: typeof retryAfter === 'string' ? Number(retryAfter) : undefined,
      }
    } catch (error) {
      const code = error instanceof Error ? (Reflect.get(error, 'code') ?? error.name) : 'unknown'
      const outcome = signal.aborted ? 'left' : String(code)
      return {
        ...record,
        tookMs: performance.now() - startedAt,
        outcome,
        isEchoed: false,
        retryAfterSeconds: undefined,
      }
    }
  }

  async #watchReadiness(
    { urls }: LoadOptions,
    { ready, signal }: { ready: Set<string>; signal: AbortSignal },
  ): Promise<void> {
    while (!signal.aborted) {
      for (const url of new Set([...urls(), ...ready])) {
        const isReady = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) }).then(
          ({ status }) => status === 200,
          () => false,
        )
        if (isReady && urls().includes(url)) ready.add(url)
        else ready.delete(url)
      }
      await delay(READY_POLL_MS, undefined, { signal }).catch(() => undefined)
    }
  }
}
