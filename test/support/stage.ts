import type { Redis } from 'ioredis'
import { openOperatorRedis } from './cap-state.ts'
import { type Account, signUp } from './client.ts'
import { type Gateway, type GatewayOptions, startGateway } from './gateway.ts'
import { startUpstreamServer, type UpstreamServer } from './upstream-server.ts'

/** What most tests of calls need: a gateway, the upstreams that it calls, and a caller. */
export interface Stage {
  gateway: Gateway
  upstream: UpstreamServer
  account: Account
  /** A connection to the gateway's Redis. */
  redis: Redis
  stop: () => Promise<void>
}

export interface StageOptions extends Pick<GatewayOptions, 'webNodes' | 'isInProcess' | 'workers' | 'services'> {
  /** The upstreams that are played, each with its caps, or with the caps of its file. */
  caps: Record<string, string | undefined>
  /** How long a caller waits, milliseconds. */
  timeoutMs?: number
  /** Further settings. By default `PLAN_LIMITS` are limits that no test reaches. */
  environment?: Record<string, string>
}

const WIDE = { perMinute: 1_000_000, inFlight: 100_000, perMonth: 10_000_000 }

/** Plan limits that no test reaches. */
export const UNLIMITED = JSON.stringify({ Free: WIDE, Pro: WIDE, Elite: WIDE })

export async function startStage({ caps, timeoutMs, environment, ...options }: StageOptions): Promise<Stage> {
  // If a later step fails, the stack stops what has started, which otherwise would take processor
  // time from the files that follow.
  await using started = new AsyncDisposableStack()
  const upstream = await startUpstreamServer()
  started.defer(() => upstream.close())
  const gateway = await startGateway({
    ...options,
    environment: {
      ...upstream.environment(...Object.keys(caps)),
      ...capsEnvironment(caps),
      PLAN_LIMITS: UNLIMITED,
      ...(timeoutMs === undefined ? {} : { CALL_TIMEOUT_MS: String(timeoutMs) }),
      ...environment,
    },
  })
  started.defer(() => gateway.stop())
  const account = await signUp(gateway)
  const redis = openOperatorRedis(gateway)
  started.defer(() => redis.disconnect())
  const parts = started.move()
  return { gateway, upstream, account, redis, stop: () => parts.disposeAsync() }
}

function capsEnvironment(caps: StageOptions['caps']): Record<string, string> {
  const set = Object.entries(caps).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return Object.fromEntries(
    set.map(([slug, value]) => [`UPSTREAM_${slug.toUpperCase().replaceAll('-', '_')}_CAPS`, value]),
  )
}
