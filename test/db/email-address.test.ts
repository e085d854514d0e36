import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { asciiEmail, comparableEmail } from '../../src/db/email-address.ts'

describe('an email address', () => {
  for (const domain of [
    'b\u00fccher.example',
    'bu\u0308cher.example',
    'B\u00dcCHER.example',
    'xn--bcher-kva.example',
  ]) {
    it(`an email address at ${domain} is the same address in every form of the domain`, () => {
      assert.equal(comparableEmail(`Somebody@${domain}`), 'somebody@xn--bcher-kva.example')
    })
  }

  it('an email address is written with the ASCII form of its domain, and is not changed when it has that form', () => {
    assert.equal(asciiEmail('a@\u4f8b\u3048.jp'), 'a@xn--r8jz45g.jp')
    assert.equal(asciiEmail('a@\uff45xample\u3002com'), 'a@example.com')
    for (const same of ['a@Example.com', 'a@0x7f.1', 'a@ex%61mple.com', 'a', '', 'a@', 'j\u00f6rg@example.com'])
      assert.equal(asciiEmail(same), same)
    for (const none of ['a@\u00fc%2f.example', 'a@\u00fc/b', 'a@\u00fc example', 'a@\ufffd.example'])
      assert.equal(asciiEmail(none), none, 'what is no domain stays, and is refused as such')
  })
})
