/**
 * Helpers with which a file in src/upstreams declares an upstream and its endpoints. The parameters
 * and the record of an endpoint's data are enough: its schemas and its mapping are made from them.
 */
import Type, { type Static } from 'typebox'
import type { CallContext, Endpoint, Example, MapInput } from './endpoint.ts'
import type { DataRecord, Fields } from './fields.ts'
import type { ObjectOfParameters, Parameters } from './parameters.ts'
import { invalid, ResponseClass } from './response-class.ts'
import type { Credential, Upstream } from './upstream.ts'

/** An upstream as its file declares it. It is an `Upstream` with defaults. */
export type UpstreamDeclaration = Omit<Upstream, 'tierRequired' | 'credential' | 'own'> & {
  /** Default: developer. */
  tierRequired?: Upstream['tierRequired']
  /** `required` defaults to false. */
  credential?: Omit<Credential, 'required'> & Partial<Pick<Credential, 'required'>>
}

/** Declares an upstream. */
export function upstream({ tierRequired = 'developer', credential, ...rest }: UpstreamDeclaration): Upstream {
  return { ...rest, tierRequired, ...(credential && { credential: { required: false, ...credential } }) }
}

/** Splits a text with single blanks into its words. */
export function words(text: string): string[] {
  return text.split(' ')
}

/** A recorded answer of the upstream, and its mapped data, as the file of recordings has them. */
export interface Recording {
  parameters: Record<string, unknown>
  /** When it was recorded, if the answer or the request depends on the day. */
  now?: string
  /** The upstream's body (an array of bodies when `request` gives several requests). */
  response: unknown
  data: Record<string, unknown>
}

type Values<Of extends Parameters> = Static<ObjectOfParameters<Of>>
type Declared<Of extends Parameters, Data extends Fields = Fields> = Endpoint<
  ObjectOfParameters<Of>,
  DataRecord<Data>['schema']
>

/**
 * An endpoint of a file in src/upstreams. Members without a comment mean what they mean in
 * `Endpoint`.
 */
interface EndpointDeclaration<Of extends Parameters, Data extends Fields>
  extends Pick<
    Declared<Of>,
    'description' | 'cache' | 'pool' | 'acceptStatuses' | 'complete' | 'request' | 'isNotFound' | 'rejects' | 'classify'
  > {
  /** Default: none. */
  parameters?: Of
  /** Says what the data hold, and where the upstream's answer has each value. */
  data: DataRecord<Data>
  /**
   * Returns the value from which the data are read, a ResponseClass, or undefined if the answer is
   * not an answer of this endpoint. Default: the body of the (first) answer.
   */
  readFrom?: (input: MapInput<Values<Of>>) => unknown
  /** The recording, from the file of recordings, and optionally the function `responseFor`. */
  example: Recording & Pick<Example<Values<Of>, object>, 'responseFor'>
}

/** Declares an endpoint. The types of its functions follow from its parameters and data. */
export function endpoint<Data extends Fields, Of extends Parameters = Record<never, never>>(
  declaration: EndpointDeclaration<Of, Data>,
): Endpoint {
  const { parameters, data, readFrom, complete, example, ...rest } = declaration
  const completed = completion(parameters, complete)
  const schemas = Object.entries(parameters ?? {}).map(([name, { schema }]) => [name, schema])
  const whole: Declared<Of, Data> = {
    ...rest,
    parameters: Type.Object(Object.fromEntries(schemas)) as unknown as ObjectOfParameters<Of>,
    ...aliasesOf<Of>(parameters),
    data: data.schema,
    ...(completed && { complete: completed }),
    map: (input) => {
      const source = readFrom ? readFrom(input) : input.body
      if (source instanceof ResponseClass) return source
      return (source === undefined ? undefined : data.read(source)) ?? invalid()
    },
    // TypeScript gives a JSON file wider types than the schemas have. A test checks the values of
    // all files.
    example: example as unknown as Declared<Of, Data>['example'],
  }
  // One registry holds endpoints of all types. Each function only receives parameters of its own
  // endpoint.
  return whole as unknown as Endpoint
}

/** The aliases of the parameters, if any. */
function aliasesOf<Of extends Parameters>(parameters: Of | undefined): Pick<Declared<Of>, 'aliases'> {
  const named = Object.entries(parameters ?? {}).flatMap(([name, { aliases = [] }]) => {
    const others = aliases.filter((alias) => alias !== name)
    return others.length === 0 ? [] : [[name, others]]
  })
  return named.length === 0 ? {} : { aliases: Object.fromEntries(named) }
}

/**
 * Makes the `complete` function: it normalizes each parameter, then completes all together.
 * Undefined if no parameter needs it.
 */
function completion<Of extends Parameters>(
  parameters: Of | undefined,
  complete: Declared<Of>['complete'],
): Declared<Of>['complete'] {
  const own = Object.entries(parameters ?? {}).flatMap(([name, { normalize }]) =>
    normalize ? { name, normalize } : [],
  )
  if (own.length === 0) return complete
  return (values: Values<Of>, context: CallContext) => {
    const completed: Record<string, unknown> = { ...values }
    for (const { name, normalize } of own) {
      const value = completed[name]
      if (value !== undefined) completed[name] = normalize(name, value as never, context)
    }
    const each = completed as Values<Of>
    return complete ? complete(each, context) : each
  }
}
