import { type EncodedPath, path as encodePath, type UpstreamRequest } from '../upstream-request.ts'
import { BODY, type MappedParameter, parameterTexts } from './parameters.ts'
import type { Located } from './references.ts'
import type { Schema } from './schema-keywords.ts'

export type Method = NonNullable<UpstreamRequest['method']>

/** The body of an operation's request. */
export interface MappedBody {
  schema: Schema
  required: boolean
  mediaType: string
  media: Located
}

/** The parts of a request that do not depend on the call's values. */
export interface RequestForm {
  method: Method
  template: string
  parameters: MappedParameter[]
  body: MappedBody | undefined
  /** The media type of the answer, if the document describes a body. */
  accept: string | undefined
}

/** @throws InvalidParameter for a value that its parameter's place cannot hold */
export function requestOf(
  { method, template, parameters, body, accept }: RequestForm,
  values: Record<string, unknown>,
): UpstreamRequest {
  const query: NonNullable<UpstreamRequest['query']> = {}
  // Some servers refuse a request that does not accept the media type of the answer.
  const isSpecial = accept !== undefined && accept !== 'application/json'
  const headers: Record<string, string> = isSpecial ? { accept: `${accept}, application/json;q=0.9` } : {}
  const inPath = new Map<string, string[]>()
  for (const parameter of parameters) {
    const { name, in: place, separator } = parameter
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (value === undefined) continue
    const texts = parameterTexts(parameter, value)
    if (place === 'header') headers[name.toLowerCase()] = texts.join(',')
    else if (place === 'path') inPath.set(name, texts)
    else query[name] = separator === undefined ? texts : { items: texts, separator }
  }
  const sent = body && values[BODY] !== undefined ? JSON.stringify(values[BODY]) : undefined
  if (sent !== undefined && body) headers['content-type'] = body.mediaType
  return {
    path: filledPath(template, inPath),
    ...(method === 'GET' ? {} : { method }),
    query,
    headers,
    ...(sent === undefined ? {} : { body: sent }),
  }
}

/**
 * Fills the path. Each value becomes one encoded segment or a part of it. The items of a list have
 * commas between them.
 *
 * @throws Error if a part of the path has no value
 */
function filledPath(template: string, values: ReadonlyMap<string, readonly string[]>): EncodedPath {
  const [first = '', ...parts] = template.split(/\{([^{}/]*)\}/)
  const literals = [first]
  const texts: string[] = []
  for (let index = 0; index < parts.length; index += 2) {
    const name = parts[index] ?? ''
    const items = values.get(name)
    if (items === undefined) throw new Error(`the path has no value for ${name}`)
    texts.push(...items)
    literals.push(...items.slice(1).fill(','), parts[index + 1] ?? '')
  }
  return encodePath(literals as unknown as TemplateStringsArray, ...texts)
}
