import Fastify, { type FastifyInstance } from 'fastify'
import { asciiEmail } from '../../db/email-address.ts'

/**
 * Values are accepted as they were sent: they are not converted to another type, and no member is
 * dropped silently. Errors include the schema (verbose), so that a refusal can name the known
 * members.
 */
const AJV_OPTIONS = {
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: true,
  allErrors: false,
  verbose: true,
} as const

/**
 * Compiles the schema of a route with Fastify's own compilers, after checking it against JSON
 * Schema.
 */
type CompileChecked = (compilers: Compilers) => unknown

const schemas = new WeakMap<FastifyInstance, CompileChecked[]>()

/**
 * Compiles the schema of each route at its first request instead of at the start, because compiling
 * all schemas is a sixth of the processor time that a node needs to start. The compilers are
 * Fastify's own, but without the check that a schema is valid, which would first compile the schema
 * of schemas. {@link compileSchemas} makes that check. Call this before a route is added.
 */
export async function compileSchemasOnUse(app: FastifyInstance): Promise<void> {
  const { validatorCompiler, serializerCompiler } = await defaultCompilers({ validateSchema: false })
  const checked: CompileChecked[] = []
  schemas.set(app, checked)
  app.setValidatorCompiler((definition) => {
    let validate: ReturnType<typeof validatorCompiler> | undefined
    checked.push((compilers) => compilers.validatorCompiler(definition))
    const validateOnUse: ReturnType<typeof validatorCompiler> = (data: unknown) => {
      validate ??= validatorCompiler(definition)
      const result = validate(data)
      validateOnUse.errors = validate.errors ?? null
      return result
    }
    return validateOnUse
  })
  app.setSerializerCompiler((definition) => {
    let serialize: ReturnType<typeof serializerCompiler> | undefined
    checked.push((compilers) => compilers.serializerCompiler(definition))
    return (data) => {
      serialize ??= serializerCompiler(definition)
      return serialize(data)
    }
  })
}

/**
 * Checks and compiles the schemas of all routes now.
 *
 * @throws the error of the first schema that cannot be compiled
 */
export async function compileSchemas(app: FastifyInstance): Promise<void> {
  const compilers = await defaultCompilers({ validateSchema: true })
  for (const compile of schemas.get(app) ?? []) compile(compilers)
}

type Compilers = Awaited<ReturnType<typeof defaultCompilers>>

/** The compilers that Fastify sets up for an instance whose routes have schemas. */
async function defaultCompilers(options: { validateSchema: boolean }) {
  const app = Fastify({ ajv: { customOptions: { ...AJV_OPTIONS, ...options }, onCreate: takeInternationalDomains } })
  app.post('/', { schema: { body: {}, response: { 200: {} } } }, async () => undefined)
  await app.ready()
  const { validatorCompiler, serializerCompiler } = app
  if (!validatorCompiler || !serializerCompiler) throw new Error('Fastify has set up no compilers of schemas')
  return { validatorCompiler, serializerCompiler }
}

/**
 * Checks an email address in the form in which it is stored, with the ASCII pattern of ajv-formats.
 */
function takeInternationalDomains(ajv: {
  formats: Record<string, unknown>
  addFormat: (name: string, check: (text: string) => boolean) => unknown
}): void {
  const { email } = ajv.formats
  if (!(email instanceof RegExp)) throw new TypeError('the validator has no pattern for an address')
  ajv.addFormat('email', (address: string) => email.test(asciiEmail(address)))
}
