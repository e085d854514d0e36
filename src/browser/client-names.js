/**
 * The names that the generated clients use for APIs, endpoints and parameters. Code samples show
 * them.
 */

/**
 * Python's keywords, which cannot name a parameter or a method, and the types that stand in
 * signatures.
 */
const PYTHON_KEYWORDS = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield self bool float int str'.split(
    ' ',
  ),
)

/** Methods of the clients, whose names no API may take. */
const METHODS = new Set(['call', 'answer', 'start', 'batch', 'close', 'constructor'])

/**
 * Python's name for a parameter, an endpoint or an API.
 *
 * @param {string} name
 */
export function pythonName(name) {
  // Python compares identifiers in the form NFKC.
  const word = name
    .normalize('NFKC')
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_+(?=\p{L})/u, '')
    .replace(/^(?=\p{N})/u, '_')
  return PYTHON_KEYWORDS.has(word) ? `${word}_` : word
}

/**
 * Python's name for each parameter, by the parameter's own name. If two parameters would have the
 * same name, the second gets a number: `a-b` and `a_b` become `a_b` and `a_b_2`.
 *
 * @param {readonly string[]} names
 * @returns {ReadonlyMap<string, string>}
 */
export function pythonNames(names) {
  const variables = new Map()
  const taken = new Set()
  for (const name of names) {
    const plain = pythonName(name)
    let free = plain
    for (let count = 2; taken.has(free); count += 1) free = `${plain}_${count}`
    taken.add(free)
    variables.set(name, free)
  }
  return variables
}

/**
 * The member of the Python client that holds an API. It never has the name of a method.
 *
 * @param {string} slug
 */
export function pythonMember(slug) {
  const name = pythonName(slug)
  return METHODS.has(name) ? `${name}_` : name
}

/**
 * TypeScript's name for an endpoint or parameter: `by-ingredient` becomes `byIngredient`.
 *
 * @param {string} name
 */
export function typescriptName(name) {
  const parts = name.split(/[^A-Za-z0-9]+/).filter((part) => part !== '')
  return parts
    .map(
      (part, index) => `${index === 0 ? part.charAt(0).toLowerCase() : part.charAt(0).toUpperCase()}${part.slice(1)}`,
    )
    .join('')
}

/**
 * The member of the TypeScript client that holds an API. It never has the name of a method.
 *
 * @param {string} slug
 */
export function typescriptMember(slug) {
  const name = typescriptName(slug)
  return METHODS.has(name) ? `${name}Api` : name
}
