import type { Catalog } from '../catalog/catalog.ts'
import { PROBLEM_TYPE, ProblemDetails } from '../http/answer/problem-details.ts'
import { CALL_SECURITY, envelope, errorReferences, success } from './call-paths.ts'
import { CALL_CODES, errorResponses, headerReference } from './error-responses.ts'
import type { DocumentExamples } from './examples.ts'
import { type JsonSchema, type NamedSchemas, nameSchema, toDocumentSchema } from './schemas.ts'

/** Headers with which a caller chooses the form of the answer. */
const CALL_HEADERS: JsonSchema[] = [
  { $ref: '#/components/parameters/Prefer' },
  { $ref: '#/components/parameters/GatewayResponse' },
  { $ref: '#/components/parameters/GatewayScenario' },
]

/** Data of any endpoint. */
const ANY_DATA: JsonSchema = {
  type: 'object',
  additionalProperties: true,
  description: 'As the operation of the endpoint describes it',
}

/** JSON of any upstream. */
const RAW_MEDIA: JsonSchema = { schema: { description: 'The JSON of the upstream API as it came' } }

/** Both forms of a successful answer, for a route that serves any endpoint. */
function anySuccess(named: NamedSchemas, { mapped, raw }: DocumentExamples['call']): JsonSchema {
  return success({
    'application/json': envelope(nameSchema('AnyData', ANY_DATA, named), mapped),
    'application/vnd.upstream+json': { ...RAW_MEDIA, ...(raw === undefined ? {} : { example: raw }) },
  })
}

/** A failure in both of its forms. Only callers that prefer problem details get them (RFC 9457). */
export function failureResponse(named: NamedSchemas): JsonSchema {
  const problem = toDocumentSchema(ProblemDetails, named)
  return {
    description: 'Any other failure. The gateway sends failures as problem details if Accept prefers them',
    headers: { 'X-Request-Id': headerReference('RequestId') },
    content: {
      'application/json': { schema: { $ref: '#/components/schemas/CallError' } },
      [PROBLEM_TYPE]: { schema: problem },
    },
  }
}

/** The route that calls any endpoint of any API, with all its answers. */
export function genericPath(catalog: Catalog, named: NamedSchemas, example: DocumentExamples['call']): JsonSchema {
  const paths = new Set([...catalog.values()].flatMap((api) => [...api.endpoints.keys()]))
  const shared = {
    tags: ['Calls'],
    security: CALL_SECURITY,
    responses: {
      200: anySuccess(named, example),
      202: { $ref: '#/components/responses/CallAccepted' },
      ...errorReferences(),
      default: { $ref: '#/components/responses/CallFailure' },
    },
  }
  return {
    parameters: [
      pathParameter('apiSlug', 'An api_name of the catalog', { values: [...catalog.keys()], example: example.api }),
      pathParameter('endpoint', 'An endpoint of that API, without the slash', {
        values: [...paths].map((path) => path.slice(1)),
        example: example.endpoint?.slice(1),
      }),
      ...CALL_HEADERS,
    ],
    get: {
      ...shared,
      operationId: 'callApi',
      summary: 'Call any endpoint with query parameters',
      description:
        'The gateway checks declared parameters, and forwards undeclared parameters unchanged. HEAD makes the same call, counts like GET, and answers without a body.',
      parameters: [
        {
          name: 'parameters',
          in: 'query',
          description: 'The parameters of the endpoint',
          style: 'form',
          explode: true,
          schema: { type: 'object', additionalProperties: { type: ['string', 'number', 'boolean'] } },
        },
      ],
    },
    post: {
      ...shared,
      operationId: 'callApiWithBody',
      summary: 'Call any endpoint with parameters in a JSON body',
      description: 'The members of the body are the parameters of the endpoint.',
      requestBody: {
        required: false,
        content: {
          'application/json': {
            schema: { type: 'object', additionalProperties: true },
            ...(example.parameters === undefined ? {} : { example: example.parameters }),
          },
        },
      },
    },
  }
}

function pathParameter(
  name: string,
  description: string,
  { values, example }: { values: string[]; example: string | undefined },
): JsonSchema {
  const schema = { type: 'string', enum: values.sort() }
  return { name, in: 'path', required: true, description, ...(example === undefined ? {} : { example }), schema }
}

/** The answers of a route that returns its own answer, or the answer that a call would have had. */
export function withCallOutcome(
  own: Record<string, JsonSchema>,
  named: NamedSchemas,
  example: DocumentExamples['call'],
): Record<string, JsonSchema> {
  const responses: Record<string, JsonSchema> = { ...own, 200: anySuccess(named, example) }
  const { default: _, ...ofCalls } = errorResponses(CALL_CODES, true, named)
  for (const [status, response] of Object.entries(ofCalls)) {
    const both = [own[status], response].flatMap((answer) => jsonMedia(answer) ?? [])
    responses[status] = {
      ...response,
      content: {
        'application/json': {
          schema: both.length === 1 ? both[0]?.schema : { anyOf: both.map(({ schema }) => schema) },
          examples: Object.assign({}, ...both.map(({ examples }) => examples)),
        },
      },
    }
  }
  return responses
}

function jsonMedia(response: JsonSchema | undefined): { schema: JsonSchema; examples: JsonSchema } | undefined {
  return (response?.content as Record<string, { schema: JsonSchema; examples: JsonSchema }> | undefined)?.[
    'application/json'
  ]
}
