import { setTimeout as delay } from 'node:timers/promises'
import { send, signUp } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { modernMessage } from '../support/mcp-client.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'
import { type Outcome, percentile, type Scenario } from './scenario.ts'

const SLUG = 'prediction-markets'

/** Approximate length of the data behind the task, characters. */
const RESULT_CHARACTERS = 1_500_000

/** Number of loops, each of which sends the next message after the answer to the last. */
const DESCRIBING = 16
const FETCHING = 8

/** How often the other account reads its profile, milliseconds. */
const PROFILE_EVERY_MS = 50

const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } }

/**
 * Messages of an account that cost other accounts time: descriptions of an API, and the result of a
 * large call as a task.
 */
export const mcpWork: Scenario = {
  name: 'mcp-work',
  claim:
    'MCP messages of one account cost units by their work: the excess is 429, and another account is served at once',
  environment: { ACCOUNT_REQUESTS_PER_SECOND: '100' },
  slugs: [SLUG],
  run: async (gateway, seconds, upstream): Promise<Outcome> => {
    const [caller, other] = [await signUp(gateway), await signUp(gateway)]
    const taskId = upstream ? await largeResult(gateway, upstream, caller.live) : ''
    const describe = modernMessage('tools/call', { name: 'describe_api', arguments: { api: 'countries' } })
    const fetchTask = modernMessage('tasks/get', { taskId }, TASKS)
    const tally = { answered: 0, refused: 0, longest: 0 }
    const ends = performance.now() + seconds * 1_000
    const loop = async (key: string, message: { headers: Record<string, string>; body: object }) => {
      while (performance.now() < ends) {
        const headers = { ...message.headers, 'x-api-key': key }
        const answer = await fetch(`${gateway.url}/mcp`, {
          method: 'POST',
          headers,
          body: JSON.stringify(message.body),
        })
        const { length } = await answer.text()
        tally.longest = Math.max(tally.longest, length)
        if (answer.status === 200) tally.answered += 1
        if (answer.status === 429) tally.refused += 1
      }
    }
    const latencies: number[] = []
    const watch = async () => {
      while (performance.now() < ends) {
        const startedAt = performance.now()
        await send(gateway, '/v1/me', { token: other.token })
        latencies.push(performance.now() - startedAt)
        await delay(PROFILE_EVERY_MS)
      }
    }
    await Promise.all([
      watch(),
      ...Array.from({ length: DESCRIBING }, () => loop(caller.test, describe)),
      ...Array.from({ length: FETCHING }, () => loop(caller.live, fetchTask)),
    ])
    const p99 = percentile(latencies, 0.99)
    return {
      isPassed: p99 < 250 && tally.refused > 0 && tally.longest < 150_000,
      figures: {
        'messages answered': tally.answered,
        'refused with 429': tally.refused,
        'longest answer, characters': tally.longest,
        '/v1/me of another account, median ms': Math.round(percentile(latencies, 0.5)),
        'p99 ms': Math.round(p99),
      },
    }
  },
}

/**
 * Makes an asynchronous call with a large result.
 * @returns its id
 */
async function largeResult(gateway: Gateway, upstream: UpstreamServer, key: string): Promise<string> {
  const event = { id: '1', title: 't', description: 'x'.repeat(10_000), markets: [] }
  const events = Array.from({ length: RESULT_CHARACTERS / 10_000 }, (_, id) => ({ ...event, id: String(id) }))
  upstream.play(SLUG, () => ({ events, next_cursor: null }))
  const headers = { prefer: 'respond-async' }
  const { body } = await send(gateway, `/v1/call/${SLUG}/events?limit=100`, { key, headers })
  await until(async () => (await send(gateway, `/v1/calls/${body.id}`, { key })).status !== 202)
  return body.id
}
