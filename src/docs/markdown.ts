import type { Api, ApiEndpoint, Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { exampleCall } from '../catalog/example-call.ts'
import { parameterWords } from '../catalog/parameter-words.ts'
import { ERRORS, type ErrorCode } from '../errors.ts'

/** `/llms.txt` (llmstxt.org): what this is and where each API is described, for language models. */
export function llmsText(catalog: Catalog, baseUrl: string): string {
  const categories = Map.groupBy(offeredApis(catalog), (api) => api.upstream.category)
  const lines = [
    '# Agent API Gateway',
    '',
    '> One HTTP layer over many public data APIs: one key, one form of answer, errors that say what to do next.',
    '',
    `Every endpoint is a GET under ${baseUrl}/v1/call/{api}/{endpoint} with the API key in the header X-Api-Key (or Authorization: Bearer).`,
    'A success is `{"status":"success","data":{…}}`, a failure `{"status":"error","error":{"code","message","hint","docs"}}`; follow the hint.',
    'A test key (agw_test_…) is answered from recorded examples and costs nothing; a live key (agw_live_…) reaches the real APIs.',
    '',
    '## Docs',
    '',
    `- [OpenAPI 3.1](${baseUrl}/openapi.json): every route, parameter and answer`,
    `- [Errors](${baseUrl}/docs/errors.md): every code and what to do`,
    `- [MCP](${baseUrl}/mcp): Model Context Protocol over Streamable HTTP; \`search_apis\`, \`describe_api\`, \`call_api\`, or ${baseUrl}/mcp/{api} for the typed tools of one API`,
    `- [Catalog](${baseUrl}/v1/catalog): the APIs as JSON with their health`,
    '',
  ]
  for (const [category, apis] of categories) {
    lines.push(`## ${category.charAt(0).toUpperCase()}${category.slice(1)}`, '')
    for (const { slug, upstream, endpoints } of apis) {
      const paths = [...endpoints.keys()].join(', ')
      lines.push(
        `- [${upstream.displayName}](${baseUrl}/docs/apis/${slug}.md): ${upstream.description} (${slug}: ${paths})`,
      )
    }
    lines.push('')
  }
  return lines.join('\n')
}

/** One API in Markdown: terms, and each endpoint with parameters, a call and its answer. */
export function apiMarkdown(api: Api, baseUrl: string): string {
  const { slug, upstream, tierRequired, enabled, needsOwnKey } = api
  const { terms } = upstream
  return [
    `# ${upstream.displayName}`,
    '',
    upstream.description,
    '',
    `- Name: \`${slug}\``,
    `- Category: ${upstream.category}`,
    `- Needs the tier: ${tierRequired}`,
    ...(enabled
      ? []
      : [
          needsOwnKey
            ? '- Needs a provider key of your own; test keys work.'
            : '- Not enabled by the operator; test keys work.',
        ]),
    `- Terms: ${terms.summary}${terms.url ? ` <${terms.url}>` : ''}`,
    ...(terms.attribution ? [`- Attribution: ${terms.attribution}`] : []),
    `- MCP: ${baseUrl}/mcp/${slug}`,
    '',
    ...[...api.endpoints.values()].flatMap((endpoint) => endpointMarkdown(api, endpoint, baseUrl)),
  ].join('\n')
}

function endpointMarkdown({ slug }: Api, endpoint: ApiEndpoint, baseUrl: string): string[] {
  const { path, parameters } = endpoint
  const answer = { status: 'success', data: endpoint.endpoint.example.data }
  const rows = parameters.map(
    ({ name, schema, required }) =>
      `| \`${name}\` | ${required ? 'yes' : 'no'} | ${cell(parameterWords(schema))} | ${cell(schema.description ?? '')} |`,
  )
  return [
    `## GET /v1/call/${slug}${path}`,
    '',
    endpoint.endpoint.description,
    '',
    ...(rows.length > 0
      ? ['| Parameter | Required | Value | Meaning |', '|---|---|---|---|', ...rows]
      : ['No parameters.']),
    '',
    '```sh',
    `curl -H "X-Api-Key: $AGW_KEY" '${baseUrl}${exampleCall(slug, endpoint)}'`,
    '```',
    '',
    '```json',
    JSON.stringify(answer, null, 2),
    '```',
    '',
  ]
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replace(/\s+/g, ' ')

/** The error table in Markdown. */
export function errorsMarkdown(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { status, retryable, message, hint }]) =>
      `| \`${code as ErrorCode}\` | ${status} | ${cell(message)} | ${cell(hint)}. | ${retryable ? 'yes' : 'no'} |`,
  )
  return [
    '# Errors',
    '',
    'Every failure has `code`, `message`, `hint` and `docs`. The hint is one sentence and machine tokens such as `retry_after=7` or `param=id`.',
    '502 is because of the upstream API, 503 because of the gateway.',
    '',
    '| Code | Status | When | What to do | Same request may succeed later |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}
