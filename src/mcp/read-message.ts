import { ProtocolErrorCode, specTypeSchemas } from '@modelcontextprotocol/server'
import Type from 'typebox'
import { isObject } from '../catalog/json.ts'
import { nearestName } from '../catalog/nearest-name.ts'
import { GatewayError } from '../errors.ts'
import { isName, sentence } from '../http/request/violation-words.ts'
import { adaptTo, asWritten } from './adapt-arguments.ts'

/** Why a message is refused before its method is called. */
export interface MessageError {
  code: ProtocolErrorCode
  message: string
}

/**
 * The arguments of a tool may be null, blank text, or JSON text, because clients write them so.
 * Their members are kept without a copy, because a copy would lose the spelling of numbers; the
 * schema of the tool checks them.
 */
const CallParams = Type.Object({ arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown())) })

/**
 * The protocol library's schemas of the methods that the servers answer. All methods of tasks have
 * the same single parameter.
 */
const REQUESTS = {
  initialize: specTypeSchemas.InitializeRequest,
  ping: specTypeSchemas.PingRequest,
  'tools/list': specTypeSchemas.ListToolsRequest,
  'tools/call': specTypeSchemas.CallToolRequest,
  'resources/list': specTypeSchemas.ListResourcesRequest,
  'resources/templates/list': specTypeSchemas.ListResourceTemplatesRequest,
  'resources/read': specTypeSchemas.ReadResourceRequest,
  'tasks/get': specTypeSchemas.GetTaskRequest,
  'tasks/cancel': specTypeSchemas.GetTaskRequest,
  'tasks/update': specTypeSchemas.GetTaskRequest,
}

/** The members that a message of JSON-RPC 2.0 has besides its parameters. */
const MEMBERS = ['jsonrpc', 'id', 'method', 'result', 'error']

/**
 * Brings the parameters of a message into the form that its method expects: null members count as
 * absent, at any depth. All methods need this, because the library would answer wrong parameters
 * with the raw output of its validator. Members that JSON-RPC does not have are left out: the
 * library would refuse the message, although JSON-RPC does not forbid them.
 */
export function readMessage(body: unknown): { message: unknown } | { error: MessageError } {
  if (!isObject(body)) return { message: body }
  const { params: given } = body
  const members = Object.fromEntries(Object.entries(body).filter(([name]) => MEMBERS.includes(name)))
  if (given === undefined || given === null) return checked(members)
  try {
    return checked({ ...members, params: isObject(given) ? readParams(given) : given })
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { error: { code: ProtocolErrorCode.InvalidParams, message: error.message } }
  }
}

function readParams({ arguments: given, ...params }: Record<string, unknown>): unknown {
  const read = withoutNulls(params)
  const { arguments: adapted } = Object(adaptTo(CallParams, { arguments: given }))
  if (adapted === undefined) return read
  return { ...Object(read), arguments: isObject(adapted) ? asWritten(adapted) : adapted }
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isObject(value)) return value
  const members = Object.entries(value).filter(([, member]) => member !== null)
  return Object.fromEntries(members.map(([name, member]) => [name, withoutNulls(member)]))
}

function checked(message: Record<string, unknown>): { message: unknown } | { error: MessageError } {
  const { id, method, params = {} } = message
  if (id !== undefined && !isId(id)) return invalidRequest('Member id must be a string or a whole number.')
  // A notification gets no answer, so an error in it cannot be reported.
  if (id === undefined) return { message }
  if (typeof method !== 'string') {
    const isAnswer = message.result !== undefined || message.error !== undefined
    return isAnswer ? { message } : invalidRequest('Member method is required.')
  }
  // The library answers that it does not know the method, but only if it can read the parameters.
  if (!Object.hasOwn(REQUESTS, method)) return { message: isObject(params) ? message : { ...message, params: {} } }
  const schema = REQUESTS[method as keyof typeof REQUESTS]
  const expected = method.startsWith('tasks/') ? 'tasks/get' : method
  const result = schema['~standard'].validate({ method: expected, params })
  const [issue] = result instanceof Promise ? [] : (result.issues ?? [])
  return issue ? { error: { code: ProtocolErrorCode.InvalidParams, message: words(issue, params) } } : { message }
}

/** Whether a value can be the id of a request. */
export const isId = (id: unknown): boolean => typeof id === 'string' || Number.isInteger(id)

function invalidRequest(message: string): { error: MessageError } {
  return { error: { code: ProtocolErrorCode.InvalidRequest, message } }
}

interface Issue {
  message: string
  path?: ReadonlyArray<PropertyKey | { key: PropertyKey }> | undefined
}

/** Turns an issue of the protocol's schema into a sentence that names the member. */
function words({ message, path = [] }: Issue, params: unknown): string {
  const steps = path.map((step) => String(typeof step === 'object' ? step.key : step)).slice(1)
  const name = steps.join('.')
  if (name === '') return 'The parameters must be a JSON object.'
  const shown = isName(name) ? name : 'of the parameters'
  const holder = steps.slice(0, -1).reduce<unknown>((value, step) => Object(value)[step], params)
  const last = steps.at(-1) ?? ''
  if (Object(holder)[last] === undefined) {
    const given = Object.keys(Object(holder)).filter((member) => isName(member) && !KNOWN.has(member))
    const meant = nearestName(last, given)
    return sentence(`Argument ${shown} is required${meant === undefined ? '' : `; ${meant} is not known`}`)
  }
  const [reason = ''] = message.replace(/^Invalid input(: )?/, '').split('\n', 1)
  // JSON has no records.
  const why = reason === '' ? '' : `: ${reason.replace('expected record', 'expected object')}`
  return sentence(`Argument ${shown} is invalid${why}`)
}

/** Members that are never the misspelling of another member. */
const KNOWN = new Set(['_meta', 'arguments', 'name', 'uri', 'taskId', 'cursor'])
