import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resultOf } from '../../workers/upstream/attempt-result.ts'

const plain = { source: 'call', isPlain: true } as const
const added = { source: 'call', isPlain: false } as const
const probe = { source: 'probe', isPlain: true } as const

const rows: [code: string, ofPlain: string, ofAdded: string, ofProbe: string][] = [
  ['UPSTREAM_ERROR', 'fail', 'fail', 'fail'],
  ['UPSTREAM_TIMEOUT', 'fail', 'fail', 'fail'],
  ['UPSTREAM_INVALID_RESPONSE', 'fail', 'none', 'fail'],
  ['UPSTREAM_TOO_LARGE', 'fail', 'none', 'fail'],
  ['UPSTREAM_REDIRECT_BLOCKED', 'fail', 'none', 'fail'],
  ['UPSTREAM_NOT_FOUND', 'ok', 'none', 'fail'],
  ['UPSTREAM_REJECTED', 'none', 'none', 'fail'],
  ['UPSTREAM_AUTH_FAILED', 'none', 'none', 'none'],
  ['UPSTREAM_RATE_LIMITED', 'none', 'none', 'none'],
]

for (const [code, ofPlain, ofAdded, ofProbe] of rows) {
  test(`${code} is ${ofPlain} for health, ${ofAdded} after undeclared parameters, and ${ofProbe} of a probe`, () => {
    assert.deepEqual(
      [plain, added, probe].map((request) => resultOf(code, request)),
      [ofPlain, ofAdded, ofProbe],
    )
  })
}
