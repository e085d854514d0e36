import type { CallContext, Endpoint } from '../../src/catalog/endpoint.ts'

type Parameters = Record<string, unknown>

const recordedByEndpoint = new WeakMap<Endpoint, Parameters>()

/** The moment of the recording, if its answer depends on the day. */
export function contextOfRecording({ example }: Endpoint): CallContext {
  return { now: example.now === undefined ? Date.now() : Date.parse(example.now) }
}

/** The parameters of the call whose answer was recorded, as admission completes them. */
export function recordedParameters(endpoint: Endpoint): Parameters {
  const known = recordedByEndpoint.get(endpoint)
  if (known) return known
  const recorded = completedParameters(endpoint, contextOfRecording(endpoint))
  recordedByEndpoint.set(endpoint, recorded)
  return recorded
}

/**
 * The same at another moment.
 *
 * @throws InvalidParameter if they are for a day that is too long ago by then
 */
export function completedParameters(endpoint: Endpoint, context: CallContext): Parameters {
  const given = withDefaults(endpoint, endpoint.example.parameters)
  return endpoint.complete?.(given, context) ?? given
}

/**
 * Whether a call is the recorded one. Values are compared as they are written: an id may be a
 * number or text.
 */
export function isRecordedCall(endpoint: Endpoint, given: Parameters): boolean {
  const recorded = recordedParameters(endpoint)
  const names = new Set([...Object.keys(given), ...Object.keys(recorded)])
  return [...names].every((name) => String(given[name] ?? '') === String(recorded[name] ?? ''))
}

function withDefaults(endpoint: Endpoint, parameters: Parameters): Parameters {
  const defaults = Object.entries(endpoint.parameters.properties).flatMap(([name, schema]) => {
    const value: unknown = Reflect.get(schema, 'default')
    return value === undefined ? [] : [[name, value] as const]
  })
  return { ...Object.fromEntries(defaults), ...parameters }
}
