"""The viewer: stored runs to pages in the browser, rendered here, shown as text."""
