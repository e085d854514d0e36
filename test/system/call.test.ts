import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const SIX = ['weather', 'code-host-user', 'mock-data', 'currency', 'tech-forum', 'ip-lookup']

describe('a call', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account

  before(async () => {
    upstream = await startUpstreamServer()
    gateway = await startGateway({
      environment: { ...upstream.environment(...SIX), PLAN_LIMITS: '{"Free":{"perMinute":1000}}' },
    })
    account = await signUp(gateway)
  })
  after(async () => {
    await gateway.stop()
    await upstream.close()
  })

  for (const slug of SIX) {
    it(`to ${slug} answers each endpoint's recorded response as its documented data`, async () => {
      const { endpoints } = (await loadUpstreams()).get(slug) ?? assert.fail(`no upstream ${slug}`)
      for (const [path, { example }] of Object.entries(endpoints)) {
        upstream.play(slug, () => example.response)
        const query = new URLSearchParams(
          Object.entries(example.parameters).map(([name, value]): [string, string] => [name, String(value)]),
        )
        const answer = await send(gateway, `/v1/call/${slug}${path}?${query}`, { key: account.live })
        assert.equal(answer.status, 200, answer.text)
        assert.deepEqual(answer.body, { status: 'success', data: example.data })
      }
    })
  }
})
