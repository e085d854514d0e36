import type { FastifyInstance } from 'fastify'
import type { Api } from '../catalog/catalog.ts'
import type { PlanLimits, SignupPolicy } from '../config.ts'
import type { Condition } from './condition.ts'
import type { LatencyOfDay } from './pages/api-latency.ts'

/** What the page of an API shows besides the API itself. */
export interface ApiView {
  api: Api
  condition: Condition
  /** Undefined if unknown. */
  past: HealthPast | undefined
  /** Undefined if unknown. */
  latency: LatencyOfDay | undefined
}

/** The recorded changes of an API's health. */
export interface HealthPast {
  /** Changes of the last 24 hours, the newest first. */
  history: HealthChangeView[]
  /** The last change, however long ago; null if there was none. */
  lastChange: HealthChangeView | null
}

export interface HealthChangeView {
  /** ISO 8601. */
  at: string
  from: string
  to: string
  cause: string
  code: string | null
}

/** The visitor and the gateway that a page is for. */
export interface Visit {
  baseUrl: string
  isLoggedIn: boolean
  plans: Record<string, PlanLimits>
  /** The policy that says when an account that signs up may make live calls. */
  signup: SignupPolicy
}

/** The history of an API's health, from the public catalog; undefined while Postgres is away. */
export async function readHealthPast(app: FastifyInstance, slug: string): Promise<HealthPast | undefined> {
  const answer = await app.inject(`/v1/catalog/${slug}`)
  if (answer.statusCode !== 200) return undefined
  return answer.json<{ health: HealthPast }>().health
}
