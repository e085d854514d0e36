import type { TObject } from 'typebox'
import type { Endpoint } from '../endpoint.ts'
import { isObject } from '../json.ts'
import { lifetime } from '../lifetimes.ts'
import { jsonMedia, mediaTypeOf, readAnswers, refusalRules, toData } from './answers.ts'
import { type ChosenScheme, needsKey } from './credential.ts'
import { exampleParameters } from './example-parameters.ts'
import type { FoundOperation } from './find-operations.ts'
import { NotOffered } from './not-offered.ts'
import { BODY, isOwnHeader, type MappedParameter, readParameters, type SentByGateway } from './parameters.ts'
import type { Path } from './places.ts'
import type { Located, OpenApiDocument } from './references.ts'
import { type MappedBody, requestOf } from './request.ts'
import type { Schema } from './schema-keywords.ts'
import type { SchemaReader } from './schemas.ts'
import type { OperationSettings, RootSettings } from './settings.ts'
import { asSentence, kebab, shortened } from './words.ts'

/** Most operations of one document that are offered. */
export const OPERATIONS_MAX = 200

const DESCRIPTION_MAX = 400

/** Longest name of an MCP tool that clients accept, including the slug. */
const TOOL_NAME_MAX = 64

/** An operation, offered as an endpoint of the catalog. */
export interface OfferedOperation {
  endpointPath: string
  endpoint: Endpoint
  operationId: string | undefined
  needsKey: boolean
  path: Path
}

/** @returns undefined if the operation is left out, which is reported */
export function offerOperation(
  { document, schemas, slug, settings, scheme }: MappingDeps,
  found: FoundOperation,
): OfferedOperation | undefined {
  const { operation } = found
  try {
    return mapOperation({ document, schemas, slug, settings, scheme }, found)
  } catch (error) {
    if (!(error instanceof NotOffered)) throw error
    document.findings.leaveOut(
      error.path.length === 0 ? operation.path : error.path,
      `The operation is left out: ${error.message}.`,
    )
    return undefined
  }
}

export interface MappingDeps {
  document: OpenApiDocument
  schemas: SchemaReader
  slug: string
  settings: RootSettings
  scheme: ChosenScheme | undefined
}

function mapOperation(
  { document, schemas, slug, settings: root, scheme }: MappingDeps,
  found: FoundOperation,
): OfferedOperation {
  const { method, template, pathItem, operation, settings } = found
  const effect = effectOf(found)
  const endpointPath = `/${nameOf(slug, found)}`
  checkServers(document, found)
  const isKeyNeeded = needsKey(document, operation, scheme)
  const sent: SentByGateway[] = scheme ? [scheme.credential] : []
  if (settings.idempotencyHeader !== undefined)
    sent.push({ in: 'header', name: settings.idempotencyHeader.toLowerCase() })
  const parameters = readParameters(document, schemas, { pathItem, operation, sent })
  checkTemplate(template, parameters, operation)
  const body = readBody(document, schemas, found)
  const answers = readAnswers(document, schemas, operation)
  const parametersSchema = toParametersSchema(parameters, body)
  const { summary, description, operationId, deprecated } = Object(operation.value)
  const words = [deprecated === true && 'Deprecated', summary, description]
    .filter((text) => typeof text === 'string')
    .join(': ')
  const given = exampleParameters(document, { parameters, body })
  const { errorMessage, strict, idempotencyHeader, destructive } = settings
  const endpoint: Endpoint = {
    description: asSentence(shortened(words, DESCRIPTION_MAX)) || `${method} ${template}`,
    parameters: parametersSchema,
    data: answers.data as unknown as TObject,
    ...(effect === 'read' ? {} : { effect, isDestructive: destructive ?? true }),
    ...(idempotencyHeader === undefined ? {} : { idempotencyHeader: idempotencyHeader.toLowerCase() }),
    ...(body ? { bodyBytesMax: root.requestBytesMax ?? REQUEST_BYTES_MAX } : {}),
    ...(strict === true ? {} : { isLenient: true }),
    ...cacheOf(document, { settings, operation, effect }),
    acceptStatuses: answers.accepted,
    request: (values) => requestOf({ method, template, parameters, body, accept: answers.accept }, values),
    ...refusalRules(answers, { errorMessage, isOfOneThing: parameters.some(({ in: where }) => where === 'path') }),
    map: ({ body: answer }) => toData(answer),
    example: {
      parameters: given,
      response: answers.example.response,
      data: toData(answers.example.response),
      origin: answers.example.origin,
    },
  }
  return {
    endpointPath,
    endpoint,
    operationId: typeof operationId === 'string' ? operationId : undefined,
    needsKey: isKeyNeeded,
    path: operation.path,
  }
}

const REQUEST_BYTES_MAX = 16_384

/**
 * The effect of an operation. Without a setting a write is not offered, because the document alone
 * cannot say that it is safe.
 * @throws NotOffered
 */
function effectOf({ method, operation, settings }: FoundOperation): NonNullable<Endpoint['effect']> {
  const { effect, idempotencyHeader } = settings
  const header = idempotencyHeader?.toLowerCase() ?? ''
  if (header === 'authorization' || isOwnHeader(header)) {
    throw new NotOffered(
      [...operation.path, 'x-gateway', 'idempotencyHeader'],
      'its x-gateway.idempotencyHeader is a header that controls the connection, authentication or forwarding; choose another header',
    )
  }
  if (effect !== undefined) return effect === 'once' && idempotencyHeader !== undefined ? 'repeatable' : effect
  if (method === 'GET') return 'read'
  throw new NotOffered(
    operation.path,
    `its method is ${method} and its effect is not stated; set x-gateway.effect to read, repeatable or once`,
  )
}

/**
 * Checks that the operation uses the API's base address.
 * @throws NotOffered if it has a server of its own
 */
function checkServers(document: OpenApiDocument, { pathItem, operation }: FoundOperation): void {
  const first = ({ value }: Located): unknown => Object(Array.isArray(value) ? value[0] : undefined).url
  const ofAll = first(document.member({ value: document.root, path: [] }, 'servers'))
  for (const holder of [operation, pathItem]) {
    const servers = document.member(holder, 'servers')
    if (first(servers) === undefined) continue
    if (first(servers) === ofAll) return
    throw new NotOffered(
      servers.path,
      'its server differs from the server of the document, and all operations of an API must have the same server; move the operation to a file of its own',
    )
  }
}

function nameOf(slug: string, { method, template, operation, settings }: FoundOperation): string {
  const { operationId } = Object(operation.value)
  const named = typeof operationId === 'string' ? kebab(operationId) : ''
  const name = settings.name ?? (named === '' ? kebab(`${method} ${template}`) : named)
  if (name === '')
    throw new NotOffered(operation.path, 'no name can be made from its operationId or path; set x-gateway.name')
  const isTooLong = slug.length + 1 + name.length > TOOL_NAME_MAX
  if (!isTooLong) return name
  throw new NotOffered(
    operation.path,
    `its name ${name.slice(0, 80)} is too long: slug and name together may have at most ${TOOL_NAME_MAX - 1} characters; set x-gateway.name`,
  )
}

/**
 * Checks that each part of the path in braces is a declared path parameter, and each path parameter
 * has its part.
 *
 * @throws NotOffered
 */
function checkTemplate(template: string, parameters: MappedParameter[], operation: Located): void {
  const inPath = new Set(parameters.filter(({ in: place }) => place === 'path').map(({ name }) => name))
  const named = [...template.matchAll(/\{([^{}/]*)\}/g)].map(([, name = '']) => name)
  const undeclared = named.find((name) => !inPath.has(name))
  if (undeclared !== undefined)
    throw new NotOffered(
      operation.path,
      `its path has {${undeclared.slice(0, 60)}}, and no path parameter of this name is declared`,
    )
  const unused = [...inPath].find((name) => !named.includes(name))
  if (unused !== undefined)
    throw new NotOffered(operation.path, `it declares the path parameter ${unused}, and its path has no {${unused}}`)
}

/** @throws NotOffered if the operation needs a body that is not JSON */
function readBody(
  document: OpenApiDocument,
  schemas: SchemaReader,
  { method, operation }: FoundOperation,
): MappedBody | undefined {
  const requestBody = document.member(operation, 'requestBody')
  if (!isObject(requestBody.value)) return undefined
  const required = requestBody.value.required === true
  const media = jsonMedia(document, requestBody)
  if (!media) {
    const types = Object.keys(Object(requestBody.value.content)).join(', ').slice(0, 100)
    const reason =
      types === '' ? 'its media type is not stated' : `its media type is ${types}, and the gateway sends only JSON`
    // Many documents forget to mark the body of a write as required. Without its body the write
    // would do something else.
    if (required || method !== 'GET') throw new NotOffered(requestBody.path, `its body cannot be sent: ${reason}`)
    document.findings.leaveOut(requestBody.path, `The body is left out: ${reason}.`)
    return undefined
  }
  const { schema } = Object(media.value)
  const read = schema === undefined ? {} : schemas.read({ value: schema, path: [...media.path, 'schema'] }, 'request')
  return { schema: read, required, mediaType: mediaTypeOf(media), media }
}

function toParametersSchema(parameters: MappedParameter[], body: MappedBody | undefined): TObject {
  const properties: Record<string, Schema> = {}
  for (const { name, schema } of parameters) properties[name] = schema
  const required = parameters.flatMap((parameter) => (parameter.required ? [parameter.name] : []))
  if (body) {
    const { description, ...schema } = body.schema
    properties[BODY] = { ...schema, description: String(description ?? 'Body of the request') }
    if (body.required) required.push(BODY)
  }
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required }) } as unknown as TObject
}

function cacheOf(
  { findings }: OpenApiDocument,
  {
    settings: { cacheSeconds = 0, notFoundSeconds, perCaller },
    operation,
    effect,
  }: { settings: OperationSettings; operation: Located; effect: NonNullable<Endpoint['effect']> },
): Pick<Endpoint, 'cache'> {
  const isStored = cacheSeconds > 0 || Boolean(notFoundSeconds)
  if (effect !== 'read' && (isStored || perCaller)) {
    findings.leaveOut(
      [...operation.path, 'x-gateway'],
      'The settings cacheSeconds, notFoundSeconds and perCaller are left out: the gateway does not store answers of an operation that changes something.',
    )
  }
  if (effect !== 'read' || !isStored) return {}
  return {
    cache: {
      seconds: cacheSeconds,
      ...(cacheSeconds > 0 ? { staleIfErrorSeconds: Math.min(cacheSeconds, lifetime.day) } : {}),
      ...(notFoundSeconds ? { notFoundSeconds } : {}),
      ...(perCaller ? { perCaller } : {}),
    },
  }
}
