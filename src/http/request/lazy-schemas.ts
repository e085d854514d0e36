import Fastify, { type FastifyInstance } from 'fastify'
import { asciiEmail } from '../../db/email-address.ts'

/**
 * Values are taken as they were sent: none is turned into another type, and no member is dropped in
 * silence. What is wrong comes with its schema (verbose), so that a refusal can say which members
 * there are.
 */
const AJV_OPTIONS = {
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: true,
  allErrors: false,
  verbose: true,
} as const

/** Compiles the schema of a route by Fastify's own compilers, checked against JSON Schema first. */
type CompileChecked = (compilers: Compilers) => unknown

const schemas = new WeakMap<FastifyInstance, CompileChecked[]>()

/**
 * Has the schema of a route compiled by its first request instead of at the start: compiling the
 * schemas of all routes is a sixth of the processor time in which a node starts. The compilers stay
 * Fastify's own, without the check that a schema is valid, because that check would compile the
 * schema of schemas first: {@link compileSchemas} makes it. Call it before a route is added.
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
 * Checks and compiles every schema of the routes now.
 *
 * @throws what the first schema that cannot be compiled throws
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
 * An address is checked in the form in which it is stored. The pattern comes from the plugin of
 * formats, for ASCII.
 */
function takeInternationalDomains(ajv: {
  formats: Record<string, unknown>
  addFormat: (name: string, check: (text: string) => boolean) => unknown
}): void {
  const { email } = ajv.formats
  if (!(email instanceof RegExp)) throw new TypeError('the validator has no pattern for an address')
  ajv.addFormat('email', (address: string) => email.test(asciiEmail(address)))
}
