import type { CallToolResult, Tool } from '@modelcontextprotocol/server'
import Type from 'typebox'
import type { ApiEndpoint } from '../catalog/api-endpoint.ts'
import type { Api } from '../catalog/catalog.ts'
import { effectWords } from '../catalog/limit-words.ts'
import { toDocumentSchema } from '../openapi/schemas.ts'
import { adaptTo } from './adapt-arguments.ts'
import { argumentNames } from './argument-names.ts'
import type { SendCall } from './call-client.ts'
import { About, callAsTool, type ResultForm } from './call-tool.ts'
import { checkArguments, invalidArguments } from './invalid-arguments.ts'
import { hasTopList, SelectionSchema, unknownField } from './selection.ts'

export interface ToolHints {
  readOnlyHint: boolean
  destructiveHint: boolean
  idempotentHint: boolean
  openWorldHint: boolean
}

/**
 * What calls of the gateway are to a client that asks its user: they read, and they reach the
 * outside.
 */
export const CALL_HINTS: ToolHints = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: true,
}

/**
 * Tells Claude Code to show results of up to so many characters to the model; longer results, and
 * by default results above 50,000, become a file. The bound is the bound of our results, with room
 * for `_meta` and the text around them.
 */
export const DATA_META = { 'anthropic/maxResultSizeChars': 60_000 }

/**
 * What calls of one endpoint are to it. `destructiveHint` is always stated, because clients take it
 * for true otherwise.
 */
function hintsOf({ declaration: { effect = 'read', isDestructive = true } }: ApiEndpoint): ToolHints {
  if (effect === 'read') return CALL_HINTS
  return {
    readOnlyHint: false,
    destructiveHint: isDestructive,
    idempotentHint: effect === 'repeatable',
    openWorldHint: true,
  }
}

/** A tool of one endpoint. */
export interface EndpointTool {
  tool: Tool
  endpoint: ApiEndpoint
  /** Names of the endpoint's parameters by their names in the tool. */
  names: ReadonlyMap<string, string>
  form: ResultForm
}

/** Stands in each of the tools. What the members hold, the hint and the note say. */
const ABOUT = {
  ...Object(objectSchema(Type.Object(About)).properties),
  truncated: { type: 'object' },
}

type Tools = ReadonlyMap<string, EndpointTool>

/** What tools say comes from an upstream's file, which does not change while a process runs. */
const toolsOf = new WeakMap<Api, Tools>()

/** The tools of one API: one per endpoint, typed by the schemas that validate calls and answers. */
export function apiTools(api: Api): Tools {
  const known = toolsOf.get(api)
  if (known) return known
  const entries = [...api.endpoints.values()].map((endpoint) => endpointTool(api, endpoint))
  const tools = new Map(entries.map((entry) => [entry.tool.name, entry]))
  toolsOf.set(api, tools)
  return tools
}

/**
 * Runs the tool of an endpoint.
 *
 * @throws GatewayError INVALID_PARAMETER for fields that the data do not have, or a wrong limit
 */
export async function runEndpointTool(
  send: SendCall,
  api: Api,
  { entry: { tool, endpoint, names, form }, given }: { entry: EndpointTool; given: Record<string, unknown> },
): Promise<CallToolResult> {
  const adapted = adaptTo(tool.inputSchema, given) as Record<string, unknown>
  const own = selectionOf(endpoint)
  const isOwn = ([name]: [string, unknown]) => Object.hasOwn(own, name)
  const members = Object.entries(adapted)
  const selection = checkArguments(SelectionSchema, Object.fromEntries(members.filter(isOwn)))
  const unknown = unknownField(selection, endpoint.declaration.data)
  if (unknown !== undefined) throw invalidArguments(unknown)
  const others = members.filter((member) => !isOwn(member))
  const parameters = Object.fromEntries(others.map(([name, value]) => [names.get(name) ?? name, value]))
  return await callAsTool(send, { api, endpoint, parameters, selection }, form)
}

function endpointTool({ slug, upstream }: Api, apiEndpoint: ApiEndpoint): EndpointTool {
  const { path, declaration: endpoint } = apiEndpoint
  const { attribution, url } = upstream.terms
  // Some sources demand that a gateway for models points to their terms.
  const terms = [attribution && `${attribution}.`, url && `Terms: ${url}`].filter(Boolean).join(' ')
  const parameters = objectSchema(endpoint.parameters)
  const own = selectionOf(apiEndpoint)
  const names = argumentNames(Object.keys(Object(parameters.properties)), Object.keys(own))
  const isFlat = Object.keys(About).every((name) => !Object.hasOwn(endpoint.data.properties, name))
  const data = withoutRequired(objectSchema(endpoint.data))
  const tool = {
    name: `${slug}${path}`.replace(/[^A-Za-z0-9]+/g, '_'),
    title: `${upstream.displayName}: ${path.slice(1)}`,
    description: [endpoint.description, effectWords(apiEndpoint), terms].filter(Boolean).join(' '),
    inputSchema: inputSchemaOf(parameters, names, own),
    outputSchema: {
      type: 'object' as const,
      properties: { ...ABOUT, ...(isFlat ? Object(data.properties) : { data }) },
    },
    annotations: hintsOf(apiEndpoint),
    _meta: DATA_META,
  }
  // A model reads the note before the data. Of a name that is both, the data would hide the note.
  const form: ResultForm = (members, { truncated, ...about }) => ({
    ...about,
    ...(isFlat ? members : { data: members }),
    ...(truncated && { truncated }),
  })
  return { tool, endpoint: apiEndpoint, names, form }
}

/** The parameters under the names of the tool. Each says its real name if it has another name. */
function inputSchemaOf(
  { properties, required, ...others }: Record<string, unknown>,
  names: ReadonlyMap<string, string>,
  own: Record<string, unknown>,
): Tool['inputSchema'] {
  const inTool = new Map([...names].map(([name, parameter]) => [parameter, name]))
  const renamed = Object.entries(Object(properties)).map(([parameter, schema]): [string, unknown] => {
    const name = inTool.get(parameter) ?? parameter
    if (name === parameter) return [name, schema]
    const { description } = Object(schema)
    return [name, { ...Object(schema), description: [description, `Sent as ${parameter}.`].filter(Boolean).join(' ') }]
  })
  return {
    ...others,
    type: 'object',
    properties: Object({ ...Object.fromEntries(renamed), ...own }),
    ...(Array.isArray(required) ? { required: required.map((parameter) => inTool.get(parameter) ?? parameter) } : {}),
  }
}

/**
 * The members by which the tool of an endpoint takes a part of its data: the members whose
 * names no parameter of the endpoint has, also as an alias.
 */
function selectionOf({ declaration: endpoint, byName }: ApiEndpoint): Record<string, unknown> {
  const { fields, limit } = Object(objectSchema(SelectionSchema).properties)
  const offered = { fields, ...(hasTopList(endpoint.data) ? { limit } : {}) }
  return Object.fromEntries(Object.entries(offered).filter(([name]) => !byName.has(name)))
}

/** A schema in the document's form, without names: each tool's schema stands alone. */
export function objectSchema(schema: unknown): { type: 'object'; [keyword: string]: unknown } {
  return { ...toDocumentSchema(schema, new Map()), type: 'object' }
}

/** A schema that any part of the data fits. */
function withoutRequired<Schema>(schema: Schema): Schema {
  if (Array.isArray(schema)) return schema.map(withoutRequired) as Schema
  if (typeof schema !== 'object' || schema === null) return schema
  const kept = Object.entries(schema).filter(([keyword, value]) => keyword !== 'required' || !Array.isArray(value))
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, withoutRequired(value)])) as Schema
}
