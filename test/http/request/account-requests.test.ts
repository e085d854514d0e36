import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AccountRequests } from '../../../src/http/request/account-requests.ts'
import { onBehalfOf } from '../../../src/http/request/caller-socket.ts'

const TOOL = { id: 'req_1', tool: 'call_api', left: new AbortController().signal }

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
    onBehalfOf(TOOL, () => requests.take('a'))
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
    onBehalfOf(TOOL, () => {
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
