/**
 * Names that the model provider of a client accepts for arguments. If one tool has another name,
 * Anthropic refuses every request of the client (twilio-labs/mcp#56, freee/freee-mcp#15).
 */
const TAKEN_NAME = /^[a-zA-Z0-9_.-]{1,64}$/

/**
 * A name of an argument for each parameter of an endpoint: `filter[name]` becomes `filter_name`.
 *
 * @param parameters the names of the endpoint's parameters
 * @param own names that the tool itself uses for arguments
 * @returns the parameters by the names of the arguments
 */
export function argumentNames(parameters: readonly string[], own: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map(parameters.filter((name) => TAKEN_NAME.test(name)).map((name) => [name, name]))
  for (const parameter of parameters) {
    if (names.has(parameter)) continue
    const plain =
      parameter
        .normalize('NFKD')
        .replace(/[^a-zA-Z0-9_.-]+/g, '_')
        .replace(/^_+|_+$/g, '')
        .slice(0, 60) || 'parameter'
    let free = plain
    for (let count = 2; names.has(free) || own.includes(free); count += 1) free = `${plain}_${count}`
    names.set(free, parameter)
  }
  return names
}
