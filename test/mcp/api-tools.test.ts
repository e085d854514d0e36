import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { applySettings, createApi, loadCatalog } from '../../src/catalog/catalog.ts'
import { apiTools, runEndpointTool } from '../../src/mcp/api-tools.ts'
import type { SendCall } from '../../src/mcp/call-client.ts'
import { document, readWritten } from '../support/own-document.ts'

describe('the tools of an API', () => {
  it('the tools of an API are made once, whatever operators change of it', async () => {
    const catalog = await loadCatalog(new Map())
    for (const api of catalog.values()) {
      const made = apiTools(api)
      applySettings(api, { tierRequired: 'business', pausedMode: 'refuse' })
      assert.ok(apiTools(api) === made, api.slug)
    }
  })

  it('the tools of an API read limit as an alias of the parameter of the API, and not as the number of items to return', async () => {
    const api = (await loadCatalog(new Map())).get('news') ?? assert.fail()
    const entry = apiTools(api).get('news_top') ?? assert.fail()
    assert.deepEqual(Object.keys(entry.tool.inputSchema.properties ?? {}).toSorted(), [
      ...['category', 'fields', 'lang', 'max'],
    ])
    let sent: unknown
    const send: SendCall = async (_path, given) => {
      sent = given
      return { status: 200, headers: {}, body: '{"data":{"total":0,"articles":[]}}' }
    }
    await runEndpointTool(send, api, { entry, given: { limit: 8 } })
    assert.deepEqual(sent, { limit: 8 })
  })
})

describe('the tool of an endpoint of a document', () => {
  it('a parameter whose name model providers do not accept has another name in its tool, and is sent to the API under its own name', async () => {
    const query = (name: string, required = false) => ({ name, in: 'query', required, schema: { type: 'string' } })
    const names = ['filter[name]', 'filter_name', '$top', 'é', '日本', 'limit[]', 'a.b', 'x'.repeat(80)]
    const parameters = names.map((name) => query(name, name === '$top'))
    const schema = { type: 'object', properties: { items: { type: 'array', items: { type: 'string' } } } }
    const paths = { '/okay': { get: { responses: {} } }, '/list': { get: listOf({ parameters, schema }) } }
    const { upstream } = await readWritten(document({ root: { paths } }))
    const api = createApi('things', upstream ?? assert.fail(), { settings: new Map(), isOperatorNamed: false })
    const entry = apiTools(api).get('things_list') ?? assert.fail()
    const { properties = {}, required } = entry.tool.inputSchema
    assert.deepEqual(Object.keys(properties), [
      ...['filter_name_2', 'filter_name', 'top', 'e', 'parameter', 'limit_2', 'a.b', 'x'.repeat(60), 'fields', 'limit'],
    ])
    assert.deepEqual(required, ['top'])
    assert.match(String(Object(properties.top).description), /Sent as \$top\./)
    let sent: unknown
    const send: SendCall = async (_path, given) => {
      sent = given
      return { status: 200, headers: {}, body: '{"data":{"items":[]}}' }
    }
    const given = { filter_name: 'a', filter_name_2: 'b', top: '3', limit_2: 'c', limit: 1 }
    await runEndpointTool(send, api, { entry, given })
    assert.deepEqual(sent, { filter_name: 'a', 'filter[name]': 'b', $top: '3', 'limit[]': 'c' })
    const twice = { top: '3', $top: '4' }
    await assert.rejects(() => runEndpointTool(send, api, { entry, given: twice }), { code: 'INVALID_PARAMETER' })
  })
})

function listOf({ parameters, schema }: { parameters: object[]; schema: object }): object {
  const content = { 'application/json': { schema } }
  return { operationId: 'list', parameters, responses: { 200: { description: 'ok', content } } }
}
