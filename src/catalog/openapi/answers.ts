import { Check } from 'typebox/schema'
import type { Endpoint, ExampleOrigin } from '../endpoint.ts'
import { isObject } from '../json.ts'
import { notFound, type ResponseClass, rejected } from '../response-class.ts'
import type { UpstreamResponse } from '../upstream-request.ts'
import { dataSchema } from './data-schema.ts'
import { declaredErrorTexts } from './error-text.ts'
import { statedExample } from './example-values.ts'
import { madeValue } from './made-value.ts'
import { NotOffered } from './not-offered.ts'
import { pathOfPointer } from './places.ts'
import type { Located, OpenApiDocument } from './references.ts'
import type { Schema } from './schema-keywords.ts'
import type { SchemaReader } from './schemas.ts'
import { shortened } from './words.ts'

/** The answers of an operation, from its document. */
export interface Answers {
  data: ReturnType<typeof dataSchema>
  /** An example from the document, or a value made from the schema. */
  example: { response: unknown; origin: ExampleOrigin }
  /** Statuses of success whose answers may lack a body. */
  accepted: number[]
  /** The media type to ask for; undefined if the document describes no body. */
  accept: string | undefined
  /** Statuses of refusals that the document declares. */
  refusals: Set<number>
  /** Where a refusal's body has its text, according to the document. */
  errorTexts: (readonly string[])[]
}

/**
 * Statuses that concern the gateway's own rights, connection or request rate, whatever a document
 * says of them.
 */
const NOT_ABOUT_VALUES = new Set([401, 402, 403, 407, 408, 425, 429])

/** Statuses by which upstreams refuse values, even if the document does not declare them. */
const USUAL_REFUSALS = [400, 409, 412, 422]

/** Longest message of an upstream's error that goes to a caller, characters. */
const MESSAGE_MAX = 300

/** @throws NotOffered if the answer is not JSON */
export function readAnswers(document: OpenApiDocument, schemas: SchemaReader, operation: Located): Answers {
  const all = document.member(operation, 'responses')
  if (all.value !== undefined && !isObject(all.value)) {
    document.findings.error(all.path, 'The responses of an operation must be an object.')
  }
  const responses = document.members(all)
  const successes = responses.filter(([status]) => /^2(\d\d|XX)$/i.test(status))
  const [, success] = successes.find(([, response]) => jsonMedia(document, response) !== undefined) ??
    successes[0] ??
    responses.find(([status]) => status === 'default') ?? ['', undefined]
  const media = success && jsonMedia(document, success)
  const schema =
    media && document.member(media, 'schema').value !== undefined
      ? schemas.read({ value: Object(media.value).schema, path: [...media.path, 'schema'] }, 'answer')
      : undefined
  const [redirect] = success ? [] : responses.filter(([status]) => /^3(\d\d|XX)$/i.test(status))
  if (redirect)
    throw new NotOffered(
      redirect[1].path,
      'its answers are redirects, and the gateway does not follow redirects of API calls',
    )
  const types = success ? typesOf(document, success) : []
  if (media === undefined && types.length > 0 && success) {
    throw new NotOffered(
      success.path,
      `the media type of its answer is ${types.join(', ').slice(0, 100)}, and the gateway passes on only JSON`,
    )
  }
  const bare = successes.filter(([, response]) => typesOf(document, response).length === 0)
  // An answer without a body is a success if the document describes such an answer, or describes no
  // body at all.
  const undescribed = media === undefined ? [200, 201, 202] : []
  const ofRefusals = responses.filter(([status]) => /^(4(\d\d|XX)|default)$/i.test(status))
  const documented = responses.map(([status]) => Number(status)).filter((status) => status >= 400 && status < 500)
  return {
    data: dataSchema(schema),
    example: media ? answerExample(document, media, schema) : { response: undefined, origin: 'made' },
    accepted: [...undescribed, 204, ...bare.map(([status]) => Number(status)).filter(Number.isInteger)],
    accept: media && mediaTypeOf(media),
    refusals: new Set([...USUAL_REFUSALS, ...documented.filter((status) => !NOT_ABOUT_VALUES.has(status))]),
    errorTexts: declaredErrorTexts(
      document,
      ofRefusals.map(([, response]) => Object(jsonMedia(document, response)?.value).schema),
    ),
  }
}

/** Longest example of an answer, as JSON, characters. Pages and documents show the example. */
const EXAMPLE_LENGTH_MAX = 65_536

/**
 * The answer to test calls. An example is used even if it does not fit its schema, because
 * documents are often wrong about their answers.
 */
function answerExample(document: OpenApiDocument, media: Located, schema: Schema = {}): Answers['example'] {
  const stated = statedExample(document, media)
  const value = stated && parsedIfFits(schema, stated.value)
  if (stated && JSON.stringify(value).length > EXAMPLE_LENGTH_MAX) {
    document.findings.leaveOut(media.path, 'The example of the answer is too long, and is left out.')
  } else if (stated) {
    if (!Check(schema, value)) {
      document.findings.leaveOut(
        media.path,
        'The example of the answer does not match its schema. The gateway answers test calls with it nevertheless.',
      )
    }
    return { response: value, origin: 'document' }
  }
  return { response: madeValue(schema), origin: 'made' }
}

/** Documents often write an example as a text that contains JSON. */
function parsedIfFits(schema: Schema, value: unknown): unknown {
  if (typeof value !== 'string' || Check(schema, value)) return value
  try {
    const parsed: unknown = JSON.parse(value)
    return Check(schema, parsed) ? parsed : value
  } catch {
    return value
  }
}

const typesOf = (document: OpenApiDocument, response: Located): string[] =>
  Object.keys(Object(document.member(response, 'content').value))

/**
 * The name of a media type without its parameters, because JSON is always UTF-8 and the parameters
 * may be anything.
 */
export function mediaTypeOf({ path }: Located): string {
  const [type = ''] = String(path.at(-1)).split(';', 1)
  return /^[\w.+-]+\/[\w.+-]+$/.test(type.trimEnd()) ? type.trimEnd().toLowerCase() : 'application/json'
}

/** The JSON media type of a request or an answer. */
export function jsonMedia(document: OpenApiDocument, holder: Located): Located | undefined {
  const content = document.members(document.member(holder, 'content'))
  const named = (pattern: RegExp) => content.find(([type]) => pattern.test(type))?.[1]
  return (
    named(/^(application|text)\/json\s*(;|$)/i) ??
    named(/^application\/[\w.-]+\+json\s*(;|$)/i) ??
    named(/^(\*|application)\/\*$/)
  )
}

/**
 * Makes an object of an answer's body. A list becomes the member `items`, another value the member
 * `value`, and an answer without a body becomes an empty object.
 */
export function toData(body: unknown): Record<string, unknown> {
  if (body === undefined) return {}
  if (isObject(body)) return body
  return Array.isArray(body) ? { items: body } : { value: body }
}

/** Turns the refusals of a document into the rules of an endpoint. */
export function refusalRules(
  { refusals, errorTexts }: Answers,
  { errorMessage, isOfOneThing }: { errorMessage: string | undefined; isOfOneThing: boolean },
): Pick<Endpoint, 'classify' | 'isNotFound' | 'rejects'> {
  const isMissing = ({ status, body }: UpstreamResponse): boolean =>
    refusals.has(status) || (isOfOneThing && body !== undefined)
  const rejects = [...refusals].filter((status) => status !== 404 && status !== 410)
  const stated = errorMessage === undefined ? undefined : pathOfPointer(errorMessage)
  const places = stated ? [stated] : errorTexts
  const rules = { isNotFound: isMissing, rejects }
  if (places.length === 0) return rules
  const classify = (answer: UpstreamResponse): ResponseClass | undefined => {
    const { status, body } = answer
    const isAboutThing = (status === 404 || status === 410) && isMissing(answer)
    if (!isAboutThing && !rejects.includes(status)) return undefined
    const message = places.map((place) => textAt(body, place)).find((text) => text !== undefined)
    if (message === undefined) return undefined
    return isAboutThing ? notFound(message) : rejected(message)
  }
  return { ...rules, classify }
}

function textAt(body: unknown, path: readonly string[]): string | undefined {
  let value = body
  for (const name of path) {
    value =
      typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined
  }
  const text = typeof value === 'string' ? shortened(value, MESSAGE_MAX) : ''
  return text === '' ? undefined : text
}
