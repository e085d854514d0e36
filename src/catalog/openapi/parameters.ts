import { Check } from 'typebox/schema'
import { InvalidParameter, isParameterName } from '../parameter-values.ts'
import { decimal } from '../request-target.ts'
import { inTypeOf, statedExample } from './example-values.ts'
import { madeValue } from './made-value.ts'
import { NotOffered } from './not-offered.ts'
import { parameterSchema } from './parameter-schema.ts'
import type { Path } from './places.ts'
import type { Located, OpenApiDocument } from './references.ts'
import { DESCRIPTION_MAX, type Schema } from './schema-keywords.ts'
import type { SchemaReader } from './schemas.ts'
import { shortened } from './words.ts'

/** The parameter of a call that holds the body of the upstream's request. */
export const BODY = 'body'

export interface MappedParameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  schema: Schema
  /**
   * The separator of a list's items as it stands in the request; undefined: the parameter is
   * repeated for each item.
   */
  separator: string | undefined
  /** A value that fits the schema, preferably an example of the document. */
  example: { value: unknown; isStated: boolean }
  path: Path
}

/**
 * Header names for which OpenAPI ignores a parameter, because it describes these headers elsewhere
 * (OpenAPI 3.1, 4.8.12.1).
 */
const IGNORED_HEADERS = new Set(['accept', 'content-type', 'authorization'])

/**
 * Headers that no parameter may set: the gateway sets them, they belong to one connection, they say
 * where a request comes from, or they change the meaning of the request.
 */
const OWN_HEADERS: RegExp[] = [
  /^(?:host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|http2-settings|expect|via|alt-svc)$/,
  /^(?:forwarded|max-forwards|early-data|cookie2?|set-cookie2?|origin|referer|date|user-agent)$/,
  /^(?:range|if-.*|traceparent|tracestate|baggage|accept|accept-(?!language$).*)$/,
  /^(?:content|proxy|sec|access-control|x-forwarded|x-gateway|x-original|x-rewrite)-.*$/,
  /^(?:x-real-ip|(?:x-(?:cluster-)?|true-|fastly-)client-ip|cf-connecting-ip|x-(?:http-)?method(?:-override)?)$/,
]

/** Whether neither a parameter nor a setting may use this header name (in lower case). */
export const isOwnHeader = (name: string): boolean => OWN_HEADERS.some((pattern) => pattern.test(name))

const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/

/**
 * Joins the parameters of a path and of its operation. The operation's parameters win.
 *
 * @throws NotOffered
 */
export function readParameters(
  document: OpenApiDocument,
  schemas: SchemaReader,
  { pathItem, operation, sent }: { pathItem: Located; operation: Located; sent: readonly SentByGateway[] },
): MappedParameter[] {
  const parameters = [...declaredParameters(document, { pathItem, operation }).values()].flatMap((parameter) => {
    const name = nameIn(parameter)
    const { in: place } = Object(parameter.value)
    const leaveOut = (reason: string): [] => {
      document.findings.leaveOut(parameter.path, `The parameter ${name.slice(0, 60)} is left out: ${reason}.`)
      return []
    }
    if (sent.some((header) => header.in === place && header.name === name)) return leaveOut('the gateway sends it')
    if (place === 'header' && IGNORED_HEADERS.has(name)) return leaveOut('OpenAPI describes this header elsewhere')
    return readParameter(document, schemas, parameter) ?? []
  })
  const names = new Map<string, MappedParameter>()
  for (const parameter of parameters) {
    if (names.has(parameter.name))
      throw new NotOffered(parameter.path, `two of its parameters have the name ${parameter.name}`)
    if (parameter.name === BODY)
      throw new NotOffered(
        parameter.path,
        'it has a parameter of the name body, which the gateway uses for the body of the request',
      )
    names.set(parameter.name, parameter)
  }
  return parameters
}

/**
 * A header or query parameter that the gateway sends and no caller gives: the key, or the id of the
 * call.
 */
export interface SentByGateway {
  in: 'header' | 'query'
  /** In lower case for a header. */
  name: string
}

/** The name of a parameter; in lower case for a header, whose name may have any case. */
function nameIn({ value }: Located): string {
  const { name, in: place } = Object(value)
  return place === 'header' ? String(name).toLowerCase() : String(name)
}

/** The parameters of a path and of its operation, by place and name. */
function declaredParameters(
  document: OpenApiDocument,
  { pathItem, operation }: { pathItem: Located; operation: Located },
): Map<string, Located> {
  const declared = new Map<string, Located>()
  for (const holder of [pathItem, operation]) {
    const own = new Set<string>()
    for (const parameter of document.list(document.member(holder, 'parameters'), 'parameters')) {
      const key = `${parameter.value.in} ${nameIn(parameter)}`
      if (own.has(key))
        document.findings.leaveOut(parameter.path, 'An earlier parameter with the same place and name is left out.')
      own.add(key)
      declared.set(key, parameter)
    }
  }
  return declared
}

/**
 * @returns undefined for an optional parameter that cannot be offered; it is left out
 * @throws NotOffered for a required parameter that cannot be offered
 */
function readParameter(
  document: OpenApiDocument,
  schemas: SchemaReader,
  parameter: Located,
): MappedParameter | undefined {
  const { name, in: place, required, description, style, explode, content } = Object(parameter.value)
  const { path } = parameter
  const isRequired = required === true || place === 'path'
  const refuse = (reason: string): undefined => {
    const shown = typeof name === 'string' ? name.slice(0, 60) : 'without a name'
    if (isRequired) throw new NotOffered(path, `its required parameter ${shown} ${reason}`)
    document.findings.leaveOut(path, `The parameter ${shown} is left out: it ${reason}.`)
    return undefined
  }
  if (typeof name !== 'string' || !isParameterName(name) || name === 'prototype' || name in Object.prototype)
    return refuse('has no name, or a name that the gateway does not accept')
  if (place === 'cookie') return refuse('is a cookie')
  if (place !== 'path' && place !== 'query' && place !== 'header')
    return refuse('is not in the path, the query or a header')
  if (place === 'header' && (!HEADER_NAME.test(name) || isOwnHeader(name.toLowerCase()))) {
    return refuse('is a header that controls the connection, authentication or forwarding')
  }
  const separator = separatorOf({ place, style, explode })
  if (separator === null)
    return refuse(`has the style ${shortened(String(style), 40)}, which the gateway does not support`)
  if (document.member(parameter, 'schema').value === undefined)
    return refuse(content === undefined ? 'has no schema' : 'has content in place of a schema')
  const schema = parameterSchema(
    schemas.read({ value: Object(parameter.value).schema, path: [...path, 'schema'] }, 'request'),
  )
  if (!schema) return refuse('has a schema that allows more than a plain value or a list of plain values')
  if (typeof description === 'string') {
    const { description: ofSchema = '' } = schema
    const words = shortened(description, DESCRIPTION_MAX)
    const form = /(?:Format|Pattern): .*$/.exec(String(ofSchema))?.[0] ?? ''
    schema.description = [words, form].filter(Boolean).join(' ')
  }
  if (place === 'path' && schema.type === 'string') schema.minLength = Math.max(1, Number(schema.minLength ?? 1))
  // A default that cannot be sent would make every call without the parameter fail.
  const problem = schema.default === undefined ? undefined : defaultProblem({ name, in: place }, schema)
  if (problem !== undefined) {
    document.findings.leaveOut([...path, 'schema'], `The default is left out: ${problem}.`)
    delete schema.default
  }
  const example = exampleFor(document, parameter, schema)
  if (!example) return refuse('has a schema for which the gateway can make no matching value; give an example')
  return { name, in: place, required: isRequired && schema.default === undefined, schema, separator, example, path }
}

/** Why the default of a parameter cannot be sent; undefined if it can be sent. */
function defaultProblem(parameter: Pick<MappedParameter, 'name' | 'in'>, schema: Schema): string | undefined {
  if (!Check(schema, schema.default)) return 'it does not match its own schema'
  try {
    parameterTexts(parameter, schema.default)
    return undefined
  } catch (error) {
    if (error instanceof InvalidParameter) return error.reason
    throw error
  }
}

/** An example of the document, or a value made from the schema; undefined if no value fits. */
function exampleFor(
  document: OpenApiDocument,
  parameter: Located,
  schema: Schema,
): MappedParameter['example'] | undefined {
  const stated = statedExample(document, parameter)
  if (stated) {
    const value = inTypeOf(schema, stated.value)
    if (Check(schema, value) && JSON.stringify(value).length <= EXAMPLE_LENGTH_MAX) return { value, isStated: true }
    document.findings.leaveOut(
      parameter.path,
      `The example of the parameter is left out: it does not match its schema, or is longer than ${EXAMPLE_LENGTH_MAX} characters.`,
    )
  }
  const made = madeValue(schema)
  return Check(schema, made) ? { value: made, isStated: false } : undefined
}

/**
 * Longest example of a parameter, as JSON, characters. It stands in the addresses of example calls.
 */
const EXAMPLE_LENGTH_MAX = 500

/** The separator of a list; null for a style that the gateway does not support. */
function separatorOf({
  place,
  style,
  explode,
}: {
  place: string
  style: unknown
  explode: unknown
}): string | undefined | null {
  if (place !== 'query') return style === undefined || style === 'simple' ? ',' : null
  const isRepeated = explode === true || (explode === undefined && (style === undefined || style === 'form'))
  if (style === undefined || style === 'form') return isRepeated ? undefined : ','
  if (style === 'spaceDelimited') return isRepeated ? undefined : '%20'
  if (style === 'pipeDelimited') return isRepeated ? undefined : '%7C'
  return null
}

/**
 * Writes a value, or each item of a list, as text for a path, a query or a header.
 *
 * @throws InvalidParameter for a value that the parameter's place cannot hold, such as a text that
 *   would leave its segment of the path in any encoding
 */
export function parameterTexts({ name, in: place }: Pick<MappedParameter, 'name' | 'in'>, value: unknown): string[] {
  const texts = [value].flat().map((item) => (typeof item === 'number' ? decimal(item) : String(item)))
  if (place === 'header' && texts.some((text) => !/^[\t\x20-\x7e\x80-\xff]*$/.test(text))) {
    throw new InvalidParameter(name, 'it has characters that a header field cannot contain')
  }
  if (texts.some((text) => !text.isWellFormed())) throw new InvalidParameter(name, 'it is not well-formed Unicode')
  if (place === 'path' && (texts.length === 0 || texts.some((text) => /^\.{0,2}$/.test(text))))
    throw new InvalidParameter(name, 'it cannot be a path segment')
  return texts
}
