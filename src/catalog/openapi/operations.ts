import type { TObject } from 'typebox'
import { isObject } from '../json.ts'
import { lifetime } from '../lifetimes.ts'
import type { Endpoint } from '../upstream.ts'
import { jsonMedia, readAnswers, refusalRules, toData } from './answers.ts'
import { type ChosenScheme, needsKey } from './credential.ts'
import { exampleParameters } from './example-parameters.ts'
import { BODY, type MappedParameter, NotOffered, readParameters } from './parameters.ts'
import type { Path } from './places.ts'
import type { Located, OpenApiDocument } from './references.ts'
import { type MappedBody, type Method, requestOf } from './request.ts'
import type { Schema, SchemaReader } from './schemas.ts'
import { type OperationSettings, type RootSettings, readOperationSettings } from './settings.ts'
import { kebab, shortened } from './words.ts'

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** Operations of one document that are offered. */
export const OPERATIONS_MAX = 200

const DESCRIPTION_MAX = 400

/** Longest name of a tool that clients of the Model Context Protocol take, the slug included. */
const TOOL_NAME_MAX = 64

/** An operation of the document, before it is known whether it can be offered. */
export interface FoundOperation {
  method: Method
  template: string
  pathItem: Located
  operation: Located
  settings: OperationSettings
}

/** An operation as an endpoint of the catalog. */
export interface OfferedOperation {
  endpointPath: string
  endpoint: Endpoint
  operationId: string | undefined
  needsKey: boolean
  path: Path
}

/** All operations of the document but those that its settings skip, in its order. */
export function findOperations(document: OpenApiDocument): FoundOperation[] {
  const { findings } = document
  const paths = document.member({ value: document.root, path: [] }, 'paths')
  return document.members(paths).flatMap(([template, pathItem]) => {
    const problem = templateProblem(template)
    if (problem !== undefined) {
      findings.error(['paths', template], problem)
      return []
    }
    return METHODS.flatMap((name): FoundOperation[] => {
      const operation = document.member(pathItem, name)
      if (!isObject(operation.value)) return []
      const settings = readOperationSettings(document.member(operation, 'x-gateway'), findings)
      if (!settings) return []
      if (settings.skip) {
        findings.leaveOut(operation.path, 'The operation is left out: x-gateway.skip says so.')
        return []
      }
      return [{ method: name.toUpperCase() as Method, template, pathItem, operation, settings }]
    })
  })
}

/** A path that stays below the base address whatever its parameters are. */
function templateProblem(template: string): string | undefined {
  if (!template.startsWith('/')) return 'A path must begin with a slash.'
  const literal = template.replace(/\{[^{}/]*\}/g, 'x')
  if (/[{}]/.test(literal)) return 'The braces of the path do not belong together.'
  if (/[?#]/.test(literal)) return 'A path must have no query and no fragment: declare parameters instead.'
  if (!/^[\w.~!$&'()*+,;=:@%/-]*$/.test(literal)) return 'The path has characters that must be percent-encoded.'
  const segments = literal.split('/').slice(1)
  if (segments.some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))) return 'A path must have no segments . or ..'
  if (segments.slice(0, -1).includes('')) return 'A path must have no empty segment.'
  return undefined
}

/** @returns undefined for an operation that is left out, after that is reported */
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
  const isKeyNeeded = needsKey(document, operation, scheme)
  const { in: place, name } = scheme?.credential ?? {}
  const parameters = readParameters(document, schemas, {
    pathItem,
    operation,
    credential: place === undefined ? undefined : place === 'header' ? name?.toLowerCase() : name,
  })
  checkTemplate(template, parameters, operation)
  const body = readBody(document, schemas, operation)
  const answers = readAnswers(document, schemas, operation)
  const parametersSchema = toParametersSchema(parameters, body)
  const { summary, description, operationId } = Object(operation.value)
  const words = [summary, description].filter((text) => typeof text === 'string').join(': ')
  const given = exampleParameters(document, { pathItem, operation, parameters, body })
  const { errorMessage, strict, idempotencyHeader, destructive } = settings
  const endpoint: Endpoint = {
    description: shortened(words, DESCRIPTION_MAX) || `${method} ${template}`,
    parameters: parametersSchema,
    data: answers.data as unknown as TObject,
    ...(effect === 'read' ? {} : { effect, isDestructive: destructive ?? true }),
    ...(idempotencyHeader === undefined ? {} : { idempotencyHeader: idempotencyHeader.toLowerCase() }),
    ...(body ? { bodyBytesMax: root.requestBytesMax ?? REQUEST_BYTES_MAX } : {}),
    ...(strict === true ? {} : { isLenient: true }),
    ...cacheOf(settings, effect),
    acceptStatuses: answers.accepted,
    request: (values) => requestOf({ method, template, parameters, body }, values),
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

/** What the operation does; the document alone never makes a write callable. @throws NotOffered */
function effectOf({ method, operation, settings }: FoundOperation): NonNullable<Endpoint['effect']> {
  const { effect, idempotencyHeader } = settings
  if (effect !== undefined) return effect === 'once' && idempotencyHeader !== undefined ? 'repeatable' : effect
  if (method === 'GET') return 'read'
  throw new NotOffered(
    operation.path,
    `it is a ${method} whose effect is not stated; set x-gateway.effect to read, repeatable or once`,
  )
}

function nameOf(slug: string, { method, template, operation, settings }: FoundOperation): string {
  const { operationId } = Object(operation.value)
  const named = typeof operationId === 'string' ? kebab(operationId) : ''
  const name = settings.name ?? (named === '' ? kebab(`${method} ${template}`) : named)
  if (name === '') throw new NotOffered(operation.path, 'it has no name; set x-gateway.name')
  const isTooLong = slug.length + 1 + name.length > TOOL_NAME_MAX
  if (!isTooLong) return name
  throw new NotOffered(
    operation.path,
    `its name ${name.slice(0, 80)} is too long for a tool with the slug before it; set x-gateway.name`,
  )
}

/**
 * Each part of a path in braces is a declared parameter of the path, and the other way round.
 *
 * @throws NotOffered
 */
function checkTemplate(template: string, parameters: MappedParameter[], operation: Located): void {
  const inPath = new Set(parameters.filter(({ in: place }) => place === 'path').map(({ name }) => name))
  const named = [...template.matchAll(/\{([^{}/]*)\}/g)].map(([, name = '']) => name)
  const undeclared = named.find((name) => !inPath.has(name))
  if (undeclared !== undefined)
    throw new NotOffered(operation.path, `it declares no parameter ${undeclared.slice(0, 60)} of its path`)
  const unused = [...inPath].find((name) => !named.includes(name))
  if (unused !== undefined) throw new NotOffered(operation.path, `its path has no place for the parameter ${unused}`)
}

/** @throws NotOffered when the body is required and is no JSON */
function readBody(document: OpenApiDocument, schemas: SchemaReader, operation: Located): MappedBody | undefined {
  const requestBody = document.member(operation, 'requestBody')
  if (!isObject(requestBody.value)) return undefined
  const required = requestBody.value.required === true
  const media = jsonMedia(document, requestBody)
  if (!media) {
    if (required) throw new NotOffered(requestBody.path, 'its body is no JSON')
    document.findings.leaveOut(requestBody.path, 'The body is left out: it is no JSON.')
    return undefined
  }
  const { schema } = Object(media.value)
  const read = schema === undefined ? {} : schemas.read({ value: schema, path: [...media.path, 'schema'] }, 'request')
  const type = String(media.path.at(-1))
  return { schema: read, required, mediaType: type.includes('*') ? 'application/json' : type, media }
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
  { cacheSeconds = 0, notFoundSeconds, perCaller }: OperationSettings,
  effect: NonNullable<Endpoint['effect']>,
): Pick<Endpoint, 'cache'> {
  if (effect !== 'read' || (cacheSeconds === 0 && !notFoundSeconds)) return {}
  return {
    cache: {
      seconds: cacheSeconds,
      ...(cacheSeconds > 0 ? { staleIfErrorSeconds: Math.min(cacheSeconds, lifetime.day) } : {}),
      ...(notFoundSeconds ? { notFoundSeconds } : {}),
      ...(perCaller ? { perCaller } : {}),
    },
  }
}
