/** Stands for the key in every snippet; a copy has the visitor's own key in its place, where there is one. */
export const PLACEHOLDER = 'YOUR_API_KEY'

export function snippets({ baseUrl, slug, path, parameters }) {
  const query = new URLSearchParams(Object.entries(parameters).map(([name, value]) => [name, String(value)])).toString()
  const url = `${baseUrl}/v1/call/${slug}${path}`
  const full = query === '' ? url : `${url}?${query}`
  return {
    curl: `curl -H 'X-Api-Key: ${PLACEHOLDER}' \\\n  ${shellQuoted(full)}`,
    JavaScript: [
      `const url = new URL(${JSON.stringify(url)})`,
      ...(query === '' ? [] : [`url.search = new URLSearchParams(${JSON.stringify(texts(parameters), null, 2)})`]),
      `const response = await fetch(url, { headers: { 'X-Api-Key': '${PLACEHOLDER}' } })`,
      'const { status, data, error } = await response.json()',
      "if (status !== 'success') throw new Error(error.code + ': ' + error.hint)",
      'console.log(data)',
    ].join('\n'),
    Python: [
      'import json, urllib.error, urllib.parse, urllib.request',
      '',
      `url = ${JSON.stringify(url)}`,
      ...(query === '' ? [] : [`url += "?" + urllib.parse.urlencode(${python(parameters)})`]),
      `request = urllib.request.Request(url, headers={"X-Api-Key": "${PLACEHOLDER}"})`,
      'try:',
      '    with urllib.request.urlopen(request) as response:',
      '        print(json.load(response)["data"])',
      'except urllib.error.HTTPError as failure:',
      '    error = json.load(failure)["error"]',
      '    print(error["code"], error["hint"])',
    ].join('\n'),
    MCP: mcpConfiguration(baseUrl, slug),
  }
}

export function mcpConfiguration(baseUrl, slug) {
  const url = slug === undefined ? `${baseUrl}/mcp` : `${baseUrl}/mcp/${slug}`
  const server = { type: 'http', url, headers: { 'X-Api-Key': PLACEHOLDER } }
  return JSON.stringify({ mcpServers: { [slug ?? 'agent-api-gateway']: server } }, null, 2)
}

/** The configuration of each MCP client, by its name. */
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

const texts = (parameters) =>
  Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, String(value)]))

const shellQuoted = (text) => `'${text.replaceAll("'", "'\\''")}'`

/** JSON is Python for texts and numbers; true and false are not. */
const python = (parameters) =>
  `{${Object.entries(parameters)
    .map(
      ([name, value]) =>
        `${JSON.stringify(name)}: ${typeof value === 'boolean' ? `"${value}"` : JSON.stringify(value)}`,
    )
    .join(', ')}}`
