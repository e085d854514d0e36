import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bringsBody, unitsOfBody, unitsOfBytes } from '../../../src/http/request/body-limits.ts'

describe('the units of a body', () => {
  it('the units of a body are one for each 64 KiB that it declares, and at least one', () => {
    assert.equal(unitsOfBytes(0), 1)
    assert.equal(unitsOfBody({}, 512 * 1024), 1)
    assert.equal(unitsOfBody({ 'content-length': '65536' }, 512 * 1024), 1)
    assert.equal(unitsOfBody({ 'content-length': '65537' }, 512 * 1024), 2)
  })

  it('a body of unknown length, or a body that is too large, takes as many units as the largest body', () => {
    assert.equal(unitsOfBody({ 'transfer-encoding': 'chunked' }, 512 * 1024), 8)
    assert.equal(unitsOfBody({ 'content-length': '9'.repeat(15) }, 512 * 1024), 8)
  })

  it('a request has a body if it declares a length or chunks', () => {
    assert.ok(bringsBody({ 'content-length': '1' }) && bringsBody({ 'transfer-encoding': 'chunked' }))
    assert.ok(!bringsBody({}) && !bringsBody({ 'content-length': '0' }))
  })
})
