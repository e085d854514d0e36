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
