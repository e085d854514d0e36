import { pythonMember, pythonName, pythonNames, typescriptMember, typescriptName } from '../../browser/client-names.js'

/**
 * The placeholder for the key in every snippet. The page replaces it by the visitor's key, if there
 * is a key.
 */
export const PLACEHOLDER = 'YOUR_API_KEY'

/**
 * The call in each language, by its name.
 *
 * @param {{
 *   baseUrl: string
 *   slug: string
 *   path: string
 *   method?: 'GET' | 'POST'
 *   parameters: Record<string, unknown>
 * }} call
 * @returns {Record<string, string>}
 */
export function snippets({ baseUrl, slug, path, method = 'GET', parameters }) {
  const pairs = method === 'POST' ? [] : pairsOf(parameters)
  const query = new URLSearchParams(pairs).toString()
  const url = `${baseUrl}/v1/call/${slug}${path}`
  const call = {
    url,
    pairs,
    parameters,
    full: query === '' ? url : `${url}?${query}`,
    body: method === 'POST' ? parameters : undefined,
  }
  return {
    curl: curlOf(call),
    JavaScript: javaScriptOf(call),
    'TypeScript client': typescriptClientOf({ baseUrl, slug, path, parameters }),
    Python: pythonOf(call),
    'Python client': pythonClientOf({ baseUrl, slug, path, parameters }),
    MCP: mcpConfiguration(baseUrl, slug),
  }
}

function curlOf({ full, body }) {
  const key = `curl -H 'X-Api-Key: ${PLACEHOLDER}'`
  if (body === undefined) return `${key} \\\n  ${shellQuoted(full)}`
  return `${key} -H 'Content-Type: application/json' \\\n  -d ${shellQuoted(JSON.stringify(body))} \\\n  ${shellQuoted(full)}`
}

function javaScriptOf({ url, pairs, body }) {
  const hasLists = new Set(pairs.map(([name]) => name)).size < pairs.length
  const query = hasLists ? pairs : Object.fromEntries(pairs)
  const post = [
    'const response = await fetch(url, {',
    "  method: 'POST',",
    `  headers: { 'X-Api-Key': '${PLACEHOLDER}', 'Content-Type': 'application/json' },`,
    `  body: JSON.stringify(${JSON.stringify(body, null, 2)}),`,
    '})',
  ]
  const get = [`const response = await fetch(url, { headers: { 'X-Api-Key': '${PLACEHOLDER}' } })`]
  return [
    `const url = new URL(${JSON.stringify(url)})`,
    ...(pairs.length === 0 ? [] : [`url.search = new URLSearchParams(${JSON.stringify(query, null, 2)})`]),
    ...(body === undefined ? get : post),
    'const { status, data, error } = await response.json()',
    "if (status !== 'success') throw new Error(error.code + ': ' + error.hint)",
    'console.log(data)',
  ].join('\n')
}

function pythonOf({ url, pairs, parameters, full, body }) {
  const isQuery = full !== url
  const headers = `{"X-Api-Key": "${PLACEHOLDER}"${body === undefined ? '' : ', "Content-Type": "application/json"'}}`
  const data = body === undefined ? '' : `, data=json.dumps(${python(body)}).encode()`
  return [
    'import json, urllib.error, urllib.parse, urllib.request',
    '',
    `url = ${JSON.stringify(url)}`,
    ...(isQuery ? [`url += "?" + urllib.parse.urlencode(${pythonQuery(parameters, pairs)})`] : []),
    `request = urllib.request.Request(url, headers=${headers}${data})`,
    'try:',
    '    with urllib.request.urlopen(request) as response:',
    '        print(json.load(response)["data"])',
    'except urllib.error.HTTPError as failure:',
    '    error = json.load(failure)["error"]',
    '    print(error["code"], error["hint"])',
  ].join('\n')
}

function typescriptClientOf({ baseUrl, slug, path, parameters }) {
  const given = Object.keys(parameters).length === 0 ? '' : JSON.stringify(parameters, null, 2)
  const name = typescriptName(path)
  const method = /^\d/.test(name) ? `[${JSON.stringify(name)}]` : `.${name}`
  return [
    `// curl -O ${baseUrl}/client.ts`,
    "import { Gateway } from './client.ts'",
    '',
    `const gateway = new Gateway({ key: '${PLACEHOLDER}' })`,
    `const data = await gateway.${typescriptMember(slug)}${method}(${given})`,
    'console.log(data)',
  ].join('\n')
}

function pythonClientOf({ baseUrl, slug, path, parameters }) {
  const names = pythonNames(Object.keys(parameters))
  const given = Object.entries(parameters).map(([name, value]) => `${names.get(name)}=${python(value)}`)
  return [
    `# curl -O ${baseUrl}/client.py`,
    'from client import Gateway, GatewayError',
    '',
    `gateway = Gateway("${PLACEHOLDER}")`,
    'try:',
    `    print(gateway.${pythonMember(slug)}.${pythonName(path.slice(1))}(${given.join(', ')}))`,
    'except GatewayError as error:',
    '    print(error.code, error.hint)',
  ].join('\n')
}

/**
 * The configuration of an MCP client, for the server of one API or of all APIs.
 *
 * @param {string} baseUrl
 * @param {string} [slug]
 */
export function mcpConfiguration(baseUrl, slug) {
  const url = slug === undefined ? `${baseUrl}/mcp` : `${baseUrl}/mcp/${slug}`
  const server = { type: 'http', url, headers: { 'X-Api-Key': PLACEHOLDER } }
  return JSON.stringify({ mcpServers: { [slug ?? 'agent-api-gateway']: server } }, null, 2)
}

/**
 * The configuration of each MCP client, by its name.
 *
 * @param {string} url
 * @returns {Record<string, string>}
 */
export function clientSetups(url) {
  const headers = { 'X-Api-Key': PLACEHOLDER }
  const json = (value) => JSON.stringify(value, null, 2)
  return {
    'Claude Code': `claude mcp add --transport http agent-api-gateway ${shellQuoted(url)} \\\n  --header 'X-Api-Key: ${PLACEHOLDER}'`,
    Cursor: json({ mcpServers: { 'agent-api-gateway': { url, headers } } }),
    'VS Code': json({ servers: { 'agent-api-gateway': { type: 'http', url, headers } } }),
    Codex: [
      '[mcp_servers.agent-api-gateway]',
      `url = ${JSON.stringify(url)}`,
      `http_headers = { "X-Api-Key" = "${PLACEHOLDER}" }`,
    ].join('\n'),
    TypeScript: [
      '// npm install @modelcontextprotocol/client',
      "import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'",
      '',
      "const client = new Client({ name: 'my-agent', version: '1.0.0' })",
      `const requestInit = { headers: { 'X-Api-Key': '${PLACEHOLDER}' } }`,
      `await client.connect(new StreamableHTTPClientTransport(new URL(${JSON.stringify(url)}), { requestInit }))`,
      "const found = await client.callTool({ name: 'search_apis', arguments: { query: 'weather' } })",
      'console.log(JSON.stringify(found.structuredContent))',
      'await client.close()',
    ].join('\n'),
    'Any client': mcpConfiguration(url.replace(/\/mcp$/, '')),
  }
}

/** Pairs of names and values of a query. A list becomes a pair for each item. */
const pairsOf = (parameters) =>
  Object.entries(parameters).flatMap(([name, value]) => [value].flat().map((item) => [name, String(item)]))

const shellQuoted = (text) => `'${text.replaceAll("'", "'\\''")}'`

/**
 * A dictionary if no value is a list, because it is easier to read; otherwise pairs. Booleans
 * become texts, because Python would write them with a capital.
 */
function pythonQuery(parameters, pairs) {
  const isPlain = Object.values(parameters).every((value) => !Array.isArray(value))
  const texts = (value) => (typeof value === 'boolean' ? String(value) : value)
  return python(
    isPlain ? Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, texts(value)])) : pairs,
  )
}

/** A JSON value as Python writes it. */
function python(value) {
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([name, inner]) => `${JSON.stringify(name)}: ${python(inner)}`)
      .join(', ')}}`
  }
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  return value === null || value === undefined ? 'None' : JSON.stringify(value)
}
