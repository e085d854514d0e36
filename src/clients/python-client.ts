import { readFileSync } from 'node:fs'
import { pascal } from '../catalog/type-name.ts'
import { ERRORS } from '../errors.ts'
import type { JsonSchema } from '../openapi/schemas.ts'
import type { ClientApi, ClientEndpoint, ClientParameter } from './client-api.ts'
import { literal, type PythonRecord, pythonType } from './python-types.ts'

/** The part of the client that is the same for every catalog. */
const RUNTIME = new URL('./runtime.py', import.meta.url)

/** Words that cannot name a parameter or a method (Python's keywords). */
const KEYWORDS = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield self'.split(
    ' ',
  ),
)

/** By how much the client waits longer than a call may take, milliseconds. */
const TIMEOUT_SPARE_MS = 10_000

/** Options of the client, written out once more so that editors show them. */
const optionsWith = (callTimeoutMs: number): string[] => [
  '    def __init__(',
  '        self,',
  '        key: str,',
  '        base_url: str = BASE_URL,',
  '        retries_max: int = 2,',
  '        retry_wait_max: float = 60.0,',
  `        timeout: float = ${((callTimeoutMs + TIMEOUT_SPARE_MS) / 1_000).toFixed(1)},`,
  '    ):',
  '        """',
  '        key: API key, agw_live_... or agw_test_..., the session token of a log-in, or an access token.',
  '        retries_max: retries of a call that failed for a while.',
  '        retry_wait_max: longest wait before a retry, seconds; a longer Retry-After is raised at once.',
  '        timeout: longest wait for an answer, seconds.',
  '        """',
  '        super().__init__(key, base_url, retries_max, retry_wait_max, timeout)',
]

/** The client for Python 3.9 and later, in one file without a dependency. */
export function pythonClient(
  apis: ClientApi[],
  { baseUrl, callTimeoutMs }: { baseUrl: string; callTimeoutMs: number },
): string {
  const retryable = Object.entries(ERRORS).flatMap(([code, { retryable }]) => (retryable ? [code] : []))
  return [
    `"""Client of the Agent API Gateway at ${baseUrl}, made from its catalog. Get the current one at ${baseUrl}/client.py`,
    '',
    '    from client import Gateway',
    '    gateway = Gateway("agw_test_...")',
    '    data = gateway.weather.current(latitude=40.71, longitude=-74.01)',
    '"""',
    '',
    'import email.utils',
    'import http.client',
    'import json',
    'import random',
    'import re',
    'import time',
    'import urllib.error',
    'import urllib.parse',
    'import urllib.request',
    'from typing import Any, Dict, List, Literal, Optional, TypedDict, Union',
    '',
    `BASE_URL = ${JSON.stringify(baseUrl)}`,
    '',
    '# Failures after which the same call may succeed.',
    `_RETRYABLE = frozenset(${JSON.stringify(retryable)})`,
    '',
    '',
    readFileSync(RUNTIME, 'utf8').trim(),
    '',
    '',
    ...apis.flatMap(({ endpoints }) => endpoints.flatMap(dataTypes)),
    ...apis.flatMap(apiClass),
    'class Gateway(_Transport):',
    '    """Every API of the gateway."""',
    '',
    ...optionsWith(callTimeoutMs),
    ...apis.map(({ slug }) => `        self.${variable(slug)} = ${className(slug)}(self)`),
    '',
  ].join('\n')
}

/**
 * Typed dictionaries in the functional form: members may have names that Python keeps for itself,
 * such as `from`.
 */
function dataTypes({ typeName, data, parameters }: ClientEndpoint): string[] {
  const records: PythonRecord[] = []
  pythonType(data, typeName, records)
  for (const { name, schema } of parameters) pythonType(schema as JsonSchema, parameterType(typeName, name), records)
  return records.flatMap(({ name, members, isTotal }) => [
    `${name} = TypedDict("${name}", {`,
    ...members.map(
      ({ name: member, type, description }) =>
        `    ${JSON.stringify(member)}: ${type},${description === undefined ? '' : `  # ${description.replace(/\s+/g, ' ')}`}`,
    ),
    isTotal ? '})' : '}, total=False)',
    '',
  ])
}

function apiClass({ slug, description, endpoints }: ClientApi): string[] {
  return [
    '',
    `class ${className(slug)}:`,
    `    ${docstring(description)}`,
    '',
    '    def __init__(self, transport: _Transport):',
    '        self._transport = transport',
    ...endpoints.flatMap((endpoint) => method(slug, endpoint)),
    '',
  ]
}

function method(
  slug: string,
  { path, typeName, description, parameters, method: verb, isOnce }: ClientEndpoint,
): string[] {
  // Those that must be given come first; all are given by name.
  const ordered = parameters.toSorted((a, b) => Number(b.required) - Number(a.required))
  const variables = variablesOf(parameters)
  const signature = ordered.map((parameter) => parameterOf(typeName, parameter, variables))
  const given = parameters.map(({ name }) => `${JSON.stringify(name)}: ${variables.get(name)}`)
  const documented = ordered.flatMap(({ name, schema }) =>
    schema.description === undefined ? [] : [`        ${variables.get(name)}: ${schema.description}`],
  )
  return [
    '',
    `    def ${variable(path)}(${['self', ...(signature.length > 0 ? ['*'] : []), ...signature].join(', ')}) -> ${typeName}:`,
    ...(documented.length === 0
      ? [`        ${docstring(description)}`]
      : [`        """${escaped(description)}`, '', ...documented.map(escaped), '        """']),
    `        return self._transport.call(${JSON.stringify(slug)}, ${JSON.stringify(path)}, {${given.join(', ')}}${verb === 'GET' ? '' : `, method="POST"${isOnce ? ', once=True' : ''}`})`,
  ]
}

/** The name of a parameter's type, when it has members of its own. */
const parameterType = (typeName: string, name: string): string => `${typeName}Parameter${pascal([name])}`

function parameterOf(
  typeName: string,
  { name, required, schema }: ClientParameter,
  variables: ReadonlyMap<string, string>,
): string {
  const type = pythonType(schema as JsonSchema, parameterType(typeName, name), [])
  if (required) return `${variables.get(name)}: ${type}`
  // What is left out takes the gateway's own default, so that it is said in one place.
  return `${variables.get(name)}: Optional[${type}] = ${literal(null)}`
}

/** A variable for each parameter by name: `a-b` and `a_b` are `a_b` and `a_b_2`. */
function variablesOf(parameters: ClientParameter[]): ReadonlyMap<string, string> {
  const variables = new Map<string, string>()
  const taken = new Set<string>()
  for (const { name } of parameters) {
    const plain = variable(name)
    let free = plain
    for (let count = 2; taken.has(free); count += 1) free = `${plain}_${count}`
    taken.add(free)
    variables.set(name, free)
  }
  return variables
}

/** Python compares names in the form NFKC. */
const snake = (words: string): string => words.normalize('NFKC').replace(/[^\p{L}\p{N}]+/gu, '_')
const className = (slug: string): string =>
  `_${slug.replace(/(^|[^A-Za-z0-9]+)([a-z0-9])/g, (_, __, first: string) => first.toUpperCase())}`

/** A name of Python for the name of a parameter, an endpoint or an API. */
function variable(name: string): string {
  const word = snake(name)
    .replace(/^_+(?=\p{L})/u, '')
    .replace(/^(?=\p{N})/u, '_')
  return KEYWORDS.has(word) ? `${word}_` : word
}
const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('"""', "'''")
const docstring = (text: string): string => `"""${escaped(text.replace(/"$/, '" '))}"""`
