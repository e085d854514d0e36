import type { CallToolResult, Tool, ToolAnnotations } from '@modelcontextprotocol/server'
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

/**
 * Hints for clients that ask their users before they run a tool: calls only read, and they reach
 * outside systems.
 */
export const CALL_HINTS: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: true,
}

/**
 * Tells Claude Code to show results up to this length to the model. It writes longer results to a
 * file, by default above 50,000 characters. The value is the limit of our results, with room for
 * `_meta` and the text around them.
 */
export const DATA_META = { 'anthropic/maxResultSizeChars': 60_000 }

/**
 * The hints for calls of one endpoint. `destructiveHint` is always stated, because clients assume
 * true if it is absent.
 */
function hintsOf({ declaration: { effect = 'read', isDestructive = true } }: ApiEndpoint): ToolAnnotations {
  if (effect === 'read') return CALL_HINTS
  return {
    readOnlyHint: false,
    destructiveHint: isDestructive,
    idempotentHint: effect === 'repeatable',
    openWorldHint: true,
  }
}

/** The tool of one endpoint. */
export interface EndpointTool {
  tool: Tool
  endpoint: ApiEndpoint
  /** The endpoint's parameter for each argument of the tool. */
  names: ReadonlyMap<string, string>
  form: ResultForm
}

/**
 * Members that the output schema of every tool has. The members of `truncated` are not declared,
 * because the hint in it says what they mean.
 */
const ABOUT = {
  ...Object(objectSchema(Type.Object(About)).properties),
  truncated: { type: 'object' },
}

type Tools = ReadonlyMap<string, EndpointTool>

/** Tools are made from an upstream's file, which does not change while a process runs. */
const toolsOf = new WeakMap<Api, Tools>()

/**
 * The tools of one API: one for each endpoint, typed by the schemas that validate calls and
 * answers.
 */
export function apiTools(api: Api): Tools {
  const known = toolsOf.get(api)
  if (known) return known
  const entries = [...api.endpoints.values()].map((endpoint) => endpointTool(api, endpoint))
  const tools = new Map(entries.map((entry) => [entry.tool.name, entry]))
  toolsOf.set(api, tools)
  return tools
}

/**
 * Runs the tool of one endpoint.
 *
 * @throws GatewayError INVALID_PARAMETER for `fields` that the data do not have, or a wrong `limit`
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
  if (Object.keys(parameters).length < others.length)
    throw invalidArguments('A parameter is given twice: by the name of its argument and by its own name.')
  return await callAsTool(send, { api, endpoint, parameters, selection }, form)
}

function endpointTool({ slug, upstream }: Api, apiEndpoint: ApiEndpoint): EndpointTool {
  const { path, declaration: endpoint } = apiEndpoint
  const { attribution, url } = upstream.terms
  // Some sources require that a gateway for models links to their terms.
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
  // The note comes before the data, because models read in order. If the data have a member of the
  // same name, they are nested, because the member would hide the note.
  const form: ResultForm = (members, { truncated, ...about }) => ({
    ...about,
    ...(isFlat ? members : { data: members }),
    ...(truncated && { truncated }),
  })
  return { tool, endpoint: apiEndpoint, names, form }
}

/**
 * The input schema: the parameters under the names of the tool's arguments. If a parameter has
 * another name, the description says so.
 */
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
 * Arguments with which a tool returns only a part of the data. An argument is left out if a
 * parameter of the endpoint has the same name or alias.
 */
function selectionOf({ declaration: endpoint, byName }: ApiEndpoint): Record<string, unknown> {
  const { fields, limit } = Object(objectSchema(SelectionSchema).properties)
  const offered = { fields, ...(hasTopList(endpoint.data) ? { limit } : {}) }
  return Object.fromEntries(Object.entries(offered).filter(([name]) => !byName.has(name)))
}

/** A schema without references, because the schema of each tool must be complete. */
export function objectSchema(schema: unknown): { type: 'object'; [keyword: string]: unknown } {
  return { ...toDocumentSchema(schema, new Map()), type: 'object' }
}

/** A variant of a schema without required members, so that any part of the data fits. */
function withoutRequired<Schema>(schema: Schema): Schema {
  if (Array.isArray(schema)) return schema.map(withoutRequired) as Schema
  if (typeof schema !== 'object' || schema === null) return schema
  const kept = Object.entries(schema).filter(([keyword, value]) => keyword !== 'required' || !Array.isArray(value))
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, withoutRequired(value)])) as Schema
}
