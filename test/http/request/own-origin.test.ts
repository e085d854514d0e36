import assert from 'node:assert/strict'
import { it } from 'node:test'
import { GatewayError } from '../../../src/errors.ts'
import { requireOwnOrigin } from '../../../src/http/request/own-origin.ts'

it('a page belongs to the gateway if its origin is the public address, localhost or an IP address, and under no other name', () => {
  const isTaken = (origin: string | undefined, host: string): boolean => {
    try {
      requireOwnOrigin({ headers: { ...(origin && { origin }) }, host }, 'http://gateway.example:3000', [
        'https://named',
      ])
      return true
    } catch (error) {
      assert.ok(error instanceof GatewayError && error.code === 'FORBIDDEN')
      return false
    }
  }
  for (const [origin, host, expected] of [
    [undefined, 'gateway', true],
    ['http://gateway.example:3000', 'inside:1', true],
    ['https://named', 'inside:1', true],
    ['http://localhost:3000', 'localhost:3000', true],
    ['http://192.168.1.5:3000', '192.168.1.5:3000', true],
    ['http://[::1]:3000', '[::1]:3000', true],
    // A name that its owner has lead to the address of the gateway.
    ['http://rebound.example:3000', 'rebound.example:3000', false],
    ['http://192.168.1.5:3000', '192.168.1.6:3000', false],
    ['http://localhost:3000', 'localhost:3001', false],
    ['null', 'localhost:3000', false],
  ] as const)
    assert.equal(isTaken(origin, host), expected, `${origin} at ${host}`)
})
