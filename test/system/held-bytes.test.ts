import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { bodyFlood, heldBodies, slowClients } from '../attack/large-bodies.ts'
import { unreadPages, unreadResults } from '../attack/unread-answers.ts'
import { CLIENT_LIMITS, HEAP_MIB_MAX, MEMORY_MB_MAX } from '../attack/watch.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { SPARING_FLAGS } from '../support/node-flags.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

/**
 * Short forms of attacks. Their long forms also measure how long another account waits, on a
 * machine that does nothing else.
 */
describe('clients that hold bytes of a node with a heap of 384 MiB', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  const scenarios = [unreadPages, unreadResults, bodyFlood, heldBodies, slowClients]

  before(async () => {
    upstream = await startUpstreamServer()
    const slugs = scenarios.flatMap((scenario) => scenario.slugs ?? [])
    gateway = await startGateway({
      environment: Object.assign(upstream.environment(...slugs), CLIENT_LIMITS),
      execArgv: [...SPARING_FLAGS, `--max-old-space-size=${HEAP_MIB_MAX}`],
    })
  })
  after(async () => {
    await gateway.stop()
    await upstream.close()
  })

  for (const { name, run } of scenarios) {
    it(`clients that hold bytes leave a node alive and its memory bounded: ${name}`, async () => {
      const { figures } = await run(gateway, 2, upstream)
      assert.equal(figures['node alive'], 'yes', JSON.stringify(figures))
      assert.ok(Number(figures['memory at most MB']) < MEMORY_MB_MAX, JSON.stringify(figures))
    })
  }
})
