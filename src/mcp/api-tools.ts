import type { Tool } from '@modelcontextprotocol/server'
import type { Api, ApiEndpoint } from '../catalog/catalog.ts'
import { toDocumentSchema } from '../openapi/schemas.ts'

/** What calls of the gateway are to a client that asks its user: they read, and they reach the outside. */
export const CALL_HINTS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true }

type Tools = ReadonlyMap<string, { tool: Tool; endpoint: ApiEndpoint }>

/** What tools say comes from an upstream's file, which does not change while a process runs. */
const toolsOf = new WeakMap<Api, Tools>()

/** The tools of one API: one per endpoint, typed by the schemas that validate calls and answers. */
export function apiTools(api: Api): Tools {
  const known = toolsOf.get(api)
  if (known) return known
  const entries = [...api.endpoints.values()].map((endpoint) => ({ tool: endpointTool(api, endpoint), endpoint }))
  const tools = new Map(entries.map((entry) => [entry.tool.name, entry]))
  toolsOf.set(api, tools)
  return tools
}

function endpointTool({ slug, upstream }: Api, { path, endpoint }: ApiEndpoint): Tool {
  const { attribution, url } = upstream.terms
  // Some sources ask that whoever offers them to models points to their terms.
  const terms = [attribution && `${attribution}.`, url && `Terms: ${url}`].filter(Boolean).join(' ')
  return {
    name: `${slug}${path}`.replace(/[^A-Za-z0-9]+/g, '_'),
    title: `${upstream.displayName}: ${path.slice(1)}`,
    description: [endpoint.description, terms].filter(Boolean).join(' '),
    inputSchema: objectSchema(endpoint.parameters),
    outputSchema: objectSchema(endpoint.data),
    annotations: CALL_HINTS,
  }
}

/** A schema in the document's form, without names: each tool's schema stands alone. */
export function objectSchema(schema: unknown): { type: 'object'; [keyword: string]: unknown } {
  return { ...toDocumentSchema(schema, new Map()), type: 'object' }
}
