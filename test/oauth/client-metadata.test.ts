import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ClientMetadata } from 'oidc-provider'
import { adaptMetadata, checkRedirects } from '../../src/oauth/client-metadata.ts'

function redirects(...addresses: unknown[]): ClientMetadata {
  const metadata = { redirect_uris: addresses } as unknown as ClientMetadata
  checkRedirects(metadata)
  return metadata
}

/** The text of a refusal for the application. */
function refusalOf(...addresses: unknown[]): string {
  try {
    redirects(...addresses)
  } catch (error) {
    assert.equal(Object(error).error, 'invalid_redirect_uri')
    return Object(error).error_description
  }
  return assert.fail(`${addresses} are taken`)
}

describe('an address that an application registers for its codes', () => {
  it('an address that an application registers for its codes is https, of this machine, or of a scheme that is a reversed domain name', () => {
    for (const address of [
      'https://claude.ai/api/mcp/auth_callback',
      'https://vscode.dev/redirect',
      'http://127.0.0.1:33418/',
      'http://localhost/callback',
      'http://[::1]:8080/callback',
      'HTTP://LocalHost/callback',
      'com.example.app:/oauth',
      'COM.Example.App://oauth/callback',
      'com.googleusercontent.apps.123-abc:/oauth2redirect',
      'xn--p1ai.example:/oauth',
    ])
      redirects(address)
    for (const address of ['x-apple.systempreferences:com.apple.preference', 'ms-x.y:/cb', 'a.b:/cb', 'x2.example:/cb'])
      assert.match(refusalOf(address), /is none of these$/, address)
  })

  it('an address that an application registers for its codes may have the scheme of a known application, for a part of it that has a name', () => {
    for (const address of [
      'cursor://anysphere.cursor-mcp/oauth/callback',
      'cursor://anysphere.cursor-retrieval/oauth/user-agent-mcp/callback',
      'claude://claude.ai/mcp-auth-callback/sdk',
      'vscode://ms-vscode.mcp/authorize',
      'vscode-insiders://publisher.extension/callback',
      'windsurf://publisher.extension/callback',
    ])
      redirects(address)
    for (const address of [
      'vscode:mcp/install?name=x',
      'vscode://file/etc/passwd',
      'vscode://vscode-remote/ssh-remote+host/',
      'windsurf://windsurf-mcp-registry?serverName=x',
      'cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=e30=',
      'cursor:anysphere.cursor-mcp',
    ])
      assert.match(refusalOf(address), /^redirect_uris must be .*(vscode|windsurf|cursor): is none of these$/)
  })

  it('an address that an application registers for its codes must be a string, and every other JSON value is refused', () => {
    for (const given of [null, 9_007_199_254_740_992, true, {}, { toString: 1 }, { href: 'https://a.example' }, []])
      assert.equal(refusalOf(given), 'redirect_uris must be absolute addresses', JSON.stringify(given))
    assert.equal(refusalOf(['https://a.example/callback']), 'redirect_uris must be absolute addresses')
    for (const given of [5, true, {}, { toString: 1 }, ['https://a.example']])
      for (const name of ['client_uri', 'logo_uri', 'policy_uri', 'tos_uri'])
        assert.throws(
          () => adaptMetadata({ [name]: given } as unknown as ClientMetadata),
          { error: 'invalid_client_metadata', error_description: `${name} must be an http: or https: address` },
          `${name} ${JSON.stringify(given)}`,
        )
  })

  it('an address that an application registers for its codes contains nothing that two parsers could read differently', () => {
    for (const address of [
      ' https://agent.example/callback',
      'https://agent.example/callback ',
      'https://agent.example/\ncallback',
      'https://agent\t.example/callback',
      'https://agent.example/call back',
      'http://localhost\\@evil.example/',
      'https://agent.example\\callback',
    ])
      assert.equal(refusalOf(address), 'redirect_uris must have no blanks and no backslashes', JSON.stringify(address))
  })

  it('an address that an application registers for its codes is refused with words that name its scheme', () => {
    for (const [address, scheme] of [
      ['search-ms:query=x', 'search-ms:'],
      ['Search-MS:query=x', 'search-ms:'],
      ['  ms-settings:display', 'ms-settings:'],
      ['chrome://settings', 'chrome:'],
      ['ftp://evil.example/', 'ftp:'],
      ['ws://evil.example/', 'ws:'],
      ['wss://evil.example/', 'wss:'],
      ['view-source:https://evil.example/', 'view-source:'],
      ['tel:+1', 'tel:'],
      ['mailto:a@evil.example', 'mailto:'],
      ['java\nscript:alert(1)', 'javascript:'],
      ['data:text/html,x', 'data:'],
      ['file:///etc/passwd', 'file:'],
      ['intent://x#Intent;end', 'intent:'],
      ['steam://run/1', 'steam:'],
      ['myapp://callback', 'myapp:'],
    ] as const) {
      const words = refusalOf('https://agent.example/callback', address)
      assert.ok(words.endsWith(`; ${scheme} is none of these`), `${address}: ${words}`)
      // The characters that an error may have (RFC 6749, 5.2).
      assert.match(words, /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
    }
    for (const address of [
      'http://192.168.1.5/cb',
      'http://evil.example/',
      'http://localhost.evil.example/',
      'http://[::ffff:127.0.0.1]/',
    ])
      assert.equal(refusalOf(address), 'redirect_uris must be https: addresses, or addresses of this machine')
    for (const address of ['nonsense', '', 7, null, '//evil.example/cb'])
      assert.equal(refusalOf(address), 'redirect_uris must be absolute addresses')
  })
})

describe('what an application registers', () => {
  const adapted = (members: object): ClientMetadata => {
    const metadata = { client_name: 'Agent', ...members } as ClientMetadata
    adaptMetadata(metadata)
    return metadata
  }

  it('what an application registers and nothing here uses never reaches the library', () => {
    const used = { client_id: 'id', redirect_uris: ['https://agent.example/cb'], token_endpoint_auth_method: 'none' }
    const unused = {
      sector_identifier_uri: 'https://host.example:8443/x.json',
      jwks_uri: 'https://host.example/keys',
      jwks: { keys: [] },
      request_uris: ['https://host.example/request'],
      initiate_login_uri: 'https://host.example/login',
      backchannel_logout_uri: 'https://host.example/logout',
      post_logout_redirect_uris: ['search-ms:query=x'],
      logo_uri: 'https://host.example/logo.png',
      client_uri: 'https://host.example/',
      default_max_age: 1,
      require_auth_time: true,
      subject_type: 'pairwise',
      scope: 'openid',
      contacts: ['Agent team'],
      made_up: 'x',
    }
    assert.deepEqual(adapted({ ...used, ...unused }), { client_name: 'Agent', ...used })
  })

  it('what an application registers as an address for people must be an http: or https: address', () => {
    for (const name of ['client_uri', 'logo_uri', 'policy_uri', 'tos_uri']) {
      for (const address of ['javascript:alert(1)', 'search-ms:query=x', 'nonsense', 7, 'mailto:a@evil.example'])
        assert.throws(() => adapted({ [name]: address }), {
          error_description: `${name} must be an http: or https: address`,
        })
    }
  })

  it('what an application registers as its name becomes one short line, and is dropped if it has no visible characters', () => {
    const { client_name } = adapted({ client_name: `Agent\n\u202e${'x'.repeat(13_000)}` })
    assert.equal(client_name, `Agent ${'x'.repeat(53)}…`)
    assert.deepEqual(adapted({ client_name: '\u202e\u200b\u3164 ' }), {})
  })
})
