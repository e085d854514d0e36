import type { FastifyInstance } from 'fastify'

/** What the pages show of an API's state, read from the public catalog like every client. */
export interface ApiState {
  health_score: number
  tier_required: string
  free: boolean
}

/** The public catalog by slug. */
export async function readCatalog(app: FastifyInstance): Promise<Map<string, ApiState>> {
  const answer = await app.inject('/v1/catalog')
  const { data } = answer.json<{ data: (ApiState & { api_name: string })[] }>()
  return new Map(data.map((entry) => [entry.api_name, entry]))
}

/** The bands of the health score. */
export function healthWord(score: number): 'Healthy' | 'Degraded' | 'Down' {
  return score >= 80 ? 'Healthy' : score >= 40 ? 'Degraded' : 'Down'
}
