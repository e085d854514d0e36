import { isObject } from '../json.ts'
import type { Located, OpenApiDocument } from './references.ts'
import type { Method } from './request.ts'
import { type OperationSettings, readOperationSettings } from './settings.ts'

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** Methods for which the gateway makes no calls. */
const OTHER_METHODS = ['head', 'options', 'trace', 'query']

/** Longest path of an operation, characters. The request line may have at most 4 KB. */
const PATH_LENGTH_MAX = 1_000

/** An operation of the document. Whether the gateway can offer it is not known yet. */
export interface FoundOperation {
  method: Method
  template: string
  pathItem: Located
  operation: Located
  settings: OperationSettings
}

/** The operations of a document in its order, without the operations that its settings skip. */
export function findOperations(document: OpenApiDocument): FoundOperation[] {
  const { findings } = document
  const paths = document.member({ value: document.root, path: [] }, 'paths')
  if (!isObject(paths.value)) {
    findings.error(
      ['paths'],
      'The document must have a member paths that is an object. The gateway does not offer webhooks and callbacks.',
    )
    return []
  }
  const templates = Object.keys(paths.value).filter((name) => !name.startsWith('x-'))
  return templates.flatMap((template) => {
    const pathItem = document.member(paths, template)
    const problem = isObject(pathItem.value) ? templateProblem(template) : 'The value of a path must be an object.'
    if (problem !== undefined) {
      findings.error(['paths', template], problem)
      return []
    }
    for (const name of OTHER_METHODS) {
      const { value, path } = document.member(pathItem, name)
      if (value !== undefined)
        findings.leaveOut(
          path,
          `The operation is left out: the gateway does not send the method ${name.toUpperCase()}.`,
        )
    }
    return METHODS.flatMap((name): FoundOperation[] => {
      const operation = document.member(pathItem, name)
      if (operation.value === undefined) return []
      if (!isObject(operation.value)) {
        findings.error(operation.path, 'An operation must be an object.')
        return []
      }
      const settings = readOperationSettings(document.member(operation, 'x-gateway'), findings)
      if (!settings) return []
      if (settings.skip) {
        findings.leaveOut(operation.path, 'The operation is left out because x-gateway.skip is true.')
        return []
      }
      return [{ method: name.toUpperCase() as Method, template, pathItem, operation, settings }]
    })
  })
}

/**
 * Why a path template may lead outside of the base address; undefined if it cannot, whatever the
 * parameters are.
 */
function templateProblem(template: string): string | undefined {
  if (!template.startsWith('/')) return 'A path must begin with a slash.'
  const literal = template.replace(/\{[^{}/]*\}/g, 'x')
  if (/[{}]/.test(literal)) return 'The path has a brace without its counterpart.'
  if (/[?#]/.test(literal)) return 'A path must not have a query or a fragment. Declare query parameters instead.'
  if (!/^[\w.~!$&'()*+,;=:@%/-]*$/.test(literal)) return 'The path has characters that must be percent-encoded.'
  const segments = literal.split('/').slice(1)
  if (template.length > PATH_LENGTH_MAX) return `A path must have at most ${PATH_LENGTH_MAX} characters.`
  if (segments.some((segment) => /^(?:\.|%2e){1,2}(?:;|%|$)/i.test(segment)))
    return 'A path must not have the segments . or ..'
  if (segments.slice(0, -1).includes('')) return 'A path must not have an empty segment.'
  // A server behind the address might read these characters as a separator, a dot or the end of the
  // path.
  if (/%(?![\da-f]{2})|%(?:[01][\da-f]|7f|2[5ef]|3[bf]|23|5c)/i.test(literal))
    return 'The path has a percent-encoded slash, dot or other character that could change which path the upstream reads.'
  return undefined
}
