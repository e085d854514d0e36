/** Calls an upstream file's functions in the order in which the gateway does, without HTTP. */
import assert from 'node:assert/strict'
import { Compile, type Validator } from 'typebox/compile'
import { Default } from 'typebox/value'
import type { CallContext, Endpoint } from '../../src/catalog/endpoint.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import type { UpstreamRequest, UpstreamResponse } from '../../src/catalog/upstream-request.ts'
import { type Interpretation, interpretAnswers } from '../../workers/upstream/interpret.ts'

type Given = Record<string, unknown>

/** The time of a test's calls, if the test or the example names no other. */
const NOW = '2026-10-15T12:00:00Z'

/** The address of the caller, which only `complete` gets. */
const CALLER_ADDRESS = '203.0.113.7'

export function endpointAt(upstream: Upstream, path: string): Endpoint {
  const endpoint = upstream.endpoints[path]
  assert.ok(endpoint, `endpoint ${path}`)
  return endpoint
}

export function contextAt(endpoint: Endpoint, now: string | undefined = endpoint.example.now): CallContext {
  return { now: Date.parse(now ?? NOW) }
}

const validators = new WeakMap<object, Validator>()

/**
 * The validator of a schema. It is stored, because tests check thousands of values by each schema.
 */
export function validatorOf(schema: Endpoint['parameters'] | Endpoint['data']): Validator {
  const known = validators.get(schema)
  if (known) return known
  const validator: Validator = Compile(schema)
  validators.set(schema, validator)
  return validator
}

/** Parameters with the defaults of their schemas, as admission fills them in. */
export function withDefaults(endpoint: Endpoint, given: Given): Given {
  return Default(endpoint.parameters, structuredClone(given)) as Given
}

/** Parameters as the mapping sees them: defaults applied, checked against the schema, completed. */
export function completed(endpoint: Endpoint, given: Given, context = contextAt(endpoint)): Given {
  const parameters = withDefaults(endpoint, given)
  const schema = validatorOf(endpoint.parameters)
  assert.ok(schema.Check(parameters), `parameters ${JSON.stringify(schema.Errors(parameters))}`)
  return endpoint.complete?.(parameters, { callerAddress: () => CALLER_ADDRESS, ...context }) ?? parameters
}

/** Whether the schema alone accepts the parameters. */
export function fits(endpoint: Endpoint, given: Given): boolean {
  return validatorOf(endpoint.parameters).Check(withDefaults(endpoint, given))
}

export function requestsOf(endpoint: Endpoint, given: Given, context = contextAt(endpoint)): UpstreamRequest[] {
  const requests = endpoint.request(completed(endpoint, given, context), context)
  return Array.isArray(requests) ? requests : [requests]
}

export function urlOf(upstream: Upstream, request: UpstreamRequest): URL {
  const url = new URL(upstream.baseUrl + request.path)
  for (const [name, value] of Object.entries(request.query ?? {})) {
    if (value !== undefined) url.searchParams.append(name, String(value))
  }
  return url
}

/** The address of a call that makes a single request. */
export function addressOf(upstream: Upstream, path: string, given: Given, now?: string): string {
  const endpoint = endpointAt(upstream, path)
  const [request] = requestsOf(endpoint, given, contextAt(endpoint, now))
  assert.ok(request)
  return urlOf(upstream, request).href
}

/** Reads one answer; by default a 200 to the example's parameters. */
export function interpreted(
  upstream: Upstream,
  path: string,
  answer: Partial<UpstreamResponse>,
  given?: Given,
): Interpretation {
  const endpoint = endpointAt(upstream, path)
  const context = contextAt(endpoint)
  const parameters = completed(endpoint, given ?? endpoint.example.parameters, context)
  const whole: UpstreamResponse = { status: 200, headers: {}, body: undefined, ...answer }
  return interpretAnswers({ upstream, endpoint }, [whole], { parameters, context })
}

/** The data of an answer that is a success. */
export function dataOf(...call: Parameters<typeof interpreted>): Record<string, unknown> {
  const interpretation = interpreted(...call)
  assert.ok('data' in interpretation, JSON.stringify(interpretation))
  return interpretation.data
}

/** The error code of an answer that is a failure. */
export function codeOf(...call: Parameters<typeof interpreted>): string {
  const interpretation = interpreted(...call)
  assert.ok('responseClass' in interpretation, JSON.stringify(interpretation))
  return interpretation.responseClass.code
}

/** Milliseconds that an answer over the limit asks to wait. */
export function waitOf(...call: Parameters<typeof interpreted>): number | undefined {
  const interpretation = interpreted(...call)
  assert.ok('responseClass' in interpretation, JSON.stringify(interpretation))
  assert.equal(interpretation.responseClass.code, 'UPSTREAM_RATE_LIMITED')
  return interpretation.responseClass.retryAfterMs
}
