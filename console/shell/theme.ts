import { createTheme, Drawer, Modal } from '@mantine/core'

/** Components that lock the page's scrolling do so by a style element, which the content security policy refuses. */
export const theme = createTheme({
  components: {
    Modal: Modal.extend({ defaultProps: { lockScroll: false } }),
    Drawer: Drawer.extend({ defaultProps: { lockScroll: false } }),
  },
})
