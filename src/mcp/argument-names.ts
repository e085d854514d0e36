/**
 * Names that a client's model provider takes for members of a tool's input. Anthropic refuses every
 * request of a client that has one tool with another name (twilio-labs/mcp#56, freee/freee-mcp#15).
 */
const TAKEN_NAME = /^[a-zA-Z0-9_.-]{1,64}$/

/**
 * A name for each parameter of an endpoint as its tool has it: `filter[name]` is `filter_name`.
 *
 * @param parameters names of the endpoint's parameters
 * @param own names that the tool needs for members of its own
 * @returns the names of the parameters by the names of the tool
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
