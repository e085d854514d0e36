import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { clientSetups, mcpConfiguration, PLACEHOLDER, snippets } from '../../src/portal/assets/snippets.js'
import { type Account, signUp } from '../support/client.ts'
import { type Gateway, reachableAddress, startGateway } from '../support/gateway.ts'

const run = promisify(execFile)

const THREE = ['weather', 'currency', 'encyclopedia']

/** A value with a meaning for shells, JavaScript, Python and URLs. */
const HOSTILE = `it's "50%" & $HOME \`x\` \\n {é}`

describe('the snippets of the portal', () => {
  let gateway: Gateway
  let account: Account

  before(async () => {
    gateway = await startGateway({
      isInProcess: true,
      environment: {
        ...(await reachableAddress()),
        PLAN_LIMITS: '{"Free":{"perMinute":1000}}',
      },
    })
    account = await signUp(gateway)
  })
  after(() => gateway.stop())

  /** Each API's first endpoint as its page shows it, with the visitor's key in place. */
  async function* calls(language: string): AsyncGenerator<{ code: string; data: unknown }> {
    for (const slug of THREE) {
      const [first] = Object.entries((await loadUpstreams()).get(slug)?.endpoints ?? {})
      const [path, { example }] = first ?? assert.fail(slug)
      const parameters = { ...(example.parameters as Record<string, string>), extra: HOSTILE }
      const code = snippets({ baseUrl: gateway.url, slug, path, parameters })[language] ?? assert.fail(language)
      yield { code: code.replaceAll(PLACEHOLDER, account.test), data: JSON.parse(JSON.stringify(example.data)) }
    }
  }

  it('the snippets of the portal in curl are answered when pasted into a shell', async (t: TestContext) => {
    if (!(await isThere('curl'))) return t.skip('there is no curl')
    for await (const { code, data } of calls('curl')) {
      const { stdout } = await run('sh', ['-c', code])
      assert.deepEqual(JSON.parse(stdout), { status: 'success', data })
    }
  })

  it('the snippets of the portal in JavaScript are answered', async () => {
    for await (const { code, data } of calls('JavaScript')) {
      const script = code.replace('console.log(data)', 'console.log(JSON.stringify(data))')
      const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script])
      assert.deepEqual(JSON.parse(stdout), data)
    }
  })

  it('the snippets of the portal in Python are answered', async (t: TestContext) => {
    if (!(await isThere('python3'))) return t.skip('there is no Python')
    for await (const { code, data } of calls('Python')) {
      const script = code.replace(
        'print(json.load(response)["data"])',
        'print(json.dumps(json.load(response)["data"]))',
      )
      assert.notEqual(script, code)
      const { stdout } = await run('python3', ['-c', script])
      assert.deepEqual(JSON.parse(stdout), data)
    }
  })

  it('the snippets of the portal for both clients are answered beside the file that they name', async (t: TestContext) => {
    const folder = await mkdtemp(join(tmpdir(), 'agw-snippets-'))
    t.after(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    for (const file of ['client.ts', 'client.py']) {
      const client = await (await fetch(`${gateway.url}/${file}`)).text()
      // A gateway of the tests has another port than its public address says.
      await writeFile(join(folder, file), client.replaceAll(/http:\/\/localhost:\d+/g, gateway.url))
    }
    const hasPython = await isThere('python3')
    const currency = { baseUrl: gateway.url, slug: 'currency', path: '/pair', parameters: { from: 'USD', to: 'EUR' } }
    const weather = {
      baseUrl: gateway.url,
      slug: 'weather',
      path: '/current',
      parameters: { latitude: 1, longitude: 2 },
    }
    for (const [call, member] of [
      [currency, 'rate'],
      [weather, 'temperature_c'],
    ] as const) {
      const codes = snippets(call)
      const script = codes['TypeScript client']?.replace('console.log(data)', `console.log(typeof data.${member})`)
      await writeFile(join(folder, 'use.ts'), (script ?? assert.fail()).replaceAll(PLACEHOLDER, account.test))
      assert.equal((await run(process.execPath, ['use.ts'], { cwd: folder })).stdout, 'number\n')
      if (!hasPython) continue
      const python = (codes['Python client'] ?? assert.fail()).replaceAll(PLACEHOLDER, account.test)
      assert.match((await run('python3', ['-c', python], { cwd: folder })).stdout, new RegExp(`'${member}': `))
    }
  })

  it('the snippets of the portal for the MCP SDK list tools and search', async () => {
    const code = clientSetups(`${gateway.url}/mcp`).TypeScript ?? assert.fail()
    const script = code.replaceAll(PLACEHOLDER, account.test)
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script])
    assert.match(stdout, /Current temperature/)
  })

  it('the snippets of the portal for the MCP SDK compile against the package that they name', async (t: TestContext) => {
    // Below the project's packages, so that the compiler finds them as it would in a project of the
    // reader.
    const folder = await mkdtemp(join(import.meta.dirname, '../../node_modules/.snippet-'))
    t.after(() => rm(folder, { recursive: true }))
    const file = join(folder, 'snippet.mts')
    await writeFile(file, clientSetups(`${gateway.url}/mcp`).TypeScript ?? assert.fail())
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'esnext', '--types', 'node']
    const compiler = join(import.meta.dirname, '../../node_modules/.bin/tsc')
    const { stdout } = await run(compiler, [...options, '--skipLibCheck', '--ignoreConfig', file], {
      cwd: folder,
    }).catch((error) => error)
    assert.equal(stdout, '')
  })

  it('the snippets of the portal for MCP name an address that answers with the key in the header', async () => {
    for (const slug of [undefined, 'weather']) {
      const { mcpServers } = JSON.parse(mcpConfiguration(gateway.url, slug).replaceAll(PLACEHOLDER, account.test))
      const { url, headers } = mcpServers[slug ?? 'agent-api-gateway']
      const answer = await fetch(url, {
        method: 'POST',
        headers: { ...headers, accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
        body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
      })
      assert.equal(answer.status, 200)
    }
  })
})

async function isThere(program: string): Promise<boolean> {
  return await run(program, ['--version']).then(
    () => true,
    () => false,
  )
}
