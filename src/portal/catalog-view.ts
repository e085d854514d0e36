import type { FastifyInstance } from 'fastify'
import type { Api } from '../catalog/catalog.ts'
import type { PlanLimits, SignupPolicy } from '../config.ts'
import type { Condition } from './condition.ts'

/** What the page of an API shows besides the API itself. */
export interface ApiView {
  api: Api
  condition: Condition
  /** Changes of its health in the last 24 hours, newest first; undefined where they are not known. */
  history: HealthChangeView[] | undefined
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
  /** Under which condition an account that signs up can make live calls. */
  signup: SignupPolicy
}

/** The day's changes of an API's health, from the public catalog; undefined where Postgres is away. */
export async function readHistory(app: FastifyInstance, slug: string): Promise<HealthChangeView[] | undefined> {
  const answer = await app.inject(`/v1/catalog/${slug}`)
  if (answer.statusCode !== 200) return undefined
  return answer.json<{ health: { history: HealthChangeView[] } }>().health.history
}
