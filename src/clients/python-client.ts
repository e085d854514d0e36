import { readFileSync } from 'node:fs'
import { pythonMember, pythonName, pythonNames } from '../browser/client-names.js'
import { pascal } from '../catalog/type-name.ts'
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
import { addRecord, type PythonRecord, type PythonRecords, pythonType } from './python-types.ts'

const runtimeOf = (name: string): string => readFileSync(new URL(`./${name}.py`, import.meta.url), 'utf8').trim()

/** The options of the client, repeated in each class so that editors show them. */
const optionsWith = (callTimeoutMs: number): string[] => [
  '    def __init__(',
  '        self,',
  '        key: str,',
  '        base_url: str = BASE_URL,',
  '        retries_max: int = 2,',
  '        retry_wait_max: float = 60.0,',
  `        timeout: float = ${((callTimeoutMs + TIMEOUT_SPARE_MS) / 1_000).toFixed(1)},`,
  '        on_retry: Optional[Callable[[GatewayError, float, int], None]] = None,',
  '        on_answer: Optional[Callable[[Meta], None]] = None,',
  '    ) -> None:',
  '        """',
  '        key: API key, agw_live_... or agw_test_..., the session token of a log-in, or an access token.',
  '        retries_max: how often a call is retried if its failure may be temporary.',
  '        retry_wait_max: longest wait before a retry, seconds; a longer Retry-After is raised at once.',
  '        timeout: longest wait for an answer, seconds.',
  '        on_retry: called before each wait for a retry, with the error, the wait in seconds and the number of earlier retries.',
  '        on_answer: called with the metadata of each answer, even if the call failed.',
  '        """',
  '        super().__init__(key, base_url, retries_max, retry_wait_max, timeout, on_retry, on_answer)',
]

/** The client for Python 3.9 and later, in one file without dependencies. */
export function pythonClient(apis: ClientApi[], { baseUrl, callTimeoutMs }: ClientGateway): string {
  const fixed = fixedPart(apis, baseUrl)
  const typed = typedApis(apis, new TypeNames(fixed))
  return [
    fixed,
    '',
    '',
    ...typed.flatMap(({ endpoints }) => endpoints.flatMap(dataTypes)),
    ...[SYNC, ASYNC].flatMap((kind) => [
      ...typed.flatMap((api) => apiClass(kind, api)),
      '',
      `class ${kind.gateway}(${kind.transport}):`,
      `    """Every API of the gateway${kind === ASYNC ? ', for asyncio' : ''}."""`,
      '',
      ...optionsWith(callTimeoutMs),
      ...typed.map(({ slug }) => `        self.${pythonMember(slug)} = ${className(kind, slug)}(self)`),
      '',
    ]),
  ].join('\n')
}

/** The part of the client that does not depend on the catalog. */
function fixedPart(apis: ClientApi[], baseUrl: string): string {
  return [
    `"""Client of the Agent API Gateway at ${baseUrl}, made from its catalog. Get the current one at ${baseUrl}/client.py`,
    '',
    '    from client import Gateway',
    '    gateway = Gateway("agw_test_...")',
    '    data = gateway.weather.current(latitude=40.71, longitude=-74.01)',
    '',
    'AsyncGateway is the same for asyncio.',
    '"""',
    '',
    'import asyncio',
    'import concurrent.futures',
    'import contextlib',
    'import dataclasses',
    'import email.utils',
    'import http.client',
    'import json',
    'import os',
    'import random',
    'import re',
    'import socket',
    'import threading',
    'import time',
    'import urllib.error',
    'import urllib.parse',
    'import urllib.request',
    'from typing import Any, Callable, Dict, Generator, Iterator, List, Literal, Optional, Sequence, TypedDict, TypeVar, Union',
    '',
    `BASE_URL = ${JSON.stringify(baseUrl)}`,
    '',
    '# Failures after which the same call may succeed.',
    `_RETRYABLE = frozenset(${JSON.stringify(RETRYABLE_CODES)})`,
    '',
    '# Endpoints that accept only POST, and whether a call must not be repeated.',
    `_POSTED: Dict[str, bool] = dict(json.loads(${JSON.stringify(JSON.stringify(postedEndpoints(apis)))}))`,
    '',
    '',
    runtime(),
  ].join('\n')
}

/**
 * The parts of the client that do not depend on the catalog. Methods are written for asyncio. The
 * synchronous client has the same methods without `async` and `await`.
 */
function runtime(): string {
  const transport = runtimeOf('runtime_transport')
  const blocking = transport
    .replaceAll(/\basync def |\bawait /g, (word) => (word === 'await ' ? '' : 'def '))
    .replaceAll(/\b_?Async(?=StartedCall|Transport)/g, (prefix) => (prefix.startsWith('_') ? '_' : ''))
    .replaceAll('_Asyncio', '_Blocking')
  return [runtimeOf('runtime_answers'), runtimeOf('runtime'), blocking, runtimeOf('runtime_async'), transport].join(
    '\n\n\n',
  )
}

/** An API whose types have their names. */
interface TypedApi extends ClientApi {
  endpoints: TypedEndpoint[]
}

interface TypedEndpoint extends ClientEndpoint {
  records: PythonRecord[]
  /** The type of data whose members are not known; undefined if there is a typed dictionary. */
  alias: string | undefined
  parameterTypes: ReadonlyMap<string, string>
}

function typedApis(apis: ClientApi[], names: TypeNames): TypedApi[] {
  const typed = (endpoint: ClientEndpoint): TypedEndpoint => {
    const { typeName, data, parameters } = endpoint
    const records: PythonRecords = { names, list: [] }
    const hasMembers = Object.keys(Object(data.properties)).length > 0
    if (hasMembers) addRecord(data, typeName, records)
    const alias = hasMembers ? undefined : pythonType(data, typeName, records)
    const types = parameters.map((parameter): [string, string] => {
      const { name } = parameter
      return [name, pythonType(givenSchema(parameter), `${typeName}Parameter${pascal([name])}`, records)]
    })
    return { ...endpoint, records: records.list, alias, parameterTypes: new Map(types) }
  }
  return names.ofEndpoints(apis).map(({ endpoints, ...api }) => ({ ...api, endpoints: endpoints.map(typed) }))
}

/**
 * Typed dictionaries in the functional form, because members may have names that are keywords in
 * Python, such as `from`.
 */
function dataTypes({ typeName, alias, records }: TypedEndpoint): string[] {
  const dictionaries = records.flatMap(({ name, members, isTotal }) => [
    `${name} = TypedDict("${name}", {`,
    ...members.map(
      ({ name: member, type, description }) =>
        `    ${JSON.stringify(member)}: ${type},${description === undefined ? '' : `  # ${description.replace(/\s+/g, ' ')}`}`,
    ),
    isTotal ? '})' : '}, total=False)',
    '',
  ])
  return alias === undefined ? dictionaries : [...dictionaries, `${typeName} = ${alias}`, '']
}

/** The synchronous client, or the client for asyncio. */
interface Kind {
  gateway: string
  transport: string
  /** Prefix of the names of its classes. */
  prefix: string
  /** Text before `def`. */
  definition: string
  wait: string
}
const SYNC: Kind = { gateway: 'Gateway', transport: '_Transport', prefix: '_', definition: 'def', wait: '' }
const ASYNC: Kind = {
  gateway: 'AsyncGateway',
  transport: '_AsyncTransport',
  prefix: '_Async',
  definition: 'async def',
  wait: 'await ',
}

function apiClass(kind: Kind, { slug, description, endpoints }: TypedApi): string[] {
  return [
    '',
    `class ${className(kind, slug)}:`,
    `    ${docstring(description)}`,
    '',
    `    def __init__(self, transport: ${kind.transport}) -> None:`,
    '        self._transport = transport',
    ...endpoints.flatMap((endpoint) => method(kind, slug, endpoint)),
    '',
  ]
}

function method({ definition, wait }: Kind, slug: string, endpoint: TypedEndpoint): string[] {
  const { path, typeName, description, parameters, parameterTypes } = endpoint
  // Required parameters come first. Callers pass all parameters by name.
  const ordered = parameters.toSorted((a, b) => Number(b.required) - Number(a.required))
  const variables = pythonNames(parameters.map(({ name }) => name))
  // The gateway fills in defaults, so the client does not repeat them.
  const signature = ordered.map(({ name, required }) => {
    const type = parameterTypes.get(name)
    return `${variables.get(name)}: ${required ? type : `Optional[${type}] = None`}`
  })
  const given = parameters.map(({ name }) => `${JSON.stringify(name)}: ${variables.get(name)}`)
  const documented = ordered.flatMap(({ name, schema }) =>
    schema.description === undefined ? [] : [`        ${variables.get(name)}: ${schema.description}`],
  )
  return [
    '',
    `    ${definition} ${pythonName(path)}(${['self', ...(signature.length > 0 ? ['*'] : []), ...signature].join(', ')}) -> ${typeName}:`,
    ...(documented.length === 0
      ? [`        ${docstring(description)}`]
      : [`        """${escaped(description)}`, '', ...documented.map(escaped), '        """']),
    `        _data: ${typeName} = ${wait}self._transport.call(${JSON.stringify(slug)}, ${JSON.stringify(path)}, {${given.join(', ')}})`,
    '        return _data',
  ]
}

/** The class of an API. No other class of the client has such a name, whatever the slug is. */
const className = ({ prefix }: Kind, slug: string): string => `${prefix}Api_${pythonName(slug)}`

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('"""', "'''")
const docstring = (text: string): string => `"""${escaped(text.replace(/"$/, '" '))}"""`
