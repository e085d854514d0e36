import { readFileSync } from 'node:fs'
import { typescriptMember, typescriptName } from '../browser/client-names.js'
import { ERRORS } from '../errors.ts'
import type { JsonSchema } from '../openapi/schemas.ts'
import {
  type ClientApi,
  type ClientEndpoint,
  type ClientGateway,
  givenSchema,
  postedEndpoints,
  RETRYABLE_CODES,
  TIMEOUT_SPARE_MS,
  TypeNames,
} from './client-api.ts'
import { comment, memberName, typescriptType } from './typescript-types.ts'

/** The parts of the client that do not depend on the catalog. */
const RUNTIME = ['runtime-answers', 'runtime'].map((name) => new URL(`./${name}.ts`, import.meta.url))

/** The TypeScript client in one file without dependencies: types and methods of every endpoint. */
export function typescriptClient(apis: ClientApi[], gateway: ClientGateway): string {
  const fixed = fixedPart(apis, gateway)
  const named = namedApis(apis, new TypeNames(fixed))
  return [
    fixed,
    ...named.flatMap(({ endpoints }) => endpoints.flatMap(endpointTypes)),
    '/** Parameters and data of each endpoint, by the path that the methods answer and start accept. */',
    'export interface Endpoints {',
    ...named.flatMap(({ slug, endpoints }) => endpoints.map((endpoint) => endpointMember(slug, endpoint))),
    '}',
    '',
    '/** Every API of the gateway. */',
    'export class Gateway extends Transport {',
    ...named.flatMap(apiMember),
    '}',
    '',
  ].join('\n')
}

/** An API whose types have their names. */
interface NamedApi extends ClientApi {
  endpoints: NamedEndpoint[]
}

interface NamedEndpoint extends ClientEndpoint {
  /** The type of its parameters. */
  parametersType: string
}

function namedApis(apis: ClientApi[], names: TypeNames): NamedApi[] {
  const parametersType = ({ typeName, parameters }: ClientEndpoint) =>
    parameters.length === 0 ? 'Record<string, never>' : names.take(`${typeName}Parameters`)
  return names.ofEndpoints(apis).map(({ endpoints, ...api }) => ({
    ...api,
    endpoints: endpoints.map((endpoint) => ({ ...endpoint, parametersType: parametersType(endpoint) })),
  }))
}

/** The part of the client that does not depend on the catalog. */
function fixedPart(apis: ClientApi[], { baseUrl, callTimeoutMs }: ClientGateway): string {
  const codes = [...Object.keys(ERRORS), 'INVALID_ANSWER', 'NO_ANSWER']
  return [
    `// Client of the Agent API Gateway at ${baseUrl}, made from its catalog. Get the current one at ${baseUrl}/client.ts`,
    '//',
    "//   import { Gateway } from './client.ts'",
    "//   const gateway = new Gateway({ key: 'agw_test_…' })",
    '//   const data = await gateway.weather.current({ latitude: 40.71, longitude: -74.01 })',
    '',
    `const BASE_URL = ${JSON.stringify(baseUrl)}`,
    '',
    '/** Every code that a failure can have; INVALID_ANSWER: the answer did not come from the gateway; NO_ANSWER: no answer arrived. */',
    `export type ErrorCode =\n${codes.map((code) => `  | '${code}'`).join('\n')}`,
    '',
    '/** Failures after which the same call may succeed. */',
    `const RETRYABLE: ReadonlySet<string> = new Set(${JSON.stringify(RETRYABLE_CODES)})`,
    '',
    '/** Endpoints that accept only POST, and whether a call must not be repeated. */',
    `const POSTED: ReadonlyMap<string, boolean> = new Map(${JSON.stringify(postedEndpoints(apis))})`,
    '',
    `const TIMEOUT_MS = ${callTimeoutMs + TIMEOUT_SPARE_MS}`,
    '',
    runtime(),
  ].join('\n')
}

/**
 * Copies the part below the line of each runtime file. The part above is only for the compiler. The
 * files export some functions for each other, which the client keeps private.
 */
function runtime(): string {
  const parts = RUNTIME.map((file) => readFileSync(file, 'utf8').split('// ---\n')[1] ?? '')
  return parts
    .join('\n')
    .replaceAll(/^export (?=(?:function|type|interface (?:AnswerBody|Received|Failure)) )/gm, '')
    .trimStart()
}

function endpointTypes({ typeName, parametersType, description, parameters, data }: NamedEndpoint): string[] {
  const members = parameters.flatMap((parameter) => [
    ...comment(parameterWords(givenSchema(parameter)), '  '),
    `  ${memberName(parameter.name)}${parameter.required ? '' : '?'}: ${typescriptType(givenSchema(parameter))}`,
  ])
  return [
    ...(members.length === 0
      ? []
      : [...comment(`Parameters: ${description}`, ''), `export interface ${parametersType} {`, ...members, '}', '']),
    ...comment(description, ''),
    `export type ${typeName} = ${typescriptType(data)}`,
    '',
  ]
}

function endpointMember(slug: string, { path, typeName, parametersType }: NamedEndpoint): string {
  return `  ${JSON.stringify(`${slug}/${path}`)}: { parameters: ${parametersType}; data: ${typeName} }`
}

function parameterWords({ description, default: fallback }: JsonSchema): string {
  return [description, fallback === undefined ? undefined : `default ${JSON.stringify(fallback)}`]
    .filter(Boolean)
    .join('; ')
}

function apiMember({ slug, description, endpoints }: NamedApi): string[] {
  return [
    ...comment(description, '  '),
    `  readonly ${typescriptMember(slug)} = {`,
    ...endpoints.flatMap((endpoint) => [...comment(endpoint.description, '    '), `    ${method(slug, endpoint)}`]),
    '  }',
    '',
  ]
}

function method(slug: string, endpoint: NamedEndpoint): string {
  const { path, typeName, parametersType, parameters } = endpoint
  const named = typescriptName(path)
  const name = /^\d/.test(named) ? JSON.stringify(named) : named
  const target = JSON.stringify(`${slug}/${path}`)
  if (parameters.length === 0) {
    return `${name}: (options: CallOptions = {}): Promise<${typeName}> => this.call(${target}, {}, options),`
  }
  const fallback = parameters.some(({ required }) => required) ? '' : ' = {}'
  return `${name}: (parameters: ${parametersType}${fallback}, options: CallOptions = {}): Promise<${typeName}> => this.call(${target}, parameters, options),`
}
