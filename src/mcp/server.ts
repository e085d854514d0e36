import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { apiMarkdown } from '../docs/api-markdown.ts'
import { llmsText } from '../docs/markdown.ts'
import { INTERFACE_VERSION } from '../openapi/components.ts'
import { apiTools } from './api-tools.ts'
import { callAsTool, type SendCall } from './call-tool.ts'
import { CATALOG_TOOLS, runCatalogTool } from './catalog-tools.ts'

export interface McpDeps {
  catalog: Catalog
  baseUrl: string
  send: SendCall
}

/** What a server offers beside its name. */
interface Offer {
  title: string
  instructions: string
  tools: Tool[]
  run: (name: string, input: Record<string, unknown>) => Promise<CallToolResult | undefined>
  resources: { uri: string; name: string; description: string; mimeType: string; read: () => string }[]
}

/** The server of all APIs: search, describe, call. */
export function createCatalogServer(sources: McpDeps): Server {
  const { catalog, baseUrl } = sources
  return createServer({
    title: 'Agent API Gateway',
    instructions:
      'Find an API with search_apis, read its endpoints with describe_api, then call_api. When a result is an error, do what its hint says.',
    tools: CATALOG_TOOLS,
    run: (name, input) => runCatalogTool(name, input, sources),
    resources: [
      {
        uri: `${baseUrl}/llms.txt`,
        name: 'catalog',
        description: 'Every API in a line',
        mimeType: 'text/markdown',
        read: () => llmsText(catalog, baseUrl),
      },
      ...offeredApis(catalog).map((api) => apiResource(api, baseUrl)),
    ],
  })
}

/** The server of one API: a typed tool per endpoint. */
export function createApiServer(api: Api, { baseUrl, send }: McpDeps): Server {
  const tools = apiTools(api)
  return createServer({
    title: api.upstream.displayName,
    instructions: `${api.upstream.description} When a result is an error, do what its hint says.`,
    tools: [...tools.values()].map(({ tool }) => tool),
    run: async (name, input) => {
      const entry = tools.get(name)
      return entry && (await callAsTool(send, { slug: api.slug, endpoint: entry.endpoint.path }, input))
    },
    resources: [apiResource(api, baseUrl)],
  })
}

function apiResource(api: Api, baseUrl: string): Offer['resources'][number] {
  return {
    uri: `${baseUrl}/docs/apis/${api.slug}.md`,
    name: api.slug,
    description: api.upstream.description,
    mimeType: 'text/markdown',
    read: () => apiMarkdown(api, baseUrl),
  }
}

function createServer({ title, instructions, tools, run, resources }: Offer): Server {
  const server = new Server(
    { name: 'agent-api-gateway', title, version: INTERFACE_VERSION },
    { capabilities: { tools: {}, resources: {} }, instructions },
  )
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const result = await run(params.name, params.arguments ?? {})
    if (result) return result
    const names = tools.map(({ name }) => name).join(', ')
    throw new McpError(ErrorCode.InvalidParams, `There is no tool of this name; there are ${names}.`)
  })
  server.setRequestHandler(ListResourcesRequestSchema, () => ({
    resources: resources.map(({ read: _, ...resource }) => resource),
  }))
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => {
    const resource = resources.find(({ uri }) => uri === params.uri)
    if (!resource) throw new McpError(ErrorCode.InvalidParams, 'There is no resource of this address.')
    return { contents: [{ uri: resource.uri, mimeType: resource.mimeType, text: resource.read() }] }
  })
  return server
}
