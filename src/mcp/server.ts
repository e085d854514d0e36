import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  fromJsonSchema,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
  type Tool,
} from '@modelcontextprotocol/server'
import Type, { type Static } from 'typebox'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { apiMarkdown } from '../docs/api-markdown.ts'
import { llmsText } from '../docs/markdown.ts'
import { INTERFACE_VERSION } from '../openapi/components.ts'
import type { AsyncCall } from '../queue/async-call.ts'
import { apiTools } from './api-tools.ts'
import { type CallClient, callIdOf, type SendCall } from './call-client.ts'
import { callAsTool, failureOf, resultOf } from './call-tool.ts'
import { CATALOG_TOOLS, runCatalogTool } from './catalog-tools.ts'
import type { Observer } from './describe-api.ts'
import {
  endedTask,
  isUnseen,
  type Progress,
  sendAsTask,
  sendBatchWithProgress,
  sendWithProgress,
  TASKS_EXTENSION,
  taskOf,
} from './tasks.ts'

export interface McpDeps extends Observer {
  catalog: Catalog
  baseUrl: string
  client: CallClient
}

/** Which generation of the protocol a request speaks: with a handshake, up to 2025-11-25, or without, from 2026-07-28. */
export type Era = 'legacy' | 'modern'

/** How a tool sends one call, and how it sends many at once. */
interface Senders {
  send: SendCall
  sendBatch: SendCall
}

/** What a server offers beside its name. */
interface Offer {
  title: string
  instructions: string
  websiteUrl: string
  tools: Tool[]
  run: (name: string, input: Record<string, unknown>, senders: Senders) => Promise<CallToolResult | undefined>
  /** The data of a call as its tool's result; undefined for a call that no tool of this server makes. */
  shapeOf: (call: AsyncCall) => ((data: Record<string, unknown>) => Record<string, unknown>) | undefined
  resources: { uri: string; name: string; description: string; mimeType: string; read: () => string }[]
}

/** The server of all APIs: search, describe, call. */
export function createCatalogServer(deps: McpDeps, era: Era): Server {
  const { catalog, baseUrl } = deps
  const offer: Offer = {
    title: 'Agent API Gateway',
    instructions:
      'Find an API with search_apis, read its endpoints with describe_api, then call_api, or call_apis for many calls at once. When a result is an error, do what its hint says.',
    websiteUrl: `${baseUrl}/agents`,
    tools: CATALOG_TOOLS,
    run: (name, input, senders) => runCatalogTool(name, input, { ...deps, ...senders }),
    shapeOf:
      ({ slug, endpoint }) =>
      (data) => ({ api: slug, endpoint, data }),
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
  }
  return createServer(offer, deps, era)
}

/** The server of chosen APIs: a typed tool per endpoint. */
export function createApiServer(apis: Api[], deps: McpDeps, era: Era): Server {
  const { baseUrl } = deps
  const tools = new Map(apis.flatMap((api) => [...apiTools(api)].map(([name, entry]) => [name, { api, ...entry }])))
  const [only, ...others] = apis
  const offer: Offer = {
    title: apis.map(({ upstream }) => upstream.displayName).join(', '),
    instructions: `${apis.map(({ upstream }) => upstream.description).join(' ')} When a result is an error, do what its hint says.`,
    websiteUrl: only && others.length === 0 ? `${baseUrl}/apis/${only.slug}` : `${baseUrl}/agents`,
    tools: [...tools.values()].map(({ tool }) => tool),
    run: async (name, input, { send }) => {
      const entry = tools.get(name)
      return (
        entry && (await callAsTool(send, { slug: entry.api.slug, endpoint: entry.endpoint.path, parameters: input }))
      )
    },
    shapeOf: ({ slug }) => (apis.some((api) => api.slug === slug) ? (data) => data : undefined),
    resources: apis.map((api) => apiResource(api, baseUrl)),
  }
  return createServer(offer, deps, era)
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

/** How long clients may keep what the server says of itself, milliseconds: it changes with a deployment. */
const DISCOVER_TTL_MS = 3_600_000
const LIST_TTL_MS = 300_000

const CACHE_HINTS = {
  'server/discover': { ttlMs: DISCOVER_TTL_MS, cacheScope: 'public' },
  'tools/list': { ttlMs: LIST_TTL_MS, cacheScope: 'public' },
  'resources/list': { ttlMs: LIST_TTL_MS, cacheScope: 'public' },
  'resources/read': { ttlMs: LIST_TTL_MS, cacheScope: 'public' },
} as const

function createServer(offer: Offer, deps: McpDeps, era: Era): Server {
  const { title, instructions, websiteUrl, tools, run, resources } = offer
  const identity = { name: 'agent-api-gateway', title, version: INTERFACE_VERSION }
  const server =
    era === 'legacy'
      ? new Server(identity, { capabilities: { tools: {}, resources: {} }, instructions })
      : new Server(
          { ...identity, websiteUrl, icons: iconsOf(deps.baseUrl) },
          {
            capabilities: { tools: {}, resources: {}, extensions: { [TASKS_EXTENSION]: {} } },
            instructions,
            cacheHints: CACHE_HINTS,
          },
        )
  const requireFirst = createRequireFirst(era)
  server.setRequestHandler('tools/list', () => {
    requireFirst('The list of tools')
    return { tools }
  })
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const result = await run(params.name, params.arguments ?? {}, sendersFor(deps.client, context, era))
    if (result) return result
    const names = tools.map(({ name }) => name).join(', ')
    throw invalidParams(era, `There is no tool of this name; there are ${names}.`)
  })
  server.setRequestHandler('resources/list', () => {
    requireFirst('The list of resources')
    return { resources: resources.map(({ read: _, ...resource }) => resource) }
  })
  // There are none; clients ask wherever there are resources, and show a refusal as a failure of the server.
  server.setRequestHandler('resources/templates/list', () => {
    requireFirst('The list of templates')
    return { resourceTemplates: [] }
  })
  server.setRequestHandler('resources/read', ({ params }) => {
    const resource = resources.find(({ uri }) => uri === params.uri)
    if (!resource) throw invalidParams(era, 'There is no resource of this address.')
    requireFirst(`The resource ${resource.name}`)
    return { contents: [{ uri: resource.uri, mimeType: resource.mimeType, text: resource.read() }] }
  })
  if (era === 'modern') serveTasks(server, offer, deps.client)
  return server
}

/** Refuses what one request wants a second time: a short array of messages would be given a long answer many times. */
function createRequireFirst(era: Era): (what: string) => void {
  const given = new Set<string>()
  return (what) => {
    if (given.has(what)) throw refusal(era, ProtocolErrorCode.InvalidRequest, `${what} is given once in a request.`)
    given.add(what)
  }
}

function invalidParams(era: Era, message: string): ProtocolError {
  return refusal(era, ProtocolErrorCode.InvalidParams, message)
}

/** Clients of the earlier revisions get the message as they always have, with the code in it. */
function refusal(era: Era, code: ProtocolErrorCode, message: string): ProtocolError {
  return new ProtocolError(code, era === 'legacy' ? `MCP error ${code}: ${message}` : message)
}

/** Clients must take PNG; not all take SVG. */
function iconsOf(baseUrl: string) {
  return [{ src: `${baseUrl}/icon-64.png`, mimeType: 'image/png', sizes: ['64x64'] }]
}

/** How the client that asks wants to wait: with a task, with progress, or for the result alone. */
function sendersFor(client: CallClient, context: ServerContext, era: Era): Senders {
  const progressToken = context.mcpReq._meta?.progressToken
  const report =
    progressToken === undefined
      ? undefined
      : (progress: Progress) =>
          context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...progress } })
  const plain: SendCall = (path, parameters) => client.send(path, parameters)
  // A batch ends with its answer: no task stands for it.
  const sendBatch = report ? sendBatchWithProgress(client, report) : plain
  if (era === 'modern' && takesTasks(context)) return { send: sendAsTask(client), sendBatch }
  return { send: report ? sendWithProgress(client, report, context.mcpReq.id) : plain, sendBatch }
}

function takesTasks({ mcpReq }: ServerContext): boolean {
  const envelope: Record<string, unknown> = mcpReq.envelope ?? {}
  return Object(Object(envelope[CLIENT_CAPABILITIES_META_KEY]).extensions)[TASKS_EXTENSION] !== undefined
}

const TaskParams = Type.Object({ taskId: Type.String() })
const taskParams = { params: fromJsonSchema<Static<typeof TaskParams>>(TaskParams) }

/** The methods of the tasks extension. A task is an asynchronous call, and its id the call's. */
function serveTasks(server: Server, { shapeOf }: Offer, client: CallClient): void {
  const unknown = () => invalidParams('modern', 'There is no such task, or it has expired.')

  /** The caller's own call and its state now. @throws ProtocolError */
  const find = async (taskId: string, context: ServerContext) => {
    if (!takesTasks(context)) {
      throw new MissingRequiredClientCapabilityError({
        requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
      })
    }
    const outcome = await client.look(encodeURIComponent(taskId))
    if (isUnseen(outcome)) {
      throw new ProtocolError(
        ProtocolErrorCode.InternalError,
        failureOf(outcome.body).message ?? 'The task could not be looked up.',
      )
    }
    // Another account's call is 404, as one that never was.
    if (callIdOf(outcome) !== taskId) throw unknown()
    const call = await client.find(taskId)
    // No tool asks for the source's own answer: there is no data in it to make a result from.
    const shape = call && !call.raw ? shapeOf(call) : undefined
    if (!call || !shape) throw unknown()
    return { outcome, call, shape }
  }

  server.setRequestHandler('tasks/get', taskParams, async ({ taskId }, context) => {
    const { outcome, call, shape } = await find(taskId, context)
    if (outcome.status === 202) return { ...(await taskOf(client, outcome)) }
    const isCancelled = failureOf(outcome.body).code === 'CALL_CANCELLED'
    const state = endedTask(call, isCancelled)
    return isCancelled ? { ...state } : { ...state, result: resultOf(outcome, shape) }
  })
  server.setRequestHandler('tasks/cancel', taskParams, async ({ taskId }, context) => {
    await find(taskId, context)
    await client.cancel(taskId)
    return {}
  })
  // No call ever asks its client for anything: there is nothing to take.
  server.setRequestHandler('tasks/update', taskParams, async ({ taskId }, context) => {
    await find(taskId, context)
    return {}
  })
}
