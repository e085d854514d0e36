import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { adaptSignIn, adaptTokenForm } from '../../src/oauth/request-parameters.ts'

const BASE = 'http://localhost:3000'
const signIn = (query: string) => decodeURIComponent(String(adaptSignIn(new URLSearchParams(query), BASE)))
const tokenForm = (form: string) => decodeURIComponent(String(adaptTokenForm(new URLSearchParams(form), BASE)))

describe('the parameters of a sign-in', () => {
  it('the parameters of a sign-in that the gateway does not use are left out, and invalid parameters stay, so that they are refused', () => {
    for (const [given, adapted] of [
      ['', 'scope=call'],
      ['scope=', 'scope=call'],
      ['scope=openid+email', 'scope=openid+email+call'],
      ['scope=call+offline_access', 'scope=call+offline_access'],
      ['scope=a&scope=b', 'scope=a&scope=b'],
      ['scope=call&prompt=select_account', 'scope=call'],
      ['scope=call&prompt=consent+select_account+login', 'scope=call&prompt=consent+login'],
      ['scope=call&prompt=none+select_account', 'scope=call&prompt=none+select_account'],
      ['scope=call&prompt=unknown', 'scope=call&prompt=unknown'],
      ['scope=call&acr_values=a+b&acr_values=c', 'scope=call'],
      ['scope=openid+call&acr_values=a&nonce=n', 'scope=openid+call&nonce=n'],
      ['scope=call&nonce=n&max_age=0&claims=%7B%7D&id_token_hint=x&claims_locales=de', 'scope=call'],
      ['scope=call&state=ü%00+x', 'scope=call&state=ü\0+x'],
    ] as const) {
      assert.equal(signIn(given), adapted, given)
    }
  })

  it('the parameters of a sign-in name each resource once, in one spelling, and so does a token request', () => {
    for (const adapt of [signIn, tokenForm]) {
      const resources = (given: string) => new URLSearchParams(adapt(given)).getAll('resource')
      assert.deepEqual(resources(`resource=${BASE}/mcp/&resource=${BASE}/%256dcp`), [`${BASE}/mcp`])
      assert.deepEqual(resources(`resource=${BASE}/mcp&resource=${BASE}/`), [`${BASE}/mcp`, BASE])
      assert.deepEqual(resources('resource=https://evil.example/mcp/'), ['https://evil.example/mcp/'])
      assert.deepEqual(resources('resource='), [''])
    }
  })

  it('the parameters of a refresh have no scope; the parameters of a code keep members that the library ignores', () => {
    assert.equal(
      tokenForm('grant_type=refresh_token&refresh_token=a&scope=x+y'),
      'grant_type=refresh_token&refresh_token=a',
    )
    assert.equal(tokenForm('grant_type=authorization_code&scope=x'), 'grant_type=authorization_code&scope=x')
  })
})
