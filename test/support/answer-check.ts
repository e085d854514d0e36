import { hash } from 'node:crypto'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { LRUCache } from 'lru-cache'

/** An answer and the request that it answers. */
export interface CheckedAnswer {
  /** Address of the API node. */
  node: string
  /** First API node of the same gateway, whose nodes have the same document. Default: `node`. */
  gateway?: string | undefined
  method: string
  /** The path with its query. */
  path: string
  status: number
  contentType: string
  text: string
}

interface Response {
  $ref?: string
  content?: Record<string, { schema?: object; examples?: Record<string, unknown> }>
}
interface Operation {
  responses: Record<string, Response>
}
type PathItem = Record<string, Operation>
/** The parts of the OpenAPI document that answers are compared with. */
interface OpenApiDocument {
  paths: Record<string, PathItem>
  components: { responses: Record<string, Response>; schemas: Record<string, object> }
}
interface Described {
  paths: Record<string, PathItem>
  responses: Record<string, Response>
  schemas: Record<string, object>
  templates: { pattern: RegExp; path: string }[]
  ajv: Ajv2020
  /** Names of the schemas that the validator knows. */
  known: Set<string>
  validators: Map<object, ValidateFunction>
}

/** Statuses with which the gateway may refuse a request that matches no route of the document. */
const REFUSALS = new Set([400, 401, 404, 405, 408, 413, 414, 415, 431, 503])

/** Statuses that the `default` answer of an operation describes. */
const TRANSPORT = new Set([408, 413, 414, 415, 431])

const GENERIC_CALL = '/v1/call/{apiSlug}/{endpoint}'
const RAW_TYPE = 'application/vnd.upstream+json'

const PROBLEM = { $ref: '#/components/schemas/Problem' }

const REFUSAL = {
  Error: { $ref: '#/components/schemas/Error' },
  CallError: { $ref: '#/components/schemas/CallError' },
}

/**
 * Most documents that a process stores. If files share a process, each of them starts a gateway.
 */
const KEPT_MAX = 5

/** By the address of the first node of a gateway. */
const described = new LRUCache<string, Promise<Described>>({ max: KEPT_MAX })

/**
 * By the hash of the text without the public address, because most gateways have the same document,
 * whose schemas are then compiled once.
 */
const documents = new LRUCache<string, Described>({ max: KEPT_MAX })

/**
 * Checks an answer against the gateway's own OpenAPI document: status, media type, body and error
 * code.
 *
 * @throws Error that says what the document does not allow
 */
export async function checkAnswer(answer: CheckedAnswer): Promise<void> {
  // Redirects to https and revalidations are answered before any route is chosen.
  if (answer.status === 308 || answer.status === 304 || answer.method === 'HEAD') return
  const gateway = answer.gateway ?? answer.node
  const loading = described.get(gateway) ?? loadDocument(answer.node)
  described.set(gateway, loading)
  const document = await loading.catch((error) => {
    described.delete(gateway)
    throw error
  })
  const path = decodePath(answer.path)
  const item = findPath(document, path)
  const method = answer.method.toLowerCase()
  // The path of an endpoint has only GET; the generic path describes POST.
  const isCall = path.startsWith('/v1/call/')
  const operation =
    (item && document.paths[item]?.[method]) ?? (isCall && item ? document.paths[GENERIC_CALL]?.[method] : undefined)
  if (!operation) return checkRefusal(document, path, answer)
  const declared = declaredResponse(document, operation, path, answer)
  const where = `${answer.method} ${item} ${answer.status}`
  if (!declared) throw refused(answer, `the document has no ${where}`)
  checkResponse(document, where, declared, answer)
}

/**
 * If the document has a path for an endpoint, this path describes only the endpoint's own parts.
 * The generic path describes the options of a call.
 */
function declaredResponse(
  { paths, responses }: Described,
  operation: Operation,
  path: string,
  { status, method, contentType }: CheckedAnswer,
): Response | undefined {
  const resolve = (response: Response | undefined): Response | undefined =>
    response?.$ref ? responses[response.$ref.split('/').at(-1) ?? ''] : response
  const own = resolve(operation.responses[status])
  const generic = resolve(paths[GENERIC_CALL]?.[method.toLowerCase()]?.responses[status])
  if (path.startsWith('/v1/call/') && generic && (!own || contentType.startsWith(RAW_TYPE))) return generic
  return own ?? (TRANSPORT.has(status) ? resolve(operation.responses.default) : undefined)
}

function checkResponse(document: Described, where: string, { content }: Response, answer: CheckedAnswer): void {
  const [type = ''] = answer.contentType.split(';', 1)
  if (type === 'application/problem+json') {
    validate(document, where, PROBLEM, JSON.parse(answer.text), answer)
    return
  }
  if (!content) {
    if (answer.text !== '') throw refused(answer, `${where} has no body in the document`)
    return
  }
  const media = content[type]
  if (!media) throw refused(answer, `${where} is ${Object.keys(content).join(', ')} in the document, not ${type}`)
  if (type !== 'application/json' || !media.schema) return
  const body: unknown = JSON.parse(answer.text)
  checkCode(where, media.examples, body, answer)
  validate(document, where, media.schema, body, answer)
}

/** Checks that the document declares the code of the answer for its route. */
function checkCode(where: string, examples: Record<string, unknown> = {}, body: unknown, answer: CheckedAnswer): void {
  if (answer.status < 400) return
  const { code, error } = Object(body)
  const given: unknown = code ?? error?.code
  // Numbers are JSON-RPC's own codes, which the protocol defines.
  if (given === undefined || typeof given === 'number') return
  const codes = Object.keys(examples).map((name) => name.replace(/^call\./, ''))
  if (!codes.includes(String(given)))
    throw refused(answer, `${where} has ${codes.join(', ')} in the document, not ${given}: declare it in config.errors`)
}

function checkRefusal(document: Described, path: string, answer: CheckedAnswer): void {
  if (!REFUSALS.has(answer.status)) throw refused(answer, 'the document has no such operation')
  const name = /^\/v1\/call(\/|$)/.test(path) ? 'CallError' : 'Error'
  validate(document, name, REFUSAL[name], JSON.parse(answer.text), answer)
}

function validate(document: Described, where: string, schema: object, body: unknown, answer: CheckedAnswer): void {
  const validator = document.validators.get(schema) ?? compile(document, schema)
  if (!validator(body)) throw refused(answer, `${where}: ${document.ajv.errorsText(validator.errors)}`)
}

const COMPONENT = '#/components/schemas/'

/** Compiles only the schemas that an answer needs, because the document has a thousand schemas. */
function compile(document: Described, schema: object): ValidateFunction {
  const validator = document.ajv.compile(standalone(document, schema))
  document.validators.set(schema, validator)
  return validator
}

/**
 * Makes a closed schema that refers to components by their names, and adds these names to the
 * validator.
 */
function standalone(document: Described, schema: object): object {
  const text = JSON.stringify(closeObjects(schema))
  for (const [, name = ''] of text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)) {
    const component = document.schemas[name]
    if (component === undefined || document.known.has(name)) continue
    // The name is known before the schema is read, because components may refer to each other in
    // circles.
    document.known.add(name)
    document.ajv.addSchema(standalone(document, component), name)
  }
  return JSON.parse(text.replaceAll(`"$ref":"${COMPONENT}`, '"$ref":"'))
}

function refused({ method, path, text }: CheckedAnswer, why: string): Error {
  return new Error(`the document does not allow this answer to ${method} ${path}: ${why}\n${text.slice(0, 500)}`)
}

function decodePath(path: string): string {
  const [bare = ''] = path.split('?', 1)
  try {
    return decodeURI(bare)
  } catch {
    return bare
  }
}

function findPath(document: Described, path: string): string | undefined {
  if (Object.hasOwn(document.paths, path)) return path
  return document.templates.find(({ pattern }) => pattern.test(path))?.path
}

async function loadDocument(node: string): Promise<Described> {
  // The request looks as if it came through a proxy, because a gateway whose public address is
  // HTTPS would redirect us there.
  const headers = { 'x-forwarded-proto': 'https', 'accept-encoding': 'identity' }
  const text = await (await fetch(`${node}/openapi.json`, { headers })).text()
  const [, address = ''] = /"servers":\[\{"url":"([^"]+)"/.exec(text) ?? []
  const key = hash('sha256', text.replaceAll(address, ''))
  const known = documents.get(key)
  if (known) return known
  const { paths, components }: OpenApiDocument = JSON.parse(text)
  // Another test checks whether the schemas of the document are valid.
  const ajv = new Ajv2020({ strict: false, validateSchema: false, meta: false })
  formats.default(ajv)
  const templates = Object.keys(paths)
    .filter((path) => path.includes('{'))
    .map((path) => ({ path, pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`) }))
  const { responses, schemas } = components
  const document = { paths, responses, schemas, templates, ajv, known: new Set<string>(), validators: new Map() }
  documents.set(key, document)
  return document
}

/**
 * Closes a schema, because an answer has the declared members and no others. The published schemas
 * stay open, because later versions may add members.
 */
function closeObjects(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closeObjects)
  if (typeof value !== 'object' || value === null) return value
  const closed = Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, closeObjects(inner)]))
  const { type, properties, additionalProperties } = closed
  return type === 'object' && properties && additionalProperties === undefined
    ? { ...closed, additionalProperties: false }
    : closed
}
