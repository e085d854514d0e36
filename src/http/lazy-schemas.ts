import Fastify, { type FastifyInstance } from 'fastify'

/** Values are taken as they were sent: none is turned into another type, and no member is dropped in silence. */
const AJV_OPTIONS = { coerceTypes: false, removeAdditional: false, useDefaults: true, allErrors: false } as const

const compilations = new WeakMap<FastifyInstance, (() => unknown)[]>()

/**
 * Has the schema of a route compiled by its first request instead of at the start: compiling those of all routes is a
 * sixth of the processor time in which a node starts. The compilers stay Fastify's own. To be called before a route is
 * added.
 */
export async function compileSchemasOnUse(app: FastifyInstance): Promise<void> {
  const { validatorCompiler, serializerCompiler } = await defaultCompilers()
  const pending: (() => unknown)[] = []
  compilations.set(app, pending)
  app.setValidatorCompiler((definition) => {
    let validate: ReturnType<typeof validatorCompiler> | undefined
    const compile = () => (validate ??= validatorCompiler(definition))
    pending.push(compile)
    const validateOnUse: ReturnType<typeof validatorCompiler> = (data: unknown) => {
      const compiled = compile()
      const result = compiled(data)
      validateOnUse.errors = compiled.errors ?? null
      return result
    }
    return validateOnUse
  })
  app.setSerializerCompiler((definition) => {
    let serialize: ReturnType<typeof serializerCompiler> | undefined
    const compile = () => (serialize ??= serializerCompiler(definition))
    pending.push(compile)
    return (data) => compile()(data)
  })
}

/** Compiles every schema of the routes now. @throws what the first schema that cannot be compiled throws */
export function compileSchemas(app: FastifyInstance): void {
  for (const compile of compilations.get(app) ?? []) compile()
}

/** Those that Fastify sets up for an instance whose routes have schemas. */
async function defaultCompilers() {
  const app = Fastify({ ajv: { customOptions: AJV_OPTIONS } })
  app.post('/', { schema: { body: {}, response: { 200: {} } } }, async () => undefined)
  await app.ready()
  const { validatorCompiler, serializerCompiler } = app
  if (!validatorCompiler || !serializerCompiler) throw new Error('Fastify has set up no compilers of schemas')
  return { validatorCompiler, serializerCompiler }
}
