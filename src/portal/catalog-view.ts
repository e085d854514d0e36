import type { FastifyInstance } from 'fastify'
import type { Api } from '../catalog/catalog.ts'
import type { PlanLimits } from '../config.ts'
import type { Condition } from './condition.ts'

/** What the page of an API shows besides the API itself. */
export interface ApiView {
  api: Api
  condition: Condition
  /** Changes of its health in the last 24 hours, newest first. */
  history: HealthChangeView[]
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
}

/** The day's changes of an API's health, from the public catalog; none where Postgres is away: the rest is worth showing. */
export async function readHistory(app: FastifyInstance, slug: string): Promise<HealthChangeView[]> {
  const answer = await app.inject(`/v1/catalog/${slug}`)
  if (answer.statusCode !== 200) return []
  return answer.json<{ health: { history: HealthChangeView[] } }>().health.history
}
