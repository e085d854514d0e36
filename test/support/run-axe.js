/**
 * Runs axe in a page that meanwhile lacks elements like the elements that axe sees.
 *
 * Two elements look alike if they have the same tag, names of attributes, class, role, states and
 * colours, and if both or neither have text. They have the same place if their ancestors look
 * alike too, and so do the elements directly in them, however many. An element is taken out if
 * axe sees `alikeMax` others in its place, and as many in the place of each element in it, except
 * the first element of each place in each parent.
 *
 * Playwright sends the text of this function to the page, so the function uses nothing else of
 * this file.
 */
export async function runAxe({ options, alikeMax }) {
  /** Attributes whose values decide what axe finds. The values of the others differ in each row. */
  const DECIDING =
    /^(?:class|role|type|scope|lang|dir|tabindex|autocomplete|aria-(?!label|describedby|controls|owns).*)$/
  const numbers = new Map()
  const numberOf = (text) => {
    if (!numbers.has(text)) numbers.set(text, numbers.size)
    return numbers.get(text)
  }
  const all = Array.from(document.body.querySelectorAll('*'))

  const looks = new Map()
  for (const element of all) {
    const attributes = Array.from(element.attributes, ({ name, value }) =>
      DECIDING.test(name) ? `${name}=${value}` : `${name} ${value !== ''}`,
    )
    const { color, backgroundColor, fontSize, visibility, display } = getComputedStyle(element)
    const hasText = Array.from(element.childNodes).some((node) => node instanceof Text && node.data.trim() !== '')
    const states = [hasText, element.textContent.trim() !== '', element.matches(':checked'), element.matches(':focus')]
    const look = [element.localName, ...attributes, color, backgroundColor, fontSize, visibility, display, ...states]
    looks.set(element, numberOf(look.join('|')))
  }
  const paths = new Map().set(document.body, 0)
  const places = new Map()
  for (const element of all) {
    const path = numberOf(`${paths.get(element.parentElement)} > ${looks.get(element)}`)
    paths.set(element, path)
    const inside = new Set(Array.from(element.children, (child) => looks.get(child)))
    places.set(element, numberOf(`${path}: ${[...inside].sort()}`))
  }

  const seen = new Map()
  const isSeen = (element) => seen.get(places.get(element)) >= alikeMax
  const gone = new Map()
  const choose = (parent) => {
    const inParent = new Set()
    for (const element of parent.children) {
      const place = places.get(element)
      if (inParent.has(place) && isSeen(element) && Array.from(element.querySelectorAll('*')).every(isSeen)) {
        gone.set(element, document.createComment(''))
      } else {
        inParent.add(place)
        seen.set(place, (seen.get(place) ?? 0) + 1)
        choose(element)
      }
    }
  }
  choose(document.body)

  for (const [element, comment] of gone) element.replaceWith(comment)
  try {
    // @ts-expect-error: the test has loaded axe into the page
    const { violations, passes } = await window.axe.run(options)
    return { violations, passed: passes.length }
  } finally {
    for (const [element, comment] of gone) comment.replaceWith(element)
  }
}
