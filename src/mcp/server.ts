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
import type { Api } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { apiMarkdown } from '../docs/api-markdown.ts'
import { llmsText } from '../docs/markdown.ts'
import { GatewayError } from '../errors.ts'
import { INTERFACE_VERSION } from '../openapi/components.ts'
import type { Renderings } from '../pages/rendering.ts'
import type { AsyncCall } from '../queue/async-call.ts'
import { apiTools, runEndpointTool } from './api-tools.ts'
import { type CallClient, callIdOf, type SendCall } from './call-client.ts'
import { failureOf, type ResultForm, refusal, resultOf } from './call-tool.ts'
import { type CatalogToolDeps, catalogForm, catalogTools, runCatalogTool } from './catalog-tools.ts'
import { readTaskId } from './task-id.ts'
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

export interface McpDeps extends Omit<CatalogToolDeps, keyof Senders> {
  client: CallClient
  /** The rendered resources, which are the same for all callers until the catalog changes. */
  rendered: Renderings<string>
}

/**
 * The generation of the protocol that a request uses: `legacy` with a handshake (until 2025-11-25),
 * `modern` without (from 2026-07-28).
 */
export type Era = 'legacy' | 'modern'

/** How a tool sends one call, and how it sends many at once. */
type Senders = Pick<CatalogToolDeps, 'send' | 'sendBatch'>

/** The tools and resources of a server. */
interface Offer {
  title: string
  instructions: string
  websiteUrl: string
  tools: Tool[]
  run: (name: string, input: Record<string, unknown>, senders: Senders) => Promise<CallToolResult | undefined>
  /** The form of a call's result; undefined if no tool of this server makes the call. */
  formOf: (call: AsyncCall) => ResultForm | undefined
  resources: { uri: string; name: string; description: string; mimeType: string; read: () => string }[]
}

/** The server of all APIs, with tools to search, describe and call. */
export function createCatalogServer(deps: McpDeps, era: Era): Server {
  const { catalog, baseUrl } = deps
  const offer: Offer = {
    title: 'Agent API Gateway',
    instructions:
      'Find an API with search_apis, read its endpoints with describe_api, then call_api, or call_apis for many calls at once. If a result is an error, follow its hint.',
    websiteUrl: `${baseUrl}/agents`,
    tools: catalogTools(deps),
    run: (name, input, senders) => runCatalogTool(name, input, { ...deps, ...senders }),
    formOf: ({ slug, endpoint }) => catalogForm(slug, endpoint),
    resources: [
      {
        uri: `${baseUrl}/llms.txt`,
        name: 'catalog',
        description: 'One line for each API',
        mimeType: 'text/markdown',
        read: () => llmsText(catalog, baseUrl),
      },
      ...offeredApis(catalog).map((api) => apiResource(api, baseUrl)),
    ],
  }
  return createServer(offer, deps, era)
}

/** A server of chosen APIs, with a typed tool for each endpoint. */
export function createApiServer(apis: Api[], deps: McpDeps, era: Era): Server {
  const { baseUrl } = deps
  const tools = new Map(apis.flatMap((api) => [...apiTools(api)].map(([name, entry]) => [name, { api, ...entry }])))
  const [only, ...others] = apis
  const offer: Offer = {
    title: apis.map(({ upstream }) => upstream.displayName).join(', '),
    instructions: `${apis.map(({ upstream }) => upstream.description).join(' ')} If a result is an error, follow its hint.`,
    websiteUrl: only && others.length === 0 ? `${baseUrl}/apis/${only.slug}` : `${baseUrl}/agents`,
    tools: [...tools.values()].map(({ tool }) => tool),
    run: async (name, input, { send }) => {
      const entry = tools.get(name)
      return entry && (await runEndpointTool(send, entry.api, { entry, given: input }))
    },
    formOf: ({ slug, endpoint }) =>
      [...tools.values()].find((entry) => entry.api.slug === slug && entry.endpoint.path === endpoint)?.form,
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

/**
 * How long clients may cache the server's description, milliseconds. It changes only with a
 * deployment.
 */
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
  server.setRequestHandler('tools/list', ({ params }) => whole(params, { tools }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const senders = sendersFor(deps.client, context, era)
    const called = deps.client.run(context.mcpReq.id, () => run(params.name, params.arguments ?? {}, senders))
    const result = await called.catch((error: unknown) => {
      // Invalid arguments are returned as a result (SEP-1303), so that the model can read how to
      // correct them.
      if (error instanceof GatewayError) return refusal(error, deps.baseUrl)
      throw error
    })
    if (result) return result
    const [only = '', ...others] = tools.map(({ name }) => name)
    const all = others.length === 0 ? `the only tool is ${only}` : `the tools are ${[only, ...others].join(', ')}`
    throw invalidParams(`There is no tool with this name; ${all}.`)
  })
  const shownResources = resources.map(({ read: _, ...resource }) => resource)
  server.setRequestHandler('resources/list', ({ params }) => whole(params, { resources: shownResources }))
  // There are no templates. The method still answers, because clients call it for every server with
  // resources and show an error as a failure of the server.
  server.setRequestHandler('resources/templates/list', ({ params }) => whole(params, { resourceTemplates: [] }))
  server.setRequestHandler('resources/read', async ({ params }) => {
    const resource = resources.find(({ uri }) => uri === params.uri)
    if (!resource) throw invalidParams('There is no resource with this address.')
    const text = await deps.rendered.get(resource.uri, resource.read)
    return { contents: [{ uri: resource.uri, mimeType: resource.mimeType, text }] }
  })
  if (era === 'modern') serveTasks(server, offer, deps.client)
  return server
}

/**
 * A list, which always fits a page. The server gives out no cursor, so a cursor in a request is
 * not valid. An empty cursor is how some clients write that they have none.
 *
 * @throws ProtocolError
 */
function whole<List>(params: { cursor?: string | undefined } | undefined, list: List): List {
  if (params?.cursor) throw invalidParams('The cursor is not valid: this list has a single page. Leave cursor out.')
  return list
}

/** The error for a name that this server does not know. */
function invalidParams(words: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, words)
}

/** The icon as PNG only, because clients must support PNG, and not all support SVG. */
function iconsOf(baseUrl: string) {
  return [{ src: `${baseUrl}/icon-64.png`, mimeType: 'image/png', sizes: ['64x64'] }]
}

/**
 * Chooses how to send calls for a client: with a task, with progress, or waiting for the result.
 */
function sendersFor(client: CallClient, context: ServerContext, era: Era): Senders {
  const progressToken = context.mcpReq._meta?.progressToken
  const report =
    progressToken === undefined
      ? undefined
      : (progress: Progress) =>
          context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...progress } })
  const plain: SendCall = (path, parameters) => client.send(path, parameters)
  // A batch has no task; it ends with its answer.
  const sendBatch = report ? sendBatchWithProgress(client, report) : plain
  if (era === 'modern' && takesTasks(context)) return { send: sendAsTask(client), sendBatch }
  return { send: report ? sendWithProgress(client, report) : plain, sendBatch }
}

function takesTasks({ mcpReq }: ServerContext): boolean {
  const envelope: Record<string, unknown> = mcpReq.envelope ?? {}
  return Object(Object(envelope[CLIENT_CAPABILITIES_META_KEY]).extensions)[TASKS_EXTENSION] !== undefined
}

const TaskParams = Type.Object({ taskId: Type.String() })
const taskParams = { params: fromJsonSchema<Static<typeof TaskParams>>(TaskParams) }

/** Serves the methods of the tasks extension. A task is an asynchronous call. */
function serveTasks(server: Server, { formOf }: Offer, client: CallClient): void {
  const unknown = () => invalidParams('There is no such task, or it has expired.')

  /**
   * Finds a call of the caller, with its present state.
   * @throws ProtocolError
   */
  const find = async (taskId: string, context: ServerContext) => {
    if (!takesTasks(context)) {
      throw new MissingRequiredClientCapabilityError({
        requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
      })
    }
    const task = readTaskId(taskId)
    if (!task) throw unknown()
    const { callId, selection } = task
    const outcome = await client.look(encodeURIComponent(callId))
    if (isUnseen(outcome)) {
      throw new ProtocolError(
        ProtocolErrorCode.InternalError,
        failureOf(outcome.body).message ?? 'The task could not be looked up.',
      )
    }
    // A call of another account answers 404, like a call that never existed.
    if (callIdOf(outcome) !== callId) throw unknown()
    const call = await client.find(callId)
    // If the call asked for the source's raw answer, there are no data to make a result from. Tools
    // never do.
    const form = call && !call.raw ? formOf(call) : undefined
    if (!call || !form) throw unknown()
    return { outcome, call, form, selection }
  }

  server.setRequestHandler('tasks/get', taskParams, async ({ taskId }, context) => {
    const { outcome, call, form, selection } = await find(taskId, context)
    if (outcome.status === 202) return { ...(await taskOf(client, outcome)), taskId }
    // Only a failure is parsed for its code, because a successful answer may be long.
    const isCancelled = outcome.status !== 200 && failureOf(outcome.body).code === 'CALL_CANCELLED'
    const state = { ...endedTask(call, isCancelled), taskId }
    return isCancelled ? state : { ...state, result: resultOf(outcome, selection, form) }
  })
  server.setRequestHandler('tasks/cancel', taskParams, async ({ taskId }, context) => {
    const { call } = await find(taskId, context)
    await client.cancel(call.id)
    return {}
  })
  // A call never asks its client for input, so updates are accepted and ignored.
  server.setRequestHandler('tasks/update', taskParams, async ({ taskId }, context) => {
    await find(taskId, context)
    return {}
  })
}
