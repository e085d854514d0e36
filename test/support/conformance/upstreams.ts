import { type Answer, signUp } from '../client.ts'
import { until } from '../gateway.ts'
import { assertFailure, type Statement, type World } from './world.ts'

/** Makes a live call that the upstream answers with this answer. */
async function answeredBy(
  { send, upstream, elite }: World,
  path: string,
  { status, body = '{}', headers = {} }: { status: number; body?: string; headers?: Record<string, string> },
): Promise<Answer> {
  const [slug = ''] = path.split('/')
  upstream.play(slug, (_arrival, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  })
  return await send(`/v1/call/${path}`, { key: elite.live })
}

/** Statements about the answer that a caller gets for each kind of answer of an upstream. */
export const UPSTREAM_STATEMENTS: Statement[] = [
  {
    says: 'a call whose upstream fails is answered 502 UPSTREAM_ERROR, and its unit of the month is given back',
    holds: async (world) => {
      const { send, upstream, gateway } = world
      upstream.play('random-facts', (_arrival, response) => void response.writeHead(501).end('{}'))
      const { live, token } = await signUp(gateway)
      assertFailure(await send('/v1/call/random-facts/random', { key: live }), 502, 'UPSTREAM_ERROR')
      await until(async () => (await send('/v1/billing/status', { token })).body.usage.used === 0)
    },
  },
  {
    says: 'a call whose upstream sends no JSON is answered 502 UPSTREAM_INVALID_RESPONSE',
    holds: async (world) => {
      const answer = await answeredBy(world, 'timezone/current?timezone=UTC', { status: 200, body: '<html>' })
      assertFailure(answer, 502, 'UPSTREAM_INVALID_RESPONSE')
    },
  },
  {
    says: 'a call whose upstream redirects to another host is answered 502 UPSTREAM_REDIRECT_BLOCKED',
    holds: async (world) => {
      const headers = { location: 'http://other.example/' }
      const answer = await answeredBy(world, 'dog-images/random', { status: 302, headers })
      assertFailure(answer, 502, 'UPSTREAM_REDIRECT_BLOCKED')
    },
  },
  {
    says: 'a call for which the upstream has no data is answered 404 UPSTREAM_NOT_FOUND',
    holds: async (world) => {
      const body = '{"title":"No Definitions Found","message":"Sorry pal"}'
      const answer = await answeredBy(world, 'dictionary/define?word=qqqq', { status: 404, body })
      assertFailure(answer, 404, 'UPSTREAM_NOT_FOUND')
    },
  },
  {
    says: 'a call whose values the upstream answers with 400 is answered 400 UPSTREAM_REJECTED',
    holds: async (world) => {
      const answer = await answeredBy(world, 'encyclopedia/summary?title=Rejected', { status: 400 })
      assertFailure(answer, 400, 'UPSTREAM_REJECTED')
    },
  },
  {
    says: 'a call that the upstream answers with 429 is answered 502 UPSTREAM_RATE_LIMITED',
    holds: async (world) => {
      const headers = { 'retry-after': '60' }
      const answer = await answeredBy(world, 'meal-recipes/search?s=limited', { status: 429, headers })
      assertFailure(answer, 502, 'UPSTREAM_RATE_LIMITED')
    },
  },
]
