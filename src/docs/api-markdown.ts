import type { ApiEndpoint } from '../catalog/api-endpoint.ts'
import type { Api } from '../catalog/catalog.ts'
import { dataFields } from '../catalog/data-fields.ts'
import { endpointErrors } from '../catalog/endpoint-errors.ts'
import { exampleCall } from '../catalog/example-call.ts'
import { sourceName } from '../catalog/fallback.ts'
import { cacheWords, capWords, effectWords } from '../catalog/limit-words.ts'
import { aliasWords, parameterWords } from '../catalog/parameter-words.ts'
import { ERRORS } from '../errors.ts'
import type { Condition } from '../portal/condition.ts'

/**
 * One API in Markdown: state (if known), limits, terms, and for each endpoint its parameters, a
 * call, its answer and its errors.
 */
export function apiMarkdown(api: Api, baseUrl: string, condition?: Condition): string {
  const { slug, upstream, tierRequired } = api
  const { terms } = upstream
  return [
    `# ${upstream.displayName}`,
    '',
    upstream.description,
    '',
    `- Name: \`${slug}\``,
    `- Category: ${upstream.category}`,
    `- Needs the tier: ${tierRequired}`,
    ...(condition ? [`- State: ${stateWords(condition)}`] : []),
    `- Limits at the source, for all callers of this gateway together: ${capWords(api.caps)}`,
    `- Terms: ${terms.summary}${terms.url ? ` <${terms.url}>` : ''}`,
    ...(terms.licence ? [`- Licence of the data: <${terms.licence}>`] : []),
    ...(terms.attribution ? [`- Attribution: ${terms.attribution}`] : []),
    ...fallbackLines(api),
    `- MCP: ${baseUrl}/mcp/${slug}`,
    '',
    ...[...api.endpoints.values()].flatMap((endpoint) => endpointMarkdown(api, endpoint, baseUrl)),
  ].join('\n')
}

function fallbackLines({ upstream, fallback }: Api): string[] {
  if (!fallback) return []
  const { terms } = fallback.upstream
  const [first, second] = [sourceName(upstream), sourceName(fallback.upstream)]
  return [
    `- Sources: ${first}; ${second} answers when it fails. The \`Link\` header of an answer names its source with rel="via".`,
    `- Limits at ${second}: ${capWords(fallback.caps)}`,
    `- Terms of ${second}: ${terms.summary}${terms.url ? ` <${terms.url}>` : ''}`,
    ...(terms.licence ? [`- Licence of the data of ${second}: <${terms.licence}>`] : []),
    ...(terms.attribution ? [`- Attribution of ${second}: ${terms.attribution}`] : []),
  ]
}

function stateWords({ word, since, reason, effect }: Condition): string {
  const begun = since === undefined ? '' : ` since ${new Date(since).toISOString()}`
  return [`${word}${begun}.`, reason, effect].filter((sentence) => sentence !== '').join(' ')
}

function endpointMarkdown(api: Api, endpoint: ApiEndpoint, baseUrl: string): string[] {
  const { slug } = api
  const { path, parameters } = endpoint
  const { description, data, example } = endpoint.declaration
  const rows = parameters.map(
    ({ name, aliases, schema, required }) =>
      `| \`${name}\` | ${required ? 'yes' : 'no'} | ${cell(parameterWords(schema))} | ${cell([schema.description, aliasWords(aliases)].filter(Boolean).join('. '))} |`,
  )
  return [
    `## ${endpoint.method} /v1/call/${slug}${path}`,
    '',
    `${description} ${[effectWords(endpoint), cacheWords(endpoint)].filter(Boolean).join(' ')}`,
    '',
    ...(rows.length > 0
      ? ['| Parameter | Required | Value | Meaning |', '|---|---|---|---|', ...rows]
      : ['No parameters.']),
    '',
    '```sh',
    ...curlLines(endpoint, `${baseUrl}${exampleCall(slug, endpoint)}`),
    '```',
    '',
    example.origin === 'made' ? 'An example of the answer, made from its schema:' : 'An example of the answer:',
    '',
    '```json',
    JSON.stringify({ status: 'success', data: example.data }, null, 2),
    '```',
    '',
    '| Member of `data` | Type | Meaning |',
    '|---|---|---|',
    ...namesOf(data, example.data),
    '',
    `Errors: ${endpointErrors(api, endpoint)
      .map((code) => `${code} (${ERRORS[code].status})`)
      .join(', ')}. See ${baseUrl}/docs/errors.md`,
    '',
  ]
}

function curlLines({ method, declaration: endpoint }: ApiEndpoint, url: string): string[] {
  if (method === 'GET') return [`curl -H "X-Api-Key: $AGW_KEY" '${url}'`]
  const body = JSON.stringify(endpoint.example.parameters).replaceAll("'", "'\\''")
  return [`curl -H "X-Api-Key: $AGW_KEY" -H 'Content-Type: application/json' -d '${body}' '${url}'`]
}

/** A row for each member. Nested members have their full path: `games.home.score`. */
function namesOf(data: object, example: unknown): string[] {
  const trail: string[] = []
  return dataFields(data, example).map(({ name, depth, type, meaning }) => {
    trail.splice(depth, trail.length, name)
    return `| \`${cell(trail.join('.'))}\` | ${cell(type)} | ${cell(meaning)} |`
  })
}

/** A text as a cell of a Markdown table. */
export const cell = (text: string): string => text.replaceAll('|', '\\|').replace(/\s+/g, ' ')
