import { createTheme, Modal } from '@mantine/core'

/**
 * The theme of the console. Modals do not lock the page's scrolling: that needs a style element, which the
 * content security policy refuses.
 */
export const theme = createTheme({
  components: {
    Modal: Modal.extend({ defaultProps: { lockScroll: false } }),
  },
})
