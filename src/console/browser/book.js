/** Copies the code beside a button, and shows the result on the button for a moment. */
document.addEventListener('click', async ({ target }) => {
  const button = target instanceof Element ? target.closest('[data-copy]') : null
  if (button === null) return
  const [words, code] = [button.firstChild, button.parentElement.querySelector('code').textContent]
  try {
    await navigator.clipboard.writeText(code)
    words.textContent = 'Copied'
  } catch {
    words.textContent = 'Blocked: select the text and copy it'
  }
  setTimeout(() => {
    words.textContent = 'Copy'
  }, 4000)
})
