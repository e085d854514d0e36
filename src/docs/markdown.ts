import type { Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { ERRORS, type ErrorCode } from '../errors.ts'
import { capitalized } from '../portal/pages/parts.ts'
import { cell } from './api-markdown.ts'
import { ERROR_HELP } from './error-causes.ts'
import type { Guide } from './guides.ts'

/**
 * `/llms.txt` (llmstxt.org): for language models, what this service is and where each API is
 * described.
 */
export function llmsText(catalog: Catalog, baseUrl: string, guides: Guide[] = []): string {
  const categories = Map.groupBy(offeredApis(catalog), (api) => api.upstream.category)
  const lines = [
    '# Agent API Gateway',
    '',
    '> One HTTP layer over many public data APIs: one key, one response format, errors that say what to do next.',
    '',
    `A call is GET ${baseUrl}/v1/call/{api}/{endpoint}?{parameters} with the API key in the header X-Api-Key (or Authorization: Bearer). An endpoint that changes something takes POST with a JSON object of its parameters.`,
    'A success is `{"status":"success","data":{…}}`, a failure `{"status":"error","error":{"code","message","hint","docs"}}`; follow the hint.',
    'A test key (agw_test_…) is answered from recorded examples and costs nothing; a live key (agw_live_…) reaches the real APIs.',
    '',
    '## Docs',
    '',
    `- [OpenAPI 3.1](${baseUrl}/openapi.json): every route, parameter and answer`,
    `- [TypeScript client](${baseUrl}/client.ts) and [Python client](${baseUrl}/client.py): one typed file each, without dependencies`,
    `- [Collection for Postman and Bruno](${baseUrl}/postman.json): every endpoint; set the variable apiKey`,
    `- [Search](${baseUrl}/docs/search.md): guides, APIs, error codes and routes by words; \`?q=rotate a key\``,
    `- [Errors](${baseUrl}/docs/errors.md): every code and what to do`,
    `- [MCP](${baseUrl}/mcp): Model Context Protocol over Streamable HTTP; \`search_apis\`, \`describe_api\`, \`call_api\`, \`call_apis\`, or ${baseUrl}/mcp?apis=weather,currency for the typed tools of chosen APIs`,
    `- [Catalog](${baseUrl}/v1/catalog): the APIs as JSON with their health; \`?q=\` searches in everyday words`,
    ...guides.map(({ name, title, summary }) => `- [${title}](${baseUrl}/docs/guides/${name}.md): ${summary}`),
    '',
  ]
  for (const [category, apis] of categories) {
    lines.push(`## ${capitalized(category)}`, '')
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

/** Every error code in Markdown: a table, then the causes and the fix of each. */
export function errorsMarkdown(): string {
  const entries = Object.entries(ERRORS) as [ErrorCode, (typeof ERRORS)[ErrorCode]][]
  return [
    '# Errors',
    '',
    'Every failure has `code`, `message`, `hint` and `docs`. The hint is one sentence and machine tokens such as `retry_after=7` or `param=id`.',
    '502: the source failed. 503: the gateway could not serve you.',
    '',
    '| Code | Status | When | What to do | Retry |',
    '|---|---|---|---|---|',
    ...entries.map(
      ([code, { status, retryable, message, hint }]) =>
        `| \`${code}\` | ${status} | ${cell(message)} | ${cell(hint)}. | ${retryable ? 'yes' : 'no'} |`,
    ),
    '',
    ...entries.flatMap(([code, { status, message }]) => [
      `## ${code}`,
      '',
      `${status}. ${message}`,
      '',
      ...ERROR_HELP[code].causes.map((cause) => `- Cause: ${cause}`),
      `- Fix: ${ERROR_HELP[code].fix}`,
      '',
    ]),
  ].join('\n')
}
