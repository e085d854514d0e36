import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { describe, it } from 'node:test'
import type { FastifyRequest } from 'fastify'
import { AccountRequests } from '../../../src/http/request/account-requests.ts'
import { onBehalfOf } from '../../../src/http/request/caller-socket.ts'

const REFUSED = { code: 'RATE_LIMIT_EXCEEDED' }

describe('the requests of an account', () => {
  it('the requests of an account are refused beyond a burst, and the requests of another account are not', () => {
    const requests = new AccountRequests(0.001)
    requests.take('a')
    assert.throws(() => requests.take('a'), REFUSED)
    requests.take('b')
  })

  it('requests that the gateway itself makes for a request that it has accepted do not count a second time', () => {
    const requests = new AccountRequests(0.001)
    requests.take('a')
    const raw = { socket: new Socket() } as FastifyRequest['raw']
    onBehalfOf({ raw, id: 'req_1' }, () => requests.take('a'))
    assert.throws(() => requests.take('a'), REFUSED)
  })

  it('the requests of an account that were refused as calls are bounded by themselves, whatever else it requests', () => {
    const requests = new AccountRequests(0.5)
    requests.take('a')
    assert.throws(() => requests.take('a'), REFUSED)
    requests.checkRefusedCalls('a')
    requests.countRefusedCall('a')
    assert.throws(() => requests.checkRefusedCalls('a'), REFUSED)
    requests.checkRefusedCalls('b')
    const raw = { socket: new Socket() } as FastifyRequest['raw']
    onBehalfOf({ raw, id: 'req_1' }, () => {
      requests.checkRefusedCalls('a')
      requests.countRefusedCall('b')
    })
    requests.checkRefusedCalls('b')
  })

  it('the requests of an account have no bound if the operator has set no bound', () => {
    const requests = new AccountRequests(0)
    for (let count = 0; count < 1_000; count += 1) requests.take('a')
  })
})
