import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { describeReachability } from '../../src/local/reachability.ts'

const since = Date.now()
const BEFORE = new Date(since - 60_000).toISOString()
const FRESH = new Date(since + 1_000).toISOString()

interface Played {
  slug: string
  checkedAt: string | null
  /** Null if its cap is not known at the moment. */
  perSecond?: number | null
  enabled?: boolean
  paused?: string | null
  /** Its last failure. Default: a failed name look-up. */
  failure?: { words: string; network: boolean }
}

const NO_SUCH_HOST = { words: 'DNS: no such host', network: true }

/**
 * The words if the console shows these upstreams, none of which is reachable, and which of them the
 * start probes.
 */
async function described(upstreams: Played[]): Promise<{ words: string | undefined; asked: string[] }> {
  const asked: string[] = []
  const overview = () => ({
    upstreams: upstreams.map(({ slug, checkedAt, perSecond = 1, enabled = true, paused = null, failure }) => ({
      ...{ slug, enabled, paused },
      caps: perSecond === null ? null : { rates: [{ max: perSecond * 60, seconds: 60 }] },
      health: { checkedAt, lastFailure: { at: checkedAt, code: 'UPSTREAM_ERROR', ...(failure ?? NO_SUCH_HOST) } },
    })),
  })
  const server = createServer((_request, response) => response.end(JSON.stringify(overview())))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const probe = (slugs: string[]): void => {
      asked.push(...slugs)
      for (const upstream of upstreams) if (slugs.includes(upstream.slug)) upstream.checkedAt = FRESH
    }
    return { words: await describeReachability({ url, token: 'token', since, probe }, 60_000), asked }
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

describe('what a start says of the upstreams', () => {
  it('what a start says of the upstreams is known on a later start too, by a probe of the few that allow most', async () => {
    const { words, asked } = await described([
      { slug: 'slow', checkedAt: BEFORE, perSecond: 0.01 },
      { slug: 'third', checkedAt: BEFORE, perSecond: 10 },
      { slug: 'first', checkedAt: BEFORE, perSecond: 30 },
      { slug: 'second', checkedAt: BEFORE, perSecond: 20 },
      { slug: 'disabled', checkedAt: null, perSecond: 40, enabled: false },
      { slug: 'paused', checkedAt: BEFORE, perSecond: 40, paused: 'refuse' },
      { slug: 'unknown', checkedAt: BEFORE, perSecond: null },
    ])
    assert.deepEqual(asked, ['first', 'second', 'third'])
    const none =
      '0 of the 3 upstreams tried so far are reachable (DNS: no such host). No network? Test keys work without it.'
    assert.equal(words, none)
  })

  it('what a start says of the upstreams is known of all on a first start, whose probes are scheduled anyway', async () => {
    const { words, asked } = await described([
      { slug: 'one', checkedAt: FRESH },
      { slug: 'two', checkedAt: FRESH },
    ])
    assert.deepEqual(asked, [])
    assert.match(words ?? '', /^0 of 2 enabled upstreams reachable \(/)
  })

  it('what a start says of the upstreams does not doubt the network if a source answers with a failure', async () => {
    const failure = { words: 'HTTP 404 in 5 ms', network: false }
    const { words } = await described([
      { slug: 'one', checkedAt: FRESH, failure },
      { slug: 'two', checkedAt: FRESH },
    ])
    const none = '0 of 2 enabled upstreams reachable (HTTP 404 in 5 ms). Test keys work; the console shows why.'
    assert.equal(words, none)
  })
})
